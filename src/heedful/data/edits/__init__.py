"""What can be done to the texts of a corpus before a model reads them."""

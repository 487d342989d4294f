"""An audit as a page, as figures, and in the forms that other tools read."""

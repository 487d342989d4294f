"""What would have to be different for the model to say something else? Texts, edited word by word, as strings: what is
found is a text that anybody can type, whatever kind of model reads it."""

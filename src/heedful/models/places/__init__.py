"""Models that answer at places of a text: taggers, masked language models, models that mark an answer."""

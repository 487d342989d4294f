"""Data for translation: pairs of texts, and which words of one are those of the other, where that is known."""

POSSIBLE = "possible"  # the mark of words that may be linked to the word that is said, too
DIAGONAL = "diagonal"  # and of the one that stands at the same share of its sentence

"""Data for language models: prompts, with what is said after them, what could be said instead, and what decides it."""

ELSE, SAID = LABELS = ("anything else", "this")  # the two answers to: does this come next?

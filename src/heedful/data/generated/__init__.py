"""Corpora that are made here, whose deciding words are known."""

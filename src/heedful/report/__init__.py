"""Runs to one page for a person: findings, figures, words, one text to play with; no torch."""

"""Corpora by name or from files: found, read, labelled, split, described."""

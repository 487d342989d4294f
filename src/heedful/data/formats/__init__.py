"""Formats: tables, lines of JSON, and the simple form in which corpora are kept."""

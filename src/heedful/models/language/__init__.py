"""Models that generate: a generated token is a label, and all that is asked of a classifier can be asked of it."""

"""Models that generate: a generated token is a label, so everything that is asked of a classifier can be asked of it."""

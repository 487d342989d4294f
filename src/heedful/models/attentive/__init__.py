"""Our own classifiers: embed, encode, attend, decode."""

"""Texts to words to ids to batches, and word vectors."""

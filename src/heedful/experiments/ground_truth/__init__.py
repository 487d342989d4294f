"""Questions whose right answer is known: planted words, hybrid documents, removed words, human evidence."""

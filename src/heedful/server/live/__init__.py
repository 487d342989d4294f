"""What a page asks a model, while somebody waits: the files that lead to torch."""

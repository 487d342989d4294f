"""What training makes small: cross-entropy, and terms that change what attention says."""

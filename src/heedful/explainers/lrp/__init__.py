"""Layer-wise relevance propagation: of any network by freezing it, and by rules for the layers of our own."""

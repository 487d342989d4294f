"""Models that select words first, and predict from these alone."""

"""What must be erased to change the decision: curves, flips, and the smallest set there is."""

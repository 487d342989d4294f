"""A paper's experiments as a grid: how it is written down (`papers/`), which part of it is run, and its page."""

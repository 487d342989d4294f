"""Gradients as explanations, all read off one path from a baseline to the input."""

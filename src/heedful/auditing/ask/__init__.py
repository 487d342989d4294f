"""Asking a model, within a budget of time: which questions, about how many texts."""

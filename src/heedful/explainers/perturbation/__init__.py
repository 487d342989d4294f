"""Explanations by asking about edited texts: one planner of edits, faster ways for some encoders, surrogates."""

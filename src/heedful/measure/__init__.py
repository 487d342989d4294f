"""Pure functions on arrays: no torch, no files, no state. What is undefined is nan, never 0."""

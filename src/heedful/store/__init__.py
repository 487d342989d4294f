"""Run folders: what exists in them is whole, and what is damaged is named; no torch."""

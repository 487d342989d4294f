"""What every experiment is made of: its record, its description, summaries, verdicts, and what stands beside them."""

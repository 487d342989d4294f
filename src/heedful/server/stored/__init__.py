"""What is stored, read for pages: runs, rows, texts, verdicts; kept as long as the files stay as they are."""

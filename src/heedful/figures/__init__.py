"""What figures are made of, below everything that draws: the theme, the parts, and the record. No torch."""

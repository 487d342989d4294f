"""From rows of experiments to findings, standings and a recommendation; no torch, no experiment by name."""

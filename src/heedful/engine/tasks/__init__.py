"""Tasks: what is to be computed, under which key, at what cost, and what each kind of task does."""

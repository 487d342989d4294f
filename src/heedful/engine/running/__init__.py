"""Running tasks: in which order, in which process, on which machine, and what is shown meanwhile."""

"""One address each: data to page."""

"""How different could attention be without another prediction? The question, the exact answer, search and proof."""

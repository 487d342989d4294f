"""Are the words that an explainer names the words that change the output? Between a random and the best order."""

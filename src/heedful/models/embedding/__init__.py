"""Models that give a vector for a text: how alike two texts are is what they say of a pair."""

"""Questions about attention weights alone: shuffled, uniform, one head changed, states that are alike."""

"""Attention as an explanation: weights, rollout and flow, weights times norms, value zeroing."""

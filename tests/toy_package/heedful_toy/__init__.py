"""A package of somebody else's: an experiment, an explainer, an encoder, an objective, a corpus and a family of models.

Each is one small file; `entry_points` is all that tells heedful of them.
"""

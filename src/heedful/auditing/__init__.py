"""Which explainer of a model can be believed: from rows of experiments to findings, standings, words and bars.

Nothing here computes with a model, reads a file or knows an experiment by name: what an experiment tells of each
explainer is declared by its `ForAudit.measures`.
"""

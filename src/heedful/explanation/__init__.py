"""One explained text, or many: the record, its columns, table, files, and how it is drawn; no torch.

The class that `heedful.explain` returns is `heedful.explanation.explanation.Explanation`.
"""

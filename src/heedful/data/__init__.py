"""Corpora to examples to batches.

corpora/      every known corpus on one screen (registry), loading one by name, from files of one's own or from
              hf:ID, its labels and splits, and what is said of it
originals/    one small reader for each corpus as its publishers distribute it, all giving `Raw` rows
formats/      tables, JSON lines, and the simple form in which corpora are kept
generated/    corpora that are made here, whose deciding words are known
edits/        what can be done to the texts of a corpus
text/         tokenising, vocabulary, word vectors, batches
"""

"""Corpora to examples to batches.

readers/      one small reader per source format, all giving `Raw` rows
registry      CORPORA: every known corpus on one screen; recipe: what is made of its rows
corpora       load(name, path or hf:ID) -> Corpus; load_split: a few examples of one split, sooner
user_files    one's own CSV, TSV, JSONL, Parquet; huggingface: hf:ID
assemble      rows -> examples, with labels (which spellings are one class), row_words (words, and filters by
              their number), splits (those that are missing are drawn), corpus_warnings (what is doubtful)
planted, babi what the generated corpora are made by
tokenise, vocabulary, vectors, batching
locate, catalogue, describe, prepare, fingerprint: what `heedful data` asks
"""

"""Corpora to examples to batches.

readers/      one small reader per source format, all giving `Raw` rows
registry      CORPORA: every known corpus on one screen
corpora       load(name, path or hf:ID) -> Corpus
own           one's own CSV, TSV, JSONL, Parquet; huggingface: hf:ID
assemble      rows -> examples: tokenise, filter, number labels, draw missing splits
planted, babi generated corpora
tokenise, vocabulary, vectors, batching
locate, catalogue, describe, prepare, fingerprint: what `heedful data` asks
"""

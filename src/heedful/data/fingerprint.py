"""One number for the whole content of a corpus: what a run's hash needs to know about its data."""

from __future__ import annotations

import hashlib

from heedful.records import SPLITS, Corpus


def fingerprint(corpus: Corpus) -> str:
    """SHA-256 over labels, splits, ids, words, queries, candidates and labels of the examples."""
    digest = hashlib.sha256()
    digest.update("\x1f".join((corpus.task, *corpus.labels)).encode())
    for split in SPLITS:
        digest.update(f"\x1d{split}".encode())
        for example in corpus[split]:
            query = example.query.forms if example.query is not None else ()
            row = (
                example.id,
                str(example.label),
                " ".join(example.passage.forms),
                " ".join(query),
                str(example.candidates),
            )
            digest.update(("\x1e" + "\x1f".join(row)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()

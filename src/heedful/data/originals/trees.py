"""Stanford Sentiment Treebank: `train.txt`, `dev.txt`, `test.txt`, one labelled tree on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, text_lines
from heedful.data.text.tokenise import Tokenizer, tokenizer
from heedful.records import SPLITS

TREE = re.compile(r"\(([0-4]) ")
LEAF = re.compile(r"\([0-4] ([^()\s]+)\)")


def read(folder: Path, ledger: Ledger) -> Iterator[Raw]:
    """Roots 0 and 1 are negative, 3 and 4 positive, 2 is left out (Jain & Wallace 2019, section 3)."""
    split_words = tokenizer("spacy")
    for split in SPLITS:
        path = folder / f"{split}.txt"
        for line, tree in text_lines(path, ledger):
            if not tree.strip():
                continue
            root, leaves = TREE.match(tree.strip()), LEAF.findall(tree)
            if root is None or not leaves or tree.count("(") != tree.count(")"):
                ledger.bad(path, line, "this is not a tree such as (3 (2 A) (4 gem))")
            elif root[1] == "2":
                ledger.left_out["neutral sentences"] += 1
            else:
                label = "negative" if root[1] < "2" else "positive"
                yield Raw(f"{path.name}:{line}", normalise(" ".join(leaves), split_words), label, split)


def normalise(sentence: str, split_words: Tokenizer) -> str:
    """As the authors did: bracket marks out, non-word characters out, split by spaCy, lower case."""
    plain = sentence.replace("-LRB-", "").replace("-RRB-", " ")
    words = split_words(re.sub(r"\W+", " ", plain).strip())
    return " ".join(words.surface(i).lower() for i in range(len(words)))

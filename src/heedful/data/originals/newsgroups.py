"""20 Newsgroups by date: `20news-bydate-{train,test}/<group>/<number>`, baseball against hockey."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, whole_text
from heedful.errors import Mistake
from heedful.records import Split

SPLITS: tuple[Split, ...] = ("train", "test")
GROUPS = {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"}


def read(folder: Path, ledger: Ledger) -> Iterator[Raw]:
    """The body of each message without headers, footers and quotes; messages left empty are dropped."""
    for split in SPLITS:
        for group, label in GROUPS.items():
            messages = folder / f"20news-bydate-{split}" / group
            if not messages.is_dir():
                raise Mistake(f"{folder} has no 20news-bydate-{split}/{group}.")
            for path in sorted(messages.iterdir()):
                text = body(whole_text(path, ledger, encoding="latin-1") or "")
                if text:
                    yield Raw(f"{split}/{group}/{path.name}", text, label, split)
                else:
                    ledger.left_out["messages with no text of their own"] += 1


def body(message: str) -> str:
    """What scikit-learn's `fetch_20newsgroups(remove=("headers", "footers", "quotes"))` leaves."""
    from sklearn.datasets import _twenty_newsgroups as newsgroups

    text = newsgroups.strip_newsgroup_header(message)
    text = newsgroups.strip_newsgroup_footer(text)
    return str(newsgroups.strip_newsgroup_quoting(text)).strip()

"""The smallest change that changes the answer, and how few words keep it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.api.models import subject_options
from heedful.engine.sources.subject import Subject
from heedful.errors import Mistake, short
from heedful.files import check_name, whole_file
from heedful.records import Part

if TYPE_CHECKING:
    from heedful.explainers.counterfactual.found import Counterfactuals
    from heedful.models.model import Model
    from heedful.store.run import Run

MOST, BUDGET, WANTED, FILLED = 4, 2000, 3, 10
LONGEST = 2000  # words of a text
OUTPUTS = (".html", ".json")


def counterfactual(
    model: Model | Run | str | Path,
    text: str,
    *,
    query: str | None = None,
    part: Part = "passage",
    target: str | None = None,
    changes: Sequence[str] = (),
    words: Sequence[str] = (),
    fill: str | Path | None = None,
    n: int = WANTED,
    most: int = MOST,
    budget: int = BUDGET,
    reduce: bool = False,
    labels: Sequence[str] | None = None,
    label_map: Mapping[str, str] | None = None,
    dtype: str | None = None,
    device: str | None = None,
    data_dirs: Sequence[str | Path] = (),
) -> Counterfactuals:
    """The fewest words of a text whose removal, replacement or addition changes the answer; `n` ways, different ones.

    Sets of changes are tried by their size, up to `most` changes and `budget` texts; the result says whether all
    smaller sets were tried. changes: some of remove, replace, add; words that are put in are those of `words`, and the
    likeliest at each gap by the masked language model `fill` (a folder or id). Without either, words are only removed.
    target: only this answer counts. part: with a query, which of the two texts is changed. reduce: instead, how few
    words keep the answer. Of a language model the answer is the next token.
    """
    from heedful.data.text.tokenise import tokenizer
    from heedful.explainers.counterfactual.answers import asking
    from heedful.explainers.counterfactual.fill import all_changes, kinds_of, masked_model
    from heedful.explainers.counterfactual.found import Counterfactuals
    from heedful.explainers.counterfactual.search import reduce as reduce_words
    from heedful.explainers.counterfactual.search import search

    for name, number, highest in (("n", n, 100), ("most", most, 20), ("budget", budget, 1_000_000)):
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= highest:
            raise Mistake(f"{name} must be from 1 to {highest:,}, not {short(number)}.")
    if not isinstance(text, str):
        raise Mistake(f"give one text, not {short(text)}.")
    if part not in ("passage", "query") or (part == "query" and query is None):
        raise Mistake("part is passage or query, and a query can only be changed where one is given (query=...).")
    if reduce and (changes or words or fill is not None or target is not None):
        raise Mistake("reduce removes words while the answer stays: it takes no target, changes, words or fill.")
    if strange := [word for word in words if not isinstance(word, str) or not word.strip()]:
        raise Mistake(f"{short(strange[0])} is not a word that could be put in.")
    kinds = kinds_of(changes, bool(words) or fill is not None)
    told = subject_options(None, labels, label_map, "test", dtype, device, None, data_dirs, query is not None)
    loaded = Subject.resolve(model, None, told).load()
    own = text if part == "passage" else query
    assert own is not None
    split = tokenizer("spacy")(own)
    if not 1 <= len(split) <= LONGEST:
        raise Mistake(f"the text has {len(split):,} words; 1 to {LONGEST:,} can be changed.")
    asked = asking(loaded, text, query, part, target)
    other = query if part == "passage" else text
    told_of = (loaded.name, split, other, asked.name(asked.original), asked.confidence)
    if reduce:
        return Counterfactuals(*told_of, reduced=reduce_words(asked, split))
    filler = None if fill is None else masked_model(fill, FILLED)
    possible = all_changes(split, kinds, [word.strip() for word in words], filler)
    return Counterfactuals(*told_of, searched=search(asked, split, possible, most, budget, n))


def write_counterfactuals(found: Counterfactuals, path: Path) -> None:
    """By the ending: .html or .json."""
    from heedful.explanation.drawing import page

    check_output_ending(path)
    check_name(path)
    with whole_file(path) as partial:
        partial.write_text(found.to_json() if path.suffix == ".json" else page(found.to_html()), encoding="utf-8")


def check_output_ending(path: Path) -> None:
    if path.suffix not in OUTPUTS:
        raise Mistake(f"--output {path}: the ending must be {' or '.join(OUTPUTS)}.")


def read_words(file: Path) -> list[str]:
    """Words of a file, one a line; blank lines are left out."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise Mistake(f"--words {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Mistake(f"--words {file}: this is not UTF-8.") from None
    found = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not found:
        raise Mistake(f"--words {file}: there is no word in it; give one a line.")
    return found

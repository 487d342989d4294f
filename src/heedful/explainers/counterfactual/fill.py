"""Words that could stand at a place: from a list, or from a model that fills gaps (a masked language model)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.errors import Mistake
from heedful.explainers.counterfactual.changes import KINDS, Change, Kind, changed_text
from heedful.records import Words

GAP = "\x00"  # stands for the gap while a text is made
Fill = Callable[[Sequence[tuple[Words, Change]]], list[list[str]]]


def all_changes(words: Words, kinds: Sequence[Kind], listed: Sequence[str], fill: Fill | None) -> list[Change]:
    """Every single change that may be made, each once."""
    found = [Change(i, "remove") for i in range(len(words))] if "remove" in kinds else []
    gaps = [Change(i, "replace", GAP) for i in range(len(words))] if "replace" in kinds else []
    gaps += [Change(i, "add", GAP) for i in range(len(words) + 1)] if "add" in kinds else []
    filled = fill([(words, gap) for gap in gaps]) if fill is not None and gaps else [[] for _ in gaps]
    for gap, own in zip(gaps, filled, strict=True):
        old = "" if gap.kind == "add" else words.surface(gap.place).lower()
        different = (word for word in dict.fromkeys([*own, *listed]) if word.lower() != old)
        found += [Change(gap.place, gap.kind, word) for word in different]
    return found


def kinds_of(given: Sequence[str], listed: bool) -> tuple[Kind, ...]:
    """Which kinds of change may be made: removal alone, where there are no words to put in."""
    if not given:
        return KINDS if listed else ("remove",)
    if wrong := [kind for kind in given if kind not in KINDS]:
        raise Mistake(f"there is no change {wrong[0]!r}: give some of {', '.join(KINDS)}.")
    if not listed and set(given) != {"remove"}:
        raise Mistake(
            "words are only replaced or added where it is said which may be taken: give a list of words (--words FILE) "
            "or a model that fills gaps (--fill MODEL)."
        )
    return tuple(kind for kind in KINDS if kind in given)


def masked_model(place: str | Path, most: int) -> Fill:
    """The `most` likeliest whole words of a masked language model (a folder or id of Hugging Face) at a gap."""
    try:
        from transformers import AutoModelForMaskedLM, AutoTokenizer
    except ImportError:
        raise Mistake("a model that fills gaps needs the package 'transformers': pip install 'heedful[hf]'.") from None
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(place))
        module: Any = AutoModelForMaskedLM.from_pretrained(str(place)).eval()
    except (OSError, ValueError) as error:
        raise Mistake(f"{place} is not a masked language model that can be loaded: {str(error)[:200]}") from None
    if tokenizer.mask_token is None:
        raise Mistake(f"{place} has no mask token, so it cannot fill gaps: give a masked language model.")

    def fill(gaps: Sequence[tuple[Words, Change]]) -> list[list[str]]:
        found: list[list[str]] = []
        for words, gap in gaps:
            text = changed_text(words, [gap]).replace(GAP, tokenizer.mask_token)
            told = tokenizer(text, return_tensors="pt", truncation=True)
            at = (told["input_ids"][0] == tokenizer.mask_token_id).nonzero()
            if not len(at):  # beyond what the model reads
                found.append([])
                continue
            with torch.no_grad():
                order = module(**told).logits[0, at[0, 0]].argsort(descending=True)[: 20 * most].tolist()
            found.append(_whole_words(tokenizer, order)[:most])
        return found

    return fill


def _whole_words(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Without pieces that go on a word, signs and special tokens."""
    special = set(tokenizer.all_special_ids)
    tokens = [(i, str(tokenizer.convert_ids_to_tokens(i))) for i in ids if i not in special]
    marked = any(token.startswith(("Ġ", "▁")) for _, token in tokens)  # words begin with a sign of their own
    begins = [i for i, t in tokens if (t.startswith(("Ġ", "▁")) if marked else not t.startswith("##"))]
    words = (tokenizer.decode([i]).strip() for i in begins)
    return list(dict.fromkeys(word for word in words if word.isalpha()))

"""Heatmaps: the text survives unchanged and harmless, the colours can be read, wrong numbers are refused."""

from __future__ import annotations

import io
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from heedful.errors import Mistake
from heedful.explanation import drawing as colours
from heedful.explanation import drawing as heatmap
from heedful.explanation.drawing import Pair, visible
from heedful.records import Words

CONTROLS = {"Cc", "Cs"}
HARMLESS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def cut(text: str, marks: list[int] | None = None) -> Words:
    """Words at white space, or between the given character positions."""
    if marks is None:
        spans = [m.span() for m in re.finditer(r"\S+", text)]
    else:
        ends = sorted({min(m, len(text)) for m in marks})
        spans = list(zip(ends[::2], ends[1::2], strict=False))
    offsets = np.array(spans, dtype=np.int32).reshape(-1, 2)
    return Words(text, tuple(text[a:b] for a, b in spans), offsets)


class Reader(HTMLParser):
    """The tags, attributes and text of a fragment, as a browser would read them."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(markup)
        self.close()
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@given(text=HARMLESS, marks=st.lists(st.integers(0, 40)), signed=st.booleans(), data=st.data())
def test_any_text_is_shown_as_it_is_and_makes_no_tag(
    text: str, marks: list[int], signed: bool, data: st.DataObject
) -> None:
    words = cut(text, marks)
    low = -1e300 if signed else 0
    scores = data.draw(st.lists(st.floats(low, 1e300), min_size=len(words), max_size=len(words)))
    read = Reader(heatmap.html(words, np.array(scores), signed, label=text))
    assert read.text == visible(text)
    assert [tag for tag, _ in read.tags] == ["div", *["span"] * len(words)]
    for i, (_, attributes) in enumerate(read.tags[1:]):
        assert set(attributes) <= {"class", "title"}
        assert attributes["title"] == f"position {i}: {heatmap.number(scores[i], signed)}"
        assert re.fullmatch(r"hf-[pnu][1-8]", attributes.get("class") or "hf-u1")


@given(text=HARMLESS, marks=st.lists(st.integers(0, 40)))
def test_the_terminal_shows_the_same_text(text: str, marks: list[int]) -> None:
    words = cut(text, marks)
    assert heatmap.rich_text(words, np.ones(len(words)), False).plain == visible(text)


def test_only_control_characters_change() -> None:
    import unicodedata

    every = "".join(map(chr, range(0x110000)))
    changed = {c for c in every if visible(c) != c}
    bidi = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert changed == {c for c in every if unicodedata.category(c) in CONTROLS} - set("\t\n") | bidi
    assert all(c.isprintable() for sign in map(visible, changed) for c in sign)


def test_an_escape_sequence_does_not_reach_the_terminal() -> None:
    words = cut("red \x1b[31malert\x1b[0m \x9b2J \x07 [bold]x[/bold]")
    out = io.StringIO()
    Console(file=out, force_terminal=False, width=80).print(heatmap.rich_text(words, np.ones(5), False))
    assert "\x1b" not in out.getvalue()
    assert "\x9b" not in out.getvalue()
    assert "[bold]x[/bold]" in out.getvalue()


def test_a_huge_word_and_a_huge_gap_are_cut() -> None:
    words = cut("a" + " " * 100_000 + "b" * 100_000)
    markup = heatmap.html(words, [0.2, 0.8], False)
    assert len(markup) < 2000
    assert Reader(markup).text.count("…") == 2


def test_the_same_word_twice_has_two_numbers() -> None:
    words = cut("bad bad film")
    read = Reader(heatmap.html(words, [0.5, -1.0, 0.0], True))
    assert [a.get("class") for _, a in read.tags[1:]] == ["hf-p4", "hf-n8", None]
    assert heatmap.top_words(words, np.array([0.5, -1.0, 0.0]), True) == "bad (at 1) -1 · bad (at 0) +0.5"


def test_positions_that_share_characters_share_a_colour_and_keep_their_numbers() -> None:
    # a byte-level tokenizer: two tokens for the emoji, and one that has no text at all
    words = Words("a😀b", ("a", "x", "y", "_", "b"), np.array([[0, 1], [1, 2], [1, 2], [2, 2], [2, 3]], np.int32))
    read = Reader(heatmap.html(words, [0.0, 0.25, 0.5, 1.0, 0.0], False))
    assert read.text == "a😀∅b"
    assert read.tags[2][1] == {"class": "hf-u6", "title": "position 1: 0.25; position 2: 0.5"}
    assert read.tags[3][1] == {"class": "hf-u8", "title": "position 3: 1"}


def test_a_longer_position_that_overlaps_is_drawn_whole() -> None:
    words = Words("abcd", ("ab", "bcd"), np.array([[0, 2], [1, 4]], np.int32))
    markup = heatmap.html(words, [0.5, 0.5], False)
    assert ">abcd</span>" in markup
    assert markup.count("<span") == 1
    assert "position 0: 0.5; position 1: 0.5" in markup


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused(bad: float) -> None:
    with pytest.raises(Mistake, match=r"position 1: scores must be finite"):
        heatmap.html(cut("two words"), [0.1, bad], True)
    with pytest.raises(Mistake, match="finite"):
        Pair(cut("two words"), np.ones(2), np.ones(2), delta=bad)


def test_wrong_lengths_and_wrong_signs_are_refused() -> None:
    with pytest.raises(Mistake, match=r"shape \(3,\) for 2 words"):
        heatmap.html(cut("two words"), [1, 2, 3], True)
    with pytest.raises(Mistake, match="declared unsigned"):
        heatmap.rich_text(cut("two words"), [0.1, -0.1], False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sign", ["p", "n", "u"])
def test_text_can_be_read_on_every_colour(scheme: colours.Scheme, sign: colours.Sign) -> None:
    shades = [colours.colour(sign, level, scheme) for level in range(colours.LEVELS + 1)]
    assert min(contrast(colours.INK[scheme], shade) for shade in shades) >= 4.5
    assert contrast(colours.QUIET[scheme], colours.SURFACE[scheme]) >= 4.5
    steps = [abs(luminance(shade) - luminance(shades[0])) for shade in shades]
    assert steps == sorted(set(steps)), "a stronger score is further from the surface"


def test_every_rule_that_paints_also_sets_a_readable_text_colour() -> None:
    painted = re.findall(r"\{([^{}]*background:[^{}]*)\}", colours.STYLE)
    assert len(painted) == 2 * (3 * colours.LEVELS + 1)
    for rule in painted:
        both = re.fullmatch(r"background:(#\w{6});color:(#\w{6})", rule)
        assert both
        assert contrast(*both.groups()) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_for_and_against_differ_for_colour_blind_readers(scheme: colours.Scheme) -> None:
    # Machado, Oliveira & Fernandes 2009, severity 1.0, on linear RGB
    blind = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }

    def seen(colour: str, matrix: list[list[float]]) -> np.ndarray:
        rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]) ** 2.2
        return np.clip(np.array(matrix) @ rgb, 0, 1) ** (1 / 2.2)

    for matrix in blind.values():
        for level in range(3, colours.LEVELS + 1):
            p, n = (seen(colours.colour(sign, level, scheme), matrix) for sign in ("p", "n"))
            assert np.abs(p - n).max() > 0.1


def test_the_fragment_needs_nothing_from_outside() -> None:
    markup = colours.fragment(heatmap.html(cut("a film"), [1, 0], False))
    assert "<script" not in markup
    assert not re.search(r"https?:|url\(|@import|src=|href=", markup)
    assert "prefers-color-scheme:dark" in markup


def test_a_pair_shares_its_scale() -> None:
    pair = Pair(cut("old <b> film"), np.array([0.5, 0.25, 0.25]), np.array([0.0, 0.0, 1.0]), delta=0.0123)
    read = Reader(pair._repr_html_())
    assert [a.get("class") for tag, a in read.tags if tag == "span"] == [
        *("hf-u4", "hf-u2", "hf-u2"),
        *(None, None, "hf-u8"),
    ]
    assert "Δŷ = 0.0123" in read.text
    out = io.StringIO()
    Console(file=out, width=80).print(pair)
    assert all(said in out.getvalue() for said in ("original", "adversarial", "old 0.5", "film 1", "Δŷ = 0.0123"))

"""Columns are another form of records: nothing is lost, slices share, and the fast ways say what the slow ones do."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from heedful import Explanation
from heedful.errors import Mistake
from heedful.explanation import files as explanation_file
from heedful.explanation.attribution import Attribution, Check, Cost
from heedful.explanation.checks import check_columns
from heedful.explanation.columns import Cells, Columns
from heedful.explanation.record import Explained
from heedful.explanation.views import columns_of, views
from heedful.records import Axes, Part, Words

LABELS = (("negative", "positive"), ("a", "b", "c"))
CHECKS = (None, Check("gap", 0.2, False, 0.1, "raise n_steps"), Check("R²", None, False), Check("gap", 1e-9, True))


@st.composite
def explained(draw: st.DrawFn, id: str) -> Explained:
    """One example with one or two texts, split into sub-tokens or not, and one to three attributions."""

    def words() -> Words:
        pieces = draw(st.lists(st.sampled_from(["good", "ba", "##d", "ß", "😀"]), min_size=1, max_size=6))
        gaps = draw(st.lists(st.integers(0, 2), min_size=len(pieces), max_size=len(pieces)))
        ends = np.cumsum([gap + len(piece) for gap, piece in zip(gaps, pieces, strict=True)])
        offsets = np.stack([ends - [len(piece) for piece in pieces], ends], axis=1).astype(np.int32)
        text = "".join(" " * gap + piece for gap, piece in zip(gaps, pieces, strict=True))
        return Words(text, tuple(piece.upper() for piece in pieces), offsets)

    parts: dict[Part, Words] = {"passage": words()}
    if draw(st.booleans()):
        parts["query"] = words()
    index = {
        part: tuple(np.cumsum(draw(st.lists(st.integers(0, 1), min_size=len(w), max_size=len(w)))).tolist())
        for part, w in parts.items()
        if draw(st.booleans())
    }
    labels = draw(st.sampled_from(LABELS))
    number = st.integers(-(2**40), 2**40).map(lambda eighths: eighths / 8)  # sums are exact, in any order

    def attribution(method: str) -> Attribution:
        signed, scored = draw(st.booleans()), draw(st.sets(st.sampled_from([*parts]), min_size=1))
        sign: Callable[[float], float] = float if signed else abs
        axes: Axes = draw(st.sampled_from(["", "pairs", "layers"]))
        n = sum(len(parts[p]) for p in parts if p in scored)
        place = st.integers(0, n - 1)
        two = st.tuples(place, place).map(lambda both: (-1, min(both), max(both)))
        places = {"": st.nothing(), "pairs": two, "layers": st.tuples(st.integers(0, 3), place, st.just(-1))}[axes]
        cells = sorted(draw(st.sets(places, max_size=5))) if axes else []
        return Attribution(
            method,
            draw(st.sampled_from(["attention", "saliency"])),
            signed,
            draw(st.sampled_from(labels)),
            {p: np.array([sign(draw(number)) for _ in parts[p].forms]) for p in parts if p in scored},
            draw(st.sampled_from([None, "token deleted"])),
            draw(st.sampled_from(CHECKS)),
            Cost(draw(st.integers(0, 99)), draw(st.integers(0, 9))),
            {"n_steps": draw(st.sampled_from([5, 50]))},
            sign(draw(number)) if draw(st.booleans()) else None,
            axes=axes,
            cells=Cells.of(np.array(cells).reshape(-1, 3).T, [sign(draw(number)) for _ in cells]),
        )

    methods = draw(st.lists(st.sampled_from(["lrp", "lime", "attention"]), min_size=1, max_size=3, unique=True))
    p = np.array(draw(st.lists(st.floats(0.1, 1), min_size=len(labels), max_size=len(labels))))
    truth = draw(st.sampled_from([None, *labels]))
    return Explained(
        id, parts["passage"], labels, p / p.sum(), tuple(map(attribution, methods)), parts.get("query"), truth, index
    )


@st.composite
def several(draw: st.DrawFn) -> list[Explained]:
    return [draw(explained(f"e{i}")) for i in range(draw(st.integers(0, 5)))]


def everything(e: Explained) -> str:
    """Every field, in every bit: JSON tells all of a float."""
    return json.dumps(asdict(e), default=lambda array: array.tolist())


def all_of(examples: Iterable[Explained]) -> list[str]:
    return [everything(e) for e in examples]


@settings(deadline=None, max_examples=60)
@given(several())
def test_records_become_columns_and_records_again(records: list[Explained]) -> None:
    columns = columns_of(records)
    check_columns(columns)
    made = list(views(columns, at_once=7))
    assert all_of(made) == all_of(records)
    again = columns_of(made)
    for name in ("examples", "texts", "positions", "attributions", "cells"):
        for one, other in zip(vars(getattr(columns, name)).values(), vars(getattr(again, name)).values(), strict=True):
            np.testing.assert_array_equal(one, other)
    assert columns.scores.tobytes() == again.scores.tobytes()
    assert columns.probabilities.tobytes() == again.probabilities.tobytes()
    assert (columns.label_sets, columns.methods) == (again.label_sets, again.methods)


@settings(deadline=None, max_examples=40)
@given(several(), st.slices(5))
def test_slices_are_those_of_a_list_and_share_what_they_can(records: list[Explained], some: slice) -> None:
    ex = Explanation(records, "r")
    assert all_of(ex[some]) == all_of(records[some])
    assert all_of(ex.examples) == all_of(records)
    for i in range(-len(records), len(records)):
        assert everything(ex[i]) == everything(records[i])
    with pytest.raises(IndexError):
        ex[len(records)]
    half = ex[1:3].columns
    for e, whole in ((half.texts, ex.columns.texts), (half.attributions, ex.columns.attributions)):
        for name, column in vars(e).items():
            assert len(column) == 0 or np.shares_memory(column, getattr(whole, name))
    if len(half):
        assert np.shares_memory(half.scores, ex.columns.scores)
        scores = next(iter(ex[1].attributions[0].scores.values()))
        assert np.shares_memory(scores, ex.columns.scores)
        assert not scores.flags.writeable


@settings(deadline=None, max_examples=40)
@given(several())
def test_whole_columns_say_what_each_record_says(records: list[Explained]) -> None:
    """by_word, normalised, method and top, against the loops over records."""
    ex = Explanation(records)
    assert all_of(ex.by_word()) == all_of(slow_by_word(e) for e in records)
    assert all_of(ex.by_word()) == all_of(e.by_word() for e in records)
    scaled = [replace(e, attributions=tuple(a.normalised() for a in e.attributions)) for e in records]
    for fast, slow in zip(ex.normalised(), scaled, strict=True):
        for a, b in zip(fast.attributions, slow.attributions, strict=True):
            np.testing.assert_allclose(a.flat(), b.flat(), rtol=1e-12)
            np.testing.assert_allclose(a.cells.score, b.cells.score, rtol=1e-12)
            assert (a.special is None) == (b.special is None)
            assert a.special is None or a.special == pytest.approx(b.special, rel=1e-12)
    for name in ex.methods:
        kept = [
            replace(e, attributions=tuple(a for a in e.attributions if a.method == name))
            for e in records
            if any(a.method == name for a in e.attributions)
        ]
        assert all_of(ex.method(name)) == all_of(kept)


def slow_by_word(e: Explained) -> Explained:
    """Position by position."""
    words: dict[Part, Words] = {}
    groups: dict[Part, list[list[int]]] = {}
    for part, w in e.parts.items():
        index = e.word_index.get(part)
        number = range(len(w)) if index is None else index
        groups[part] = [[i for i in range(len(w)) if number[i] == n] for n in dict.fromkeys(number)]
        spans = [(w.offsets[g[0], 0], max(w.offsets[i, 1] for i in g)) for g in groups[part]]
        forms = w.forms if index is None else tuple(w.text[a:b] for a, b in spans)
        words[part] = Words(w.text, forms, np.array(spans, dtype=np.int32))

    def summed(a: Attribution) -> Attribution:
        found = {p: [np.add.reduce(s[g]) for g in groups[p]] for p, s in a.scores.items()}
        joined: list[int] = []  # the word of each score
        for p in a.scores:
            n = len(set(joined))
            joined += [n + k for i in range(len(a.scores[p])) for k, g in enumerate(groups[p]) if i in g]
        cells: dict[tuple[int, int, int], list[float]] = {}
        for layer, i, j, score in zip(*(column.tolist() for column in vars(a.cells).values()), strict=True):
            cells.setdefault((layer, joined[i], -1 if j < 0 else joined[j]), []).append(score)
        places = np.array(sorted(cells)).reshape(-1, 3).T
        sums = [np.add.reduce(cells[place]) for place in sorted(cells)]
        return replace(a, scores={p: np.array(s) for p, s in found.items()}, cells=Cells.of(places, sums))

    attributions = tuple(map(summed, e.attributions))
    return replace(e, **words, attributions=attributions, word_index={})  # type: ignore[arg-type]


@settings(deadline=None, max_examples=30)
@given(records=several(), rows=st.integers(1, 40))
def test_files_of_any_number_of_row_groups_keep_everything(
    records: list[Explained], rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ex, folder = Explanation(records, 'run, "1"'), tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explanation_file, "ROW_GROUP", rows)
        ex.save(folder / "x.parquet")
        ex.save(folder / "x.csv")
        ex.save(folder / "x.json")
        assert all_of(Explanation.load(folder / "x.parquet")) == all_of(records)
        whole = ex.to_arrow()
    assert whole.equals(ex.to_arrow()), "pieces are not to be seen"
    groups = pq.ParquetFile(folder / "x.parquet").metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    longest = max((sum(len(a.flat()) + len(a.cells) for a in e.attributions) for e in records), default=0)
    assert all(size <= max(rows, longest) for size in sizes)
    assert Explanation.from_json((folder / "x.json").read_text("utf-8")) == ex
    with (folder / "x.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    expected = whole.to_pylist()
    assert [row["word"] for row in table] == [row["word"] for row in expected]
    assert [float(row["score"]) for row in table] == [row["score"] for row in expected]
    assert [row["run"] for row in table] == [row["run"] for row in expected]


def test_other_endings_are_refused(tmp_path: Path) -> None:
    for name in ("why.txt", "why", "why.xlsx"):
        with pytest.raises(Mistake, match=r"the ending must be \.csv, \.html, \.json or \.parquet"):
            Explanation(()).save(tmp_path / name)
    Explanation(()).save(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_text("utf-8").startswith("<!doctype html>")


WORDS = Words("two words", ("two", "words"), np.array([[0, 3], [4, 9]], np.int32))
PLAIN = Attribution("lrp", "saliency", True, "negative", {"passage": np.array([0.5, -0.5])}, special=0.25)
THREE = [Explained(id, WORDS, LABELS[0], np.array([0.9, 0.1]), (PLAIN,)) for id in ("a", "b", "c")]


def broken(table: str | None, column: str, value: object, place: int) -> Columns:
    """Columns of three examples in which one value is wrong."""
    columns = columns_of(THREE)
    if table is None:
        changed = getattr(columns, column).copy()
        changed[place] = value
        return replace(columns, **{column: changed})
    rows = getattr(columns, table)
    changed = getattr(rows, column).copy()
    changed[place] = value
    return replace(columns, **{table: replace(rows, **{column: changed})})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (broken(None, "scores", math.nan, 3), "lrp on example 'b' has the score nan at position 1"),
        (broken(None, "scores", math.inf, 4), "lrp on example 'c' has the score inf at position 0"),
        (broken(None, "probabilities", 0.5, 2), "example 'b' needs 2 probabilities of sum 1"),
        (broken(None, "probabilities", math.nan, 5), "example 'c' needs 2 probabilities of sum 1"),
        (broken("positions", "end", 10, 3), "the passage of example 'b' needs a start and end inside the text"),
        (broken("positions", "start", -1, 2), "the passage of example 'b' needs a start and end inside the text"),
        (broken("positions", "start", 4, 4), "the passage of example 'c' needs a start and end inside the text"),
        (broken("attributions", "query", True, 1), "of example 'b', which has"),
        (broken("attributions", "passage", False, 2), "of example 'c', which has"),
        (broken("attributions", "special", math.inf, 1), "lrp on example 'b' has the score inf for special"),
        (broken("examples", "id", "a", 2), "two examples are called 'a'"),
    ],
)
def test_what_is_wrong_in_a_column_is_told_by_the_record(columns: Columns, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        check_columns(columns)


PAIRED = replace(PLAIN, axes="pairs", cells=Cells.of([[-1, -1], [0, 0], [0, 1]], [0.25, -1.5]))
LAYERED = replace(PLAIN, method="probe", axes="layers", cells=Cells.of([[0, 1], [0, 1], [-1, -1]], [1.0, 0.5]))


@pytest.mark.parametrize(
    ("method", "cells", "message"),
    [
        (PAIRED, ([-1], [1], [0]), "cells that are not pairs of its 2 positions"),
        (PAIRED, ([-1], [0], [2]), "cells that are not pairs of its 2 positions"),
        (PAIRED, ([0], [0], [1]), "cells that are not pairs of its 2 positions"),
        (PAIRED, ([-1, -1], [0, 0], [1, 1]), "two for one place"),
        (PAIRED, ([-1, -1], [1, 0], [1, 1]), "not in ascending order"),
        (LAYERED, ([-1], [0], [-1]), "cells that are not layers of its 2 positions"),
        (LAYERED, ([0], [0], [1]), "cells that are not layers of its 2 positions"),
        (PLAIN, ([-1], [0], [1]), "names no axes for them"),
    ],
)
def test_cells_that_belong_to_nothing_are_refused(method: Attribution, cells: object, message: str) -> None:
    """By the record, and by the columns, which then ask the record."""
    wrong = Cells.of(cells, np.ones(len(cells[0])))  # type: ignore[index]
    with pytest.raises(Mistake, match=message):
        replace(THREE[0], attributions=(replace(method, cells=wrong),))
    right = columns_of([replace(THREE[0], attributions=(replace(method, cells=Cells.none()),))])
    counted = replace(right.attributions, n_cells=np.array([len(wrong)]))
    with pytest.raises(Mistake, match=message):
        check_columns(replace(right, cells=wrong, attributions=counted))


def test_a_cell_is_a_number_of_the_sign_that_its_method_has() -> None:
    for method in (replace(PAIRED, cells=Cells.of([[-1], [0], [1]], [math.nan])), replace(PAIRED, signed=False)):
        with pytest.raises(Mistake, match=r"has a cell that is not a finite number|declared unsigned"):
            replace(THREE[0], attributions=(replace(method, scores={"passage": np.ones(2)}),))


def test_pairs_and_layers_are_looked_at_tabulated_and_drawn(tmp_path: Path) -> None:
    ex = Explanation([replace(THREE[0], attributions=(PAIRED, LAYERED)), THREE[1]])
    pairs, layers = ex[0].pairs("lrp"), ex[0].layers("probe")
    np.testing.assert_array_equal(pairs.scores, [[0.25, -1.5], [-1.5, 0.0]])
    assert pairs.top() == [(0, 1, -1.5)]
    assert pairs.top(across=True) == []
    assert list(pairs.to_pandas().columns) == ["two", "words"]
    np.testing.assert_array_equal(layers.scores, [[1.0, 0.0], [0.0, 0.5]])
    with pytest.raises(Mistake, match="lrp does not say what pairs of words do together"):
        ex[1].pairs("lrp")
    frame = ex.to_pandas()
    rows = frame[frame["other_word"].notna()]
    assert rows[["word", "other_word", "score"]].values.tolist() == [["two", "two", 0.25], ["two", "words", -1.5]]
    rows = frame[frame["layer"].notna()]
    assert rows[["word", "layer", "score"]].values.tolist() == [["two", 0, 1.0], ["words", 1, 0.5]]
    assert list(ex.top(1)["score"]) == [0.5, 0.5, 0.5], "cells are not words"
    assert "other_word" not in ex[1:].to_pandas().columns, "only where a method has them"
    page = ex.to_html()
    assert "<svg" in page
    assert "two … words: -1.5" in page
    assert "layer 1" in page
    console = Console(width=120, file=io.StringIO(), no_color=True)
    ex.show(console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "together: two … words -1.5" in shown
    assert "layer 1: words +0.5" in shown
    ex.save(tmp_path / "x.parquet")
    assert Explanation.load(tmp_path / "x.parquet") == ex
    assert Explanation.from_json(ex.to_json()) == ex


def test_an_unsigned_method_has_no_score_below_zero_in_any_column() -> None:
    columns = columns_of(THREE)
    unsigned = replace(columns, methods=(columns.methods[0]._replace(signed=False),))
    with pytest.raises(Mistake, match=r"'a' has the score -0\.5 at position 1, but is declared unsigned"):
        check_columns(unsigned)


def test_no_method_explains_a_label_twice() -> None:
    columns = columns_of([replace(e, attributions=(PLAIN, replace(PLAIN, method="lime"))) for e in THREE])
    lrp, lime = columns.methods
    with pytest.raises(Mistake, match="example 'a' needs attributions of different method or target"):
        check_columns(replace(columns, methods=(lrp, lime._replace(name="lrp"))))


def test_a_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(Mistake, match="the passage of example 'a' is not a text"):
        replace(THREE[0], passage=replace(WORDS, text=7))  # type: ignore[arg-type]


def test_special_tokens_are_shown_as_a_share() -> None:
    ex = Explanation(THREE[:1])
    assert "special tokens +0.25 (20% of everything)" in ex.to_html()
    assert ex.normalised()[0].attributions[0].about_special() == "special tokens +0.25 (20% of everything)"
    assert (
        "special tokens" not in Explanation([replace(THREE[0], attributions=(replace(PLAIN, special=None),))]).to_html()
    )
    silent = replace(PLAIN, special=0.0, scores={"passage": np.zeros(2)})
    assert silent.about_special() == "special tokens +0 (0% of everything)"


def test_what_fell_to_no_token_is_shown_and_kept(tmp_path: Path) -> None:
    whole = replace(PLAIN, rest=-0.75)
    told = "special tokens +0.25 (12% of everything), positions and biases -0.75 (38% of everything)"
    ex = Explanation([replace(THREE[0], attributions=(whole,)), *THREE[1:]])
    assert told in ex.to_html()
    ex.save(tmp_path / "x.parquet")
    assert Explanation.load(tmp_path / "x.parquet") == ex
    assert Explanation.from_json(ex.to_json()) == ex
    assert ex[0].attributions[0].rest == -0.75
    assert ex[1].attributions[0].rest is None
    halved = Explanation([replace(THREE[0], attributions=(replace(whole, scores={"passage": np.ones(2)}),))])
    assert halved.normalised()[0].attributions[0].rest == -0.375 == halved[0].attributions[0].normalised().rest
    with pytest.raises(Mistake, match="has the score inf for what is not a token"):
        check_columns(broken("attributions", "rest", math.inf, 1))


def test_a_file_whose_records_were_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    Explanation(THREE).save(path)
    table = pq.read_table(path)
    stream = table["record"][0].as_py()
    place = table.schema.get_field_index("record")
    for changed in (stream[: len(stream) // 2], stream.replace(b"two", b"too"), b""):
        assert changed != stream
        column = pa.array([changed, *[None] * (len(table) - 1)], pa.large_binary())
        pq.write_table(table.set_column(place, "record", column), path)
        with pytest.raises(Mistake, match="was changed after it was saved"):
            Explanation.load(path)

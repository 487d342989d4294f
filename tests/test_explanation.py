"""The result of `explain`: nothing is lost, mixed up or shown when it is wrong."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from dataclasses import replace
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
from heedful.explanation.explanation import Attribution, Check, Cost, Explained
from heedful.records import Words
from test_heatmap import Reader, cut

LABELS = ("negative", "positive")
FAILED = Check("completeness gap", 0.21, False, 0.12, "it missed 12% of the change: raise n_steps")


def attribution(scores: object, method: str = "lrp", query: object = None, **more: object) -> Attribution:
    parts = {"passage": np.asarray(scores, dtype=float)} | ({} if query is None else {"query": np.asarray(query)})
    facts = {"kind": "saliency", "signed": True, "target": "negative"} | more
    return Attribution(method=method, scores=parts, **facts)  # type: ignore[arg-type]


def example(id: str = "a", text: str = "a waste of a film", *attributions: Attribution, **more: object) -> Explained:
    words = cut(text)
    given = attributions or (attribution(np.linspace(-1, 1, len(words))),)
    return Explained(id, words, LABELS, np.array([0.9, 0.1]), given, **more)  # type: ignore[arg-type]


@pytest.fixture
def ex() -> Explanation:
    attention = attribution([0.1, 0.2, 0.3, 0.1, 0.3], "attention", kind="attention", signed=False, cost=Cost(1))
    gradients = attribution(
        [0.1, -0.7, 1 / 3, 0, 1e-300],
        "integrated_gradients",
        query=[0.5, -0.0],
        removal="baseline 0",
        check=FAILED,
        cost=Cost(50, 50),
        options={"n_steps": 50, "rule": ("midpoint", None)},
    )
    undefined = attribution([0, 0, 0, 0, 0], "lime", check=Check("R²", math.nan, False))
    first = example("a", "a waste of a film", attention, gradients, undefined, query=cut("why not?"), truth="positive")
    return Explanation((first, example("b:2", "schöner Film 😀")), run="demo")


def test_the_table_says_what_the_records_say(ex: Explanation) -> None:
    rows = ex.to_arrow().to_pylist()
    slow = [
        {
            "run": "demo",
            "example": e.id,
            "part": part,
            "position": i,
            "word": words.surface(i),
            "token": words.forms[i],
            "start": words.offsets[i, 0],
            "end": words.offsets[i, 1],
            "method": a.method,
            "kind": a.kind,
            "signed": a.signed,
            "target": a.target,
            "probability": e.probabilities[e.labels.index(a.target)],
            "truth": e.truth,
            "score": a.scores[part][i],
        }
        for e in ex
        for a in e.attributions
        for part, words in e.parts.items()
        if part in a.scores
        for i in range(len(words))
    ]
    assert rows == slow
    frame = ex.to_pandas()
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == slow


def test_saving_keeps_everything(ex: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "why.parquet"
    ex.save(path)
    loaded = Explanation.load(path)
    assert loaded == ex
    assert [p.name for p in tmp_path.iterdir()] == ["why.parquet"]
    a = loaded[0].attribution("integrated_gradients")
    assert a.check == FAILED
    assert a.cost == Cost(50, 50)
    assert a.options == {"n_steps": 50, "rule": ["midpoint", None]}
    assert loaded[0].passage == ex[0].passage
    assert (loaded[0].truth, loaded[0].predicted, loaded.run) == ("positive", "negative", "demo")
    assert pq.read_table(path).drop_columns(["record"]).equals(ex.to_arrow()), "others read the same rows"


@settings(max_examples=30, deadline=None)
@given(
    text=st.text(min_size=1).filter(lambda t: t.strip()),
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=60, max_size=60),
    p=st.floats(0, 1),
)
def test_any_text_and_score_survive(
    text: str, numbers: list[float], p: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = cut(text)
    scores = np.resize(numbers, len(words))
    one = Explained(text, words, LABELS, np.array([p, 1 - p]), (attribution(scores, removal=text),), truth=text)
    made = Explanation((one,), run=text)
    path = tmp_path_factory.mktemp("any") / "x.parquet"
    made.save(path)
    assert Explanation.load(path) == made
    assert Explanation.from_json(made.to_json()) == made
    back = Explanation.load(path)[0]
    assert back.attributions[0].scores["passage"].tobytes() == scores.tobytes()
    assert back.probabilities.tobytes() == one.probabilities.tobytes()
    html = Reader(made.to_html())
    assert {tag for tag, _ in html.tags} == {"div", "style", "b", "bdi", "span"}
    assert not any(name.startswith("on") or name in ("src", "href", "style") for _, a in html.tags for name in a)


def test_json_is_strict_and_complete(ex: Explanation) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    record = json.loads(ex.to_json(), parse_constant=refuse)
    first = record["examples"][0]
    assert first["predicted"] == "negative"
    assert first["attributions"][1]["scores"]["query"] == [0.5, -0.0]
    assert first["attributions"][2]["check"]["value"] is None
    assert Explanation.from_json(ex.to_json()) == ex


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "heedful explanation 1"}', '{"format": "x"}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(Mistake, match="not the JSON of an explanation"):
        Explanation.from_json(text)


def test_a_file_that_is_not_ours_or_was_changed_is_refused(ex: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with pytest.raises(Mistake, match="is not a file"):
        Explanation.load(path)
    path.write_text("word,score\n")
    with pytest.raises(Mistake, match="not a Parquet file"):
        Explanation.load(path)
    pq.write_table(pa.table({"word": ["a"], "score": [1.0]}), path)
    with pytest.raises(Mistake, match=r"not a Parquet file that Explanation\.save wrote"):
        Explanation.load(path)
    ex.save(path)
    table = pq.read_table(path)
    whole = path.read_bytes()
    for broken in (whole[:-20], whole[:10] + whole[30:], whole[:40] + bytes(200) + whole[240:]):
        path.write_bytes(broken)
        with pytest.raises(Mistake, match=r"not a Parquet file that Explanation\.save wrote"):
            Explanation.load(path)
    for changed in (table.slice(1), table.slice(0, len(table) - 1), table.take(list(range(len(table)))[::-1])):
        pq.write_table(changed, path)
        with pytest.raises(Mistake, match="was changed after it was saved"):
            Explanation.load(path)


def test_a_failed_save_leaves_the_old_file(ex: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "why.parquet"
    ex[1:].save(path)

    def full(writer: object, table: object) -> None:
        assert len([*tmp_path.iterdir()]) == 2, "what is half written is beside the old file"
        raise OSError("disk full")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="disk full"):
        ex.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["why.parquet"]
    assert Explanation.load(path) == ex[1:]
    with pytest.raises(Mistake, match="folder that exists"):
        ex.save(tmp_path / "nowhere" / "why.parquet")
    with pytest.raises(Mistake, match="folder that exists"):
        ex.save(tmp_path)


def test_nothing_explained_is_a_table_without_rows(tmp_path: Path) -> None:
    none = Explanation((), run="r")
    none.save(tmp_path / "none.parquet")
    assert Explanation.load(tmp_path / "none.parquet") == none
    assert none.to_arrow().schema == Explanation((example(),)).to_arrow().schema
    assert len(none.top(3)) == 0


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=30), st.booleans())
def test_normalised_scores_sum_to_one(numbers: list[float], split: bool) -> None:
    parts = ([numbers[:1], numbers[1:]]) if split else [numbers]
    words = [cut("w " * len(part)) for part in parts]
    a = attribution(parts[0], query=parts[1] if split else None)
    e = Explained("a", words[0], LABELS, np.array([1, 0]), (a,), query=words[1] if split else None)
    flat = Explanation((e,)).normalised()[0].attributions[0].flat()
    assert np.abs(flat).sum() == pytest.approx(1.0 if any(numbers) else 0.0)
    assert np.isfinite(flat).all()
    if (peak := np.abs(numbers).max()) < 1e290:
        np.testing.assert_allclose(flat * np.abs(numbers).sum(), numbers, atol=1e-9 * peak)


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=1, max_size=12), st.integers(1, 15))
def test_top_takes_the_largest_and_the_earlier_of_equals(numbers: list[float], k: int) -> None:
    e = example("a", "w " * len(numbers), attribution(numbers), attribution(numbers[::-1], "occlusion"))
    top = Explanation((e, replace(e, id="b"))).top(k)
    for (_, method), rows in top.groupby(["example", "method"]):
        values = numbers if method == "lrp" else numbers[::-1]
        assert rows["position"].tolist() == sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))[:k]
        assert rows["rank"].tolist() == list(range(1, len(rows) + 1))
    assert len(top) == 4 * min(k, len(numbers))
    with pytest.raises(Mistake, match="at least 1"):
        Explanation((e,)).top(0)


def test_sub_tokens_sum_to_words_and_repeated_words_stay_apart() -> None:
    words = Words(
        "bad badly bad", ("bad", "bad", "##ly", "bad"), np.array([[0, 3], [4, 7], [7, 9], [10, 13]], np.int32)
    )
    a = attribution([1.0, 2.0, -0.5, 4.0], query=[0.25, 0.5])
    e = Explained("a", words, LABELS, np.array([1, 0]), (a,), cut("or not"), word_index={"passage": (0, 1, 1, 2)})
    joined = Explanation((e,)).by_word()
    rows = joined.to_pandas()
    assert rows["word"].tolist() == ["bad", "badly", "bad", "or", "not"]
    assert rows["score"].tolist() == [1.0, 1.5, 4.0, 0.25, 0.5]
    assert joined.by_word() == joined
    assert Explanation.from_json(Explanation((e,)).to_json()).by_word() == joined


def test_selection(ex: Explanation) -> None:
    assert len(ex) == 2
    assert [e.id for e in ex] == ["a", "b:2"]
    assert ex[-1].id == "b:2"
    assert [e.id for e in ex[1:]] == ["b:2"]
    assert ex.methods == ["attention", "integrated_gradients", "lime", "lrp"]
    assert ex.method("lime").methods == ["lime"]
    assert len(ex.method("lrp")) == 1
    with pytest.raises(Mistake, match="Did you mean 'lrp'"):
        ex.method("lpr")
    with pytest.raises(Mistake, match="Known: lrp"):
        ex[1].attribution("shap")


def test_options_from_arrays_are_kept_as_json() -> None:
    a = attribution([1], options={"baselines": np.zeros(2), "n_steps": np.int64(50)})
    assert a.options == {"baselines": [0.0, 0.0], "n_steps": 50}
    with pytest.raises(ValueError, match="not JSON compliant"):
        attribution([1], options={"tolerance": math.nan})


def test_scores_cannot_be_changed_from_outside() -> None:
    mine = np.array([1.0, 2.0])
    e = example("a", "two words", attribution(mine))
    mine[0] = 99
    assert e.attributions[0].scores["passage"].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        e.attributions[0].scores["passage"][0] = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: example("a", "two words", attribution([1, math.nan])), "nan at position 1"),
        (lambda: example("a", "two words", attribution([1])), r"shape \(1,\) for 2 words"),
        (lambda: example("a", "two words", attribution([1, -1], signed=False)), "declared unsigned"),
        (lambda: example("a", "two words", attribution([1, 1], target="negativ")), "Did you mean 'negative'"),
        (lambda: example("a", "two words", attribution([1, 1], query=[1])), "which has"),
        (lambda: example("a", "one", attribution([1]), attribution([2])), "different method or target"),
        (lambda: example("a", "  "), "no words: there is nothing to explain"),
        (lambda: example("a", "half \ud83d pair"), "character 5 is half of a pair"),
        (lambda: example("a", "one", word_index={"passage": (0, 1)}), "ascending word index"),
        (lambda: replace(example(), probabilities=np.array([0.5, math.nan])), "probabilities of sum 1"),
        (lambda: replace(example(), probabilities=np.array([0.5, 0.2])), "probabilities of sum 1"),
        (lambda: replace(example(), passage=Words("ab", ("b", "a"), np.array([[1, 2], [0, 1]]))), "in order"),
        (lambda: replace(example(), passage=Words("ab", ("b",), np.array([[1, 3]]))), "inside the text"),
        (lambda: Explanation((example("a"), example("a"))), "two examples are called 'a'"),
    ],
)
def test_what_is_wrong_is_refused(make: object, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_an_undefined_check_never_passes(bad: float | None) -> None:
    check = Check("R²", bad, True)
    assert (check.value, check.ok) == (None, False)
    assert str(check) == "✗ failed: R² undefined"


def printed(ex: Explanation, **how: object) -> str:
    out = io.StringIO()
    ex.show(Console(file=out, width=200, **how))  # type: ignore[arg-type]
    return out.getvalue()


def test_without_colours_the_numbers_are_there(ex: Explanation) -> None:
    out = printed(ex)
    assert "\x1b" not in out
    for said in ("negative 0.900", "positive 0.100", "true: positive", "waste -0.7", "✗ failed: completeness gap 0.21"):
        assert said in out
    assert "raise n_steps" in out
    assert out.index("negative 0.900") < out.index("attention") < out.index("integrated_gradients")
    assert "all scores are 0" in out


def test_with_colours_words_are_painted(ex: Explanation) -> None:
    out = printed(ex, force_terminal=True, color_system="truecolor")
    assert "\x1b[4;38;2;245;245;245;48;2;168;84;0mwaste" in out, "the strongest word against, underlined on orange"
    assert "against it" in out


def test_html_tells_the_prediction_the_parts_and_the_checks(ex: Explanation) -> None:
    read = Reader(ex.to_html())
    for said in ("negative 0.900", "true: positive", "baseline 0", "raise n_steps", "query", "a waste of a film"):
        assert said in read.text
    groups = [a["aria-label"] for _, a in read.tags if a.get("role") == "group"]
    assert len(groups) == sum(len(a.scores) for e in ex for a in e.attributions)
    assert groups[1] == (
        "integrated_gradients, saliency of the passage for negative: "
        "waste -0.7 · of +0.333 · a (at 0) +0.1 · film +1e-300"
    )
    spans = [a for tag, a in read.tags if tag == "span" and "title" in a]
    assert len(spans) == len(ex.to_arrow())


def test_a_query_that_is_not_explained_is_still_shown() -> None:
    asked = Explanation((example("a", "a film", query=cut("is it <good>?")),))
    assert "query: is it <good>?" in Reader(asked.to_html()).text
    assert "query: is it <good>?" in printed(asked)


def test_no_field_can_command_the_terminal() -> None:
    evil = "\x1b[2J\u202e"
    a = attribution([1], evil, removal=evil, target=evil, check=Check(evil, 1, False, sentence=evil))
    e = Explained(evil, cut("one"), (evil, "other"), np.array([0.2, 0.8]), (a,), query=cut(evil), truth=evil)
    ex = Explanation((e,))
    assert not set("\x1b\u202e") & set(printed(ex))
    assert not set("\x1b\u202e") & set(ex.to_html())


def test_a_notebook_is_not_flooded() -> None:
    many = Explanation(tuple(example(f"e{i}") for i in range(25)))
    assert "… and 15 more examples" in many._repr_html_()
    assert many.to_html().count('class="hf-example"') == 25
    assert repr(many) == "<Explanation of 25 examples by lrp>"


def test_results_are_read_without_torch_or_pandas() -> None:
    code = (
        "import sys; from heedful import Explanation; ex = Explanation(()); ex.to_html(); ex.to_json(); ex.show();"
        "print(sorted({'torch', 'pandas', 'spacy'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_files_of_before_have_fewer_columns_and_are_read(ex: Explanation, tmp_path: Path) -> None:
    ex.save(tmp_path / "new.parquet")
    table = pq.read_table(tmp_path / "new.parquet")
    pq.write_table(table.drop_columns(["probability", "truth"]), tmp_path / "old.parquet")
    assert Explanation.load(tmp_path / "old.parquet") == ex
    pq.write_table(table.drop_columns(["word"]), tmp_path / "cut.parquet")
    with pytest.raises(Mistake, match="was changed after it was saved"):
        Explanation.load(tmp_path / "cut.parquet")

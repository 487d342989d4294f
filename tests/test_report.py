"""The page: one file that needs nothing else, says what was found, and gives hostile text no way out."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Explanation
from heedful.errors import Mistake
from heedful.experiments.correlation.published import overall_means
from heedful.figures.script import licences
from heedful.files import write_json
from heedful.measure.levels import shrink_means
from heedful.records import Example, Part
from heedful.report import export, findings, instances, sample
from heedful.report import shell as assets
from heedful.report.cards import STEPS, check_says
from heedful.report.describe import commands, warning
from heedful.report.findings import Illustrated, choose
from heedful.report.page import figures, page
from heedful.report.published import published_in, published_tables
from heedful.report.words import effects_by_word, relied_sentence, words_by_label
from heedful.store.checks import write_signed
from heedful.store.run import Run
from material import HOSTILE, explained_of, findings_of, illustrated, tables_of, words_of


@pytest.fixture(scope="module")
def subject() -> Illustrated:
    return illustrated()


@pytest.fixture(scope="module")
def html(subject: Illustrated) -> str:
    return page([subject], "heedful report runs/run -o report.html")


class Elements(HTMLParser):
    """Start tags with their attributes, the text of scripts apart from the text that people see."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data


def test_the_page_is_whole_small_and_asks_for_nothing(html: str) -> None:
    found = Elements(html)
    assert len(html.encode()) < 5_000_000
    assert not [tag for tag, _ in found.tags if tag in ("link", "iframe", "object", "embed", "base")]
    assert not [tag for tag, attributes in found.tags if {"src", "srcset", "style"} & set(attributes)]
    assert not [attributes for _, attributes in found.tags if any(name.startswith("on") for name in attributes)]
    links = [a["href"] or "" for tag, a in found.tags if tag == "a" and "hidden" not in a]
    ids = [a["id"] for _, a in found.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    assert html.count("vegaEmbed=") == 1


def test_the_policy_names_what_may_run_by_its_hash(html: str) -> None:
    found = Elements(html)
    policy = next(a["content"] or "" for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    data = [a.get("type") == "application/json" for tag, a in found.tags if tag == "script"]
    runs = [text for text, is_data in zip(found.scripts, data, strict=True) if not is_data]
    assert len(runs) == 2
    assert all(assets.digest(text) in policy for text in runs)
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_the_page_says_what_was_found(subject: Illustrated, html: str) -> None:
    text = re.sub(r"\s+", " ", Elements(html).text)
    for verdict in subject.verdicts().values():
        for said in (verdict.question, verdict.answer, verdict.sentence, verdict.rule):
            assert re.sub(r"\s+", " ", said) in text
    for choice in subject.choices:
        assert choice.title in text
    assert "heedful train sst --encoder bilstm --attention additive --seed 0" in text
    assert "heedful run correlation permutation adversarial --model runs/run --split test" in text
    assert "heedful report runs/run -o report.html" in text
    assert "completeness gap: within bounds in 0 of 60" in text
    drawn = {a["data-figure"] for tag, a in Elements(html).tags if "data-figure" in a}
    assert drawn == set(figures(subject))


def test_hostile_text_stays_text(html: str) -> None:
    found = Elements(page([illustrated(hostile=True)]))
    allowed = {tag for tag, _ in Elements(html).tags}
    assert {tag for tag, _ in found.tags} <= allowed
    assert not [a for _, a in found.tags if any(name.startswith("on") for name in a)]
    executed = [
        t
        for t, (tag, a) in zip(found.scripts, [x for x in found.tags if x[0] == "script"], strict=True)
        if "type" not in a
    ]
    assert not any("hacked" in text for text in executed)
    assert HOSTILE[1] in found.text
    assert "\u202e" not in found.text
    assert "x" * 1000 not in found.text


@given(st.text() | st.sampled_from(HOSTILE[:7]))
def test_embedded_json_can_hold_anything(text: str) -> None:
    made = assets.embed_json({"key": text})
    assert json.loads(made) == {"key": text}
    assert not set("<>&\u2028\u2029") & set(made)
    assert Elements(f"<script>{made}</script><p>").scripts == [made]


def test_several_runs_stand_in_one_page_with_a_comparison(subject: Illustrated) -> None:
    other = illustrated(name="other", change=0.5)
    html = page([subject, other])
    text = Elements(html).text
    assert html.count('class="run"') == 2
    assert "Can the attention of these 2 models be believed?" in text
    assert text.count("believe its attention?") == 1
    assert html.count("vegaEmbed=") == 1


def test_without_texts_the_page_holds_numbers_only(subject: Illustrated) -> None:
    html = page([Illustrated(subject.findings)])
    assert "nobody" not in Elements(html).text
    assert 'id="instances-0"' not in html
    assert "Verdicts" in html


def test_one_experiment_is_enough_for_a_page() -> None:
    tables = {"permutation": tables_of()["permutation"]}
    html = page([Illustrated(findings_of(tables))])
    assert html.count("data-figure=") == html.count('data-figure="permutation"')


def test_examples_are_chosen_for_what_they_say(subject: Illustrated) -> None:
    tables, by_title = subject.findings.tables, {choice.title: choice.place for choice in subject.choices}
    assert len(set(by_title.values())) == len(subject.choices) == 8
    rows = tables["correlation"].filter(pa.array(np.array(tables["correlation"]["pair"]) == "attention/omission"))
    readable = [p for p, e in subject.examples.items() if len(e.passage) >= 6]
    same, tau = (np.array(rows["same_first"]), np.array(rows["tau"]))  # the strongest word first, then the order of all
    assert by_title["Attention agrees"] == max(readable, key=lambda place: (same[place], tau[place]))
    assert by_title["Attention disagrees"] == min(readable, key=lambda place: (same[place], tau[place]))
    assert same[by_title["Attention agrees"]] > same[by_title["Attention disagrees"]]
    predicted = np.array(rows["predicted"])
    wrong = [by_title["A wrong prediction"], by_title["Another wrong prediction"]]
    assert all(subject.examples[place].label != predicted[place] for place in wrong)
    assert choose([subject.findings.trial("permutation")], {}) == []


def test_words_are_named_by_their_mean_effect_drawn_to_that_of_all(subject: Illustrated) -> None:
    """The slow way: every text, every word, one value for each text that holds the word."""
    label = "negative"
    by_word: dict[str, list[float]] = {}
    for e in subject.counted:
        scores, words = e.attribution("omission").scores["passage"], [w.lower() for w in e.passage.forms]
        for word in set(words) if e.predicted == label else ():
            by_word.setdefault(word, []).append(float(np.mean(scores[[w == word for w in words]])))
    known = {word: np.array(found) for word, found in by_word.items() if len(found) >= 3}
    means = dict(zip(known, shrink_means(list(known.values())), strict=True))
    rows = effects_by_word(subject.counted, subject.counted_places)[label]
    assert [row["word"] for row in rows] == sorted(means, key=lambda word: (-means[word].value, word))
    for row in rows:
        mean = means[row["word"]]
        assert [row["effect"], row["low"], row["high"]] == pytest.approx([mean.value, mean.low, mean.high], abs=1e-4)
        assert row["texts"] == len(by_word[row["word"]]) == len(row["places"])
        assert all(row["word"] in [w.lower() for w in subject.examples[place].passage.forms] for place in row["places"])


def test_a_word_that_was_seen_once_never_leads() -> None:
    """Three texts rely on one word; a fourth relies more on a word that no other has."""
    texts = ["a dull film", "so dull a film", "dull film", "a film of warmth"]
    explained = []
    for i, text in enumerate(texts):
        forms = text.split()
        effect = np.array([{"dull": 0.4 + 0.05 * i, "warmth": 0.9}.get(form, 0.01 * i) for form in forms])
        one = explained_of(0, Example(f"x:{i}", words_of(forms), 0), ("negative", "positive"))
        attributions = [
            replace(a, scores={"passage": effect if a.method == "omission" else np.full(len(forms), 1 / len(forms))})
            for a in one.attributions
        ]
        explained.append(replace(one, attributions=tuple(attributions)))
    (words,) = words_by_label(Explanation(tuple(explained)), range(4))
    assert words.relied[0]["word"] == "dull"
    assert "warmth" not in [row["word"] for row in words.relied]
    assert words.relied[0]["texts"] == 3
    assert words.relied[0]["places"] == [0, 1, 2]
    assert relied_sentence([words]).startswith("It relied most on “dull”")


def test_the_sample_says_how_explainers_compare(subject: Illustrated) -> None:
    known = [subject.examples[place].evidence for place in subject.sampled]
    found = {e.method: e for e in sample.explainers(subject.sample, known)}
    hits = sample.hits(subject.sample, known, "omission")
    assert found["omission"].found == np.mean(hits)
    assert found["attention"].agreement is None
    assert (found["integrated_gradients"].passed, found["omission"].passed) == (0, None)


def test_instances_hold_every_text_within_a_budget(subject: Illustrated, monkeypatch: pytest.MonkeyPatch) -> None:
    tables, examples = subject.findings.tables, subject.examples
    listed = instances.list_texts(tables, examples, ("a", "b"))
    assert [row[0] for row in listed["rows"]] == list(examples)
    row, place = listed["rows"][5], 5
    weights = tables["adversarial"]["attention"][place].as_py()
    assert len(row[5]) == len(row[6]) == len(row[4]) == len(weights)
    assert row[4] == [examples[place].passage.surface(i) for i in range(len(weights))]
    monkeypatch.setattr(instances, "BUDGET", 100)
    few = instances.list_texts(tables, examples, ("a", "b"), always=[7])
    assert len(few["rows"]) < len(listed["rows"])
    assert 7 in [row[0] for row in few["rows"]]
    assert few["total"] == len(examples)


def test_published_numbers_stand_beside_ours(subject: Illustrated) -> None:
    tables = published_tables(subject.findings)
    assert [table.title for table in tables] == ["Test scores", "Correlation of attention with other measures"]
    assert any("0.40 ± 0.21, 0.59" in row for row in tables[1].rows)
    assert any("negative" in row for row in tables[1].rows)
    assert 0.38 <= overall_means(subject.findings.trial("correlation"))["attention/gradient_x_input"] <= 0.4
    info = dict(subject.findings.info)
    info["config"] = info["config"] | {"dataset": "planted-single"}
    none, _ = published_in(("planted-single", "bilstm", "additive"))
    assert published_tables(replace(subject.findings, info=info, published=none)) == []


def test_a_model_that_does_not_predict_is_called_so(subject: Illustrated) -> None:
    assert warning(subject) == ""
    weak = replace(subject.findings, performance={**subject.findings.performance, "accuracy": 0.52})
    assert "always answering “negative” (0.50)" in warning(replace(subject, findings=weak))


def test_the_commands_make_the_run_again(subject: Illustrated) -> None:
    asked = {name: {"split": "test"} for name in ("correlation", "permutation")}
    asked["adversarial"] = {"split": "test", "limit": 9, "options": {"epsilon": 0.02, "method": "exact"}}  # type: ignore[dict-item]
    lines = commands(replace(subject.findings, asked=asked), "").splitlines()
    assert lines[0].startswith("heedful train ")
    assert "--runs" not in lines[0]
    elsewhere = commands(replace(subject.findings, path="other place/run"), "")
    assert "--runs 'other place'" in elsewhere.splitlines()[0]
    assert lines[1:] == [
        "heedful run correlation permutation --model runs/run --split test",
        "heedful run adversarial --model runs/run --split test --limit 9 --set epsilon=0.02",
        "heedful report runs/run -o report.html",
    ]


def test_findings_are_read_from_a_run_folder(subject: Illustrated, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    with pytest.raises(Mistake, match="no run folder"):
        findings.read(run)
    (run.path / "results").mkdir(parents=True)
    with pytest.raises(Mistake, match="not a run folder"):
        findings.read(run)
    write_json(run.path / "config.json", dict(subject.findings.info))
    with pytest.raises(Mistake, match="heedful run correlation permutation adversarial"):
        findings.read(run)
    write_json(run.path / "results" / "performance.summary.json", dict(subject.findings.performance))
    for name, table in subject.findings.tables.items():
        split = {"heedful": json.dumps({"split": "dev"})}
        pq.write_table(table.replace_schema_metadata(split), run.path / "results" / f"{name}.parquet")
        write_signed(run.path / "results" / f"{name}.summary.json", subject.findings.summaries[name])
    read = findings.read(run)
    assert read.split == "dev"
    assert read.tables["correlation"].equals(subject.findings.tables["correlation"])
    assert read.summaries == subject.findings.summaries
    pq.write_table(subject.findings.tables["adversarial"], run.path / "results" / "adversarial.parquet")
    with pytest.raises(Mistake, match="different splits"):
        findings.read(run)


def test_a_page_is_written_whole_and_only_as_html(html: str, tmp_path: Path) -> None:
    export.write_page(html, tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == html
    with pytest.raises(Mistake, match=r"ends in \.html"):
        export.write_page(html, tmp_path / "report.pdf")


@pytest.mark.parametrize("several", [False, True])
def test_the_outline_skips_no_level(subject: Illustrated, html: str, several: bool) -> None:
    """One h1; every other heading is at most one level below the one before it: as screen readers expect."""
    made = page([subject, illustrated(name="other")]) if several else html
    levels = [int(tag[1]) for tag, _ in Elements(made).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    chapters = [int(tag[1]) for tag, a in Elements(made).tags if a.get("class") == "chapter"]
    assert set(chapters) == ({3} if several else {2})
    assert levels.count(2) == (2 if several else len(chapters) + 1)  # and the headline, the verdict on all


def test_a_failed_check_says_what_can_be_done_on_a_page(subject: Illustrated) -> None:
    """There is no --n-steps here: the steps were raised already, and the reader is told what is left."""
    a = subject.chosen[0].attribution("integrated_gradients")
    assert a.check is not None
    told = check_says(replace(a, options=STEPS))
    assert told == "✗ after 400 steps 50% of the change is still missing: read these scores with care"
    assert "n-steps" in check_says(a)  # asked without them, as `heedful explain` does
    passed = replace(a, options=STEPS, check=replace(a.check, ok=True, value=0.001, relative=0.001, sentence=None))
    assert check_says(passed).startswith("✓")
    assert check_says(replace(a, check=None)) == ""


def test_a_low_tau_with_the_same_strongest_word_is_explained(subject: Illustrated) -> None:
    """As a reader would object: "these two agree!"."""
    place = next(i for i, choice in enumerate(subject.choices) if choice.title == "Attention disagrees")
    explained = subject.chosen[place]
    attention = explained.attribution("attention")
    same: dict[Part, Any] = {"passage": -attention.scores["passage"]}
    both = [replace(a, scores=same) if a.method == "omission" else a for a in explained.attributions]
    chosen = list(subject.chosen)
    chosen[place] = replace(explained, attributions=tuple(both))
    word = explained.passage.surface(int(attention.scores["passage"].argmax()))
    made = page([replace(subject, chosen=Explanation(tuple(chosen)))])
    assert f"Both put “{word}” first" in Elements(made).text


def test_the_page_carries_the_licences_of_what_it_carries(html: str) -> None:
    for said in ("Redistributions in binary form must reproduce", "Mike Bostock", "Vega-Embed", "fast-json-patch"):
        assert said in html
    assert licences().count("*/") == 0
    assert "</script" not in licences()


def test_where_there_is_no_terminal_long_tasks_say_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from heedful.engine.running import progress

    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    written = io.StringIO()
    shown = progress.Progress(Console(file=written, force_terminal=False))
    with shown.bar("explain", total=1200) as bar:
        bar.advance(400)
        bar.advance(800)
    lines = written.getvalue().splitlines()
    assert lines[0] == "explain"
    assert [line.rpartition(" after ")[0] for line in lines[1:]] == ["explain: 400 of 1,200", "explain: 1,200 of 1,200"]


def test_a_report_asks_a_model_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without structure: the texts whose words are counted are those that every method explains."""
    import webruns
    from heedful.api import pages
    from heedful.explainers import run as running

    run = webruns.make_trial(tmp_path, "Bert", webruns.SENTENCES, "correlation")
    asked: list[int] = []

    def listening(model: Any, some: Any, *given: Any, **options: Any) -> Explanation:
        asked.append(len(some))
        return explain(model, some, *given, **options)

    explain = running.explain
    monkeypatch.setattr(running, "explain", listening)
    monkeypatch.setattr(sample, "leave_words_out", lambda *_: pytest.fail("these words were left out already"))
    written = pages.write_report([run], tmp_path / "page.html")
    assert written.page.exists()
    assert "Words behind" in written.page.read_text() or "weakens a prediction" in written.page.read_text()
    assert asked == [4, 4, 2, 2]  # a few at a time, by the methods and by those that remove words

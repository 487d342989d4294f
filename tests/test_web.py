"""`heedful serve`: every page and its JSON twin, and what the playground computes, against the Python API."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from markupsafe import escape
from starlette.testclient import TestClient

import webruns
from heedful import server as web
from heedful.engine.sources.data import source_fingerprint
from heedful.engine.tasks.train import load
from heedful.errors import Mistake
from heedful.measure.distance import jsd, tvd
from heedful.models import AttentiveClassifier
from heedful.server.app import create_app
from heedful.server.question import TooLong
from heedful.server.stored.library import Library
from heedful.server.stored.results import StoredResults
from heedful.server.stored.verdicts import Verdicts
from heedful.store.checks import write_sums
from heedful.store.run import SEALED_TRIAL, Run
from heedful.store.texts import read_texts

A, B, NLI, BARE = (
    "made-average-additive-s0-1",
    "made-average-additive-s1-2",
    "pairs-cnn-additive-s0-3",
    "bare-bilstm-dot-s0-4",
)
TEXTS = webruns.SENTENCES * 5
LABELS3 = ("contradiction", "entailment", "neutral")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    webruns.make_run(runs, A, webruns.examples(TEXTS))
    webruns.make_run(runs, B, webruns.examples(TEXTS), seed=1)
    pairs = webruns.examples(webruns.SENTENCES, webruns.SENTENCES[::-1], 3)
    webruns.make_run(runs, NLI, pairs, LABELS3, encoder="cnn", task="nli", dataset="pairs", experiments=["permutation"])
    webruns.make_run(runs, BARE, webruns.examples(TEXTS), encoder="bilstm", dataset="bare", experiments=[])
    return runs


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Library(folder)), base_url="http://localhost") as opened:
        yield opened


def data(client: TestClient, address: str) -> Any:
    response = client.get(address, headers={"Accept": "application/json"})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


PAGES = [
    "/",
    "/?view=list&sort=accuracy",
    "/?measure=adversarial&dataset=made&q=average",
    f"/compare?a={A}&b={B}",
    f"/runs/{A}",
    f"/runs/{BARE}",
    f"/runs/{A}/correlation",
    f"/runs/{A}/correlation?pair=attention/omission&column=overlap&sort=-value&low=0.5&high=1",
    f"/runs/{A}/permutation",
    f"/runs/{A}/adversarial?label=1&alow=0.25&ahigh=0.5",
    f"/runs/{NLI}/permutation",
    f"/runs/{A}/examples/2",
    f"/runs/{A}/examples/2?methods=attention,lrp",
    f"/runs/{NLI}/examples/1?live=1",
    f"/runs/{BARE}/examples/1",
    f"/runs/{A}/words",
    f"/runs/{NLI}/words",
    f"/runs/{A}/playground",
    f"/runs/{A}/playground?text=a+good+film",
    f"/runs/{A}/playground?text=a+good+film&live=1",
    f"/runs/{NLI}/playground?text=a+good+film&query=it+is+good",
]


@pytest.mark.parametrize("address", PAGES)
def test_every_page_has_a_json_twin_at_its_address(client: TestClient, address: str) -> None:
    page = client.get(address, headers={"Accept": "text/html,application/json;q=0.9"})
    assert page.status_code == 200, page.text
    assert page.headers["content-type"].startswith("text/html")
    assert "<h1>" in page.text
    twin = client.get(address, headers={"Accept": "application/json"})
    assert twin.headers["content-type"] == "application/json"
    again = client.get(address + ("&" if "?" in address else "?") + "format=json")
    assert again.json() == twin.json()
    (offered,) = re.findall(r'<a href="([^"]*)">this page as JSON</a>', page.text)
    assert client.get(unescape(offered)).json() == twin.json()
    assert "NaN" not in twin.text


def test_overview_lists_filters_and_sorts_runs(client: TestClient) -> None:
    runs = data(client, "/")["runs"]
    assert [run["run"] for run in runs] == sorted([A, B, NLI, BARE])
    assert [run["run"] for run in data(client, "/?dataset=made&sort=seed")["runs"]] == [A, B]
    assert [run["run"] for run in data(client, "/?encoder=cnn")["runs"]] == [NLI]
    assert data(client, "/?q=nothing-like-that")["runs"] == []
    by_value = [run["mean"] for run in data(client, "/?sort=value&measure=adversarial&dataset=made")["runs"]]
    assert by_value == sorted(by_value, reverse=True)
    assert sum(next(r for r in runs if r["run"] == A)["counts"]) == len(TEXTS) - _undefined(client)


def _undefined(client: TestClient) -> int:
    return int(data(client, f"/runs/{A}/correlation")["undefined"])


def test_a_run_that_appears_or_breaks_is_seen(folder: Path, tmp_path: Path) -> None:
    library = Library(tmp_path)
    client = TestClient(create_app(library), base_url="http://localhost")
    assert data(client, "/")["runs"] == []
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    webruns.make_run(tmp_path, "new", webruns.examples(TEXTS[:2]), experiments=["permutation"])
    library._looked = -1e9
    found = data(client, "/?measure=permutation")
    assert [run["run"] for run in found["runs"]] == ["new"]
    assert list(found["broken"]) == ["broken"]
    (tmp_path / "new" / "results" / "permutation.parquet").write_bytes(b"not parquet")
    library._looked = -1e9
    assert data(client, "/?measure=permutation")["runs"][0]["counts"] == []
    response = client.get("/runs/new/permutation")
    assert response.status_code == 422
    assert "cannot be read" in response.text


def test_selection_of_a_bar_gives_exactly_its_texts(client: TestClient, folder: Path) -> None:
    rows = Run(folder / A).results.rows("adversarial")
    value, place = rows["jsd"].to_numpy(), rows["example"].to_numpy()
    edges = np.linspace(0, np.log(2), 21)
    seen: list[int] = []
    for low, high in pairwise(edges):
        found = data(client, f"/runs/{A}/adversarial?low={low:.6f}&high={high:.6f}&page=1")
        inside = (value >= low - 1e-6) & (value < high - 1e-6) if high < edges[-1] else value >= low - 1e-6
        assert found["selected"] == inside.sum()
        seen += [row["example"] for row in found["rows"]]
        assert set(place[inside][:25]) >= {row["example"] for row in found["rows"]}
    assert len(seen) == len(set(seen))


def test_paging_visits_every_text_once(client: TestClient) -> None:
    first = data(client, f"/runs/{A}/permutation")
    pages = [data(client, f"/runs/{A}/permutation?page={n}&sort=-value")["rows"] for n in (1, first["pages"])]
    places = [row["example"] for rows in pages for row in rows]
    assert first["pages"] == 2
    assert sorted(places) == list(range(len(TEXTS)))
    values = [row["value"] for rows in pages for row in rows]
    assert values == sorted(values, reverse=True)
    assert pages[0][0]["text"] in TEXTS


def test_the_grades_of_the_overview_are_those_of_the_verdicts(client: TestClient, folder: Path) -> None:
    """Also of summaries that have no verdict: then they are made from the rows, by the same function."""
    found = {run["run"]: run["believe"] for run in data(client, "/")["runs"]}
    assert set(found) == {A, B, NLI, BARE}
    assert found[BARE] is None
    for run in (A, B, NLI):
        assert found[run] == data(client, f"/runs/{run}")["judged"]["grade"]
    entries = [entry for entry in Library(folder).entries().values() if entry.name in (A, B, BARE)]
    stored = {entry.name: dict(entry.verdicts) for entry in entries}
    assert set(stored[A]) == {"correlation", "permutation", "adversarial"}
    old = [replace(entry, verdicts={}) for entry in entries]
    made = Verdicts(StoredResults())
    assert made.grades(old, patience=60) == ({A: found[A], B: found[B]}, 0)
    assert {entry.name: made.of(entry) for entry in old} == stored


def test_a_list_of_old_runs_does_not_wait_for_their_verdicts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    make = Verdicts._make

    def slowly(self: Verdicts, *of: Any) -> Any:
        go_on.wait(60)
        return make(self, *of)

    monkeypatch.setattr(Verdicts, "_make", slowly)
    library = Library(folder)
    for entry in library.entries().values():
        entry.verdicts.clear()
    client = TestClient(create_app(library), base_url="http://localhost")
    assert "3 runs are being computed" in client.get("/").text
    go_on.set()
    assert data(client, f"/runs/{A}")["judged"]["grade"]  # its own page waits
    data(client, f"/runs/{B}")
    data(client, f"/runs/{NLI}")
    page = client.get("/").text
    assert "data-refresh" not in page
    assert 'class="grade' in page


def test_a_folder_named_like_a_column_changes_no_number(folder: Path, client: TestClient, tmp_path: Path) -> None:
    """Hydra names folders so, and DuckDB takes such a name for a column unless it is told not to."""
    odd = tmp_path / "example=2" / "median=0.9" / "predicted=0" / "max_attention=0.1"
    shutil.copytree(folder, odd, symlinks=True)
    other = TestClient(create_app(Library(odd)), base_url="http://localhost")
    addresses = (
        f"/runs/{A}",
        f"/runs/{A}/permutation",
        f"/runs/{A}/examples/2",
        "/?measure=permutation",
        f"/runs/{A}/adversarial?label=1&alow=0.25&ahigh=0.5",
        f"/compare?a={A}&b={B}",
        f"/runs/{A}/correlation?pair=attention/omission&column=overlap&sort=-value&low=0.5&high=1",
    )
    for address in addresses:
        here, there = (json.dumps(data(one, address)).replace(str(odd), str(folder)) for one in (client, other))
        assert here == there, address


def test_rows_of_another_version_leave_the_page_standing(tmp_path: Path) -> None:
    run = webruns.make_run(tmp_path, "old", webruns.examples(TEXTS[:4]), experiments=["permutation", "adversarial"])
    rows = run.results.rows("adversarial").drop_columns(["bound"])
    pq.write_table(rows, run.path / "results" / "adversarial.parquet")
    library = Library(tmp_path)
    library.find("old").verdicts.clear()
    client = TestClient(create_app(library), base_url="http://localhost")
    assert list(data(client, "/runs/old")["judged"]["verdicts"]) == ["permutation"]
    assert client.get("/").status_code == 200


def test_the_words_are_those_of_the_report(client: TestClient, folder: Path) -> None:
    from heedful.explainers.run import explain
    from heedful.report.sample import COUNTED, choose_sample
    from heedful.report.words import words_by_label

    kept = read_texts(folder / A, "test", range(len(TEXTS)))
    assert kept is not None
    places = choose_sample(kept, COUNTED)
    chosen = [kept[place] for place in places]
    sample = explain(load(Run(folder / A)), chosen, ["attention", "omission"], of="probability")
    found = data(client, f"/runs/{A}/words")
    assert found["words"] == {one.label: list(one.relied) for one in words_by_label(sample, places)}
    assert found["texts"] == len(chosen)
    assert client.get(f"/runs/{BARE}/words").status_code == 422


def test_lists_say_what_was_right_and_what_was_attended_to(client: TestClient, folder: Path) -> None:
    stored = {row["example"]: row for row in Run(folder / A).results.rows("adversarial").to_pylist()}
    found = data(client, f"/runs/{A}/permutation")["rows"]
    for row in found:
        truth = ("negative", "positive")[row["example"] % 2]
        assert row["truth"] == truth
        assert row["right"] == (row["predicted"] == truth)
    page = client.get(f"/runs/{A}/permutation").text
    assert page.count("✓ right") == sum(row["right"] for row in found)
    assert page.count("✗ wrong") == sum(not row["right"] for row in found)
    strongest = [max(stored[row["example"]]["attention"]) for row in found]
    assert page.count('class="hf-u8"') >= len([weight for weight in strongest if weight > 0])
    assert f'<span class="quiet">text {found[3]["example"]}</span>' in page


def test_the_overview_has_every_verdict_and_compare_the_words(client: TestClient) -> None:
    (mine,) = (run for run in data(client, "/")["runs"] if run["run"] == A)
    told = data(client, f"/runs/{A}")["judged"]["verdicts"]
    assert {name: v["answer"] for name, v in mine["verdicts"].items()} == {n: v["answer"] for n, v in told.items()}
    page = client.get(f"/compare?a={A}&b={B}").text
    assert page.count("data-part=") == 2
    for verdict in told.values():
        assert str(escape(verdict["sentence"])) in page


def test_an_experiment_page_begins_with_its_verdict(client: TestClient) -> None:
    found = data(client, f"/runs/{A}/permutation")["verdict"]
    assert found == data(client, f"/runs/{A}")["judged"]["verdicts"]["permutation"]
    assert found["answer"] in client.get(f"/runs/{A}/permutation").text


def test_instance_shows_rows_and_text(client: TestClient, folder: Path) -> None:
    found = data(client, f"/runs/{A}/examples/3")
    assert found["text"] == TEXTS[3]
    stored = Run(folder / A).results.rows("adversarial").to_pylist()[3]
    assert found["results"]["adversarial"][0]["adversarial"] == stored["adversarial"]
    assert {row["pair"] for row in found["results"]["correlation"]} >= {"attention/omission"}
    assert client.get(f"/runs/{A}/examples/999").status_code == 404


def test_a_drag_reads_no_file_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = TestClient(create_app(Library(folder)), base_url="http://localhost")
    body: dict[str, Any] = {"example": 2, "split": "test", "weights": [1, 0, 0, 0, 0, 0, 0]}
    first = client.post(f"/runs/{A}/decode", json=body)
    assert first.status_code == 200, first.text

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a file is read again")

    for place in (
        "heedful.server.stored.texts.read_texts",
        "pyarrow.parquet.read_table",
        "pyarrow.parquet.ParquetFile",
    ):
        monkeypatch.setattr(place, refuse)
    monkeypatch.setattr(StoredResults, "query", refuse)
    again = client.post(f"/runs/{A}/decode", json=body | {"weights": [0, 1, 0, 0, 0, 0, 0]})
    assert again.status_code == 200, again.text
    assert again.json()["probabilities"] != first.json()["probabilities"]


def test_shares_below_are_counted_by_hand(client: TestClient, folder: Path) -> None:
    rows = Run(folder / A).results.rows("correlation").to_pylist()
    table = next(e for e in Library(folder).entries().values() if e.name == A).tables["correlation"]
    mine = [row for row in rows if row["example"] == 4]
    for row, share in zip(mine, StoredResults().below(table, "tau", mine, "pair"), strict=True):
        all_of_pair = [r["tau"] for r in rows if r["pair"] == row["pair"] and r["tau"] is not None]
        defined = [tau for tau in all_of_pair if not np.isnan(tau)]
        expected = None if row["tau"] is None else np.mean([tau < row["tau"] for tau in defined])
        assert share == (None if expected is None else pytest.approx(expected))


def test_live_explanations_are_those_of_the_api(client: TestClient, folder: Path) -> None:
    from heedful.explainers.run import explain

    model = load(Run(folder / A))
    kept = read_texts(folder / A, "test", [4])
    assert kept is not None
    expected = explain(model, [kept[4]], ["attention", "omission"])[0]
    found = data(client, f"/runs/{A}/examples/4?methods=attention&methods=omission")["live"]
    np.testing.assert_allclose(found["probabilities"], expected.probabilities, atol=1e-9)
    for a in found["attributions"]:
        np.testing.assert_allclose(
            a["scores"]["passage"], expected.attribution(a["method"]).scores["passage"], atol=1e-7
        )
    assert found["attention"] == pytest.approx(expected.attribution("attention").scores["passage"].tolist(), abs=1e-6)


@pytest.mark.parametrize("run", [A, NLI])
def test_decode_is_the_models_own_decode(client: TestClient, folder: Path, run: str) -> None:
    text, query = "the film is good", "it is warm" if run == NLI else None
    weights = [3.0, 1.0, 0.0, 4.0]
    answer = client.post(f"/runs/{run}/decode", json={"text": text, "query": query, "weights": weights}).json()
    model = load(Run(folder / run))
    example = model.examples([text], None if query is None else [query])
    batch = model.encode(example).batch([0])
    with torch.no_grad():
        assert isinstance(model.network, AttentiveClassifier)
        own = model.network(batch)
        alpha = torch.zeros_like(own.alpha)
        alpha[batch.passage.mask] = torch.tensor(weights) / sum(weights)
        moved = model.network(batch, alpha=alpha)
    np.testing.assert_allclose(answer["probabilities"], moved.probabilities[0].numpy(), atol=1e-6)
    assert answer["change"] == pytest.approx(float(tvd(moved.probabilities[0], own.probabilities[0])), abs=1e-6)
    distance = jsd(alpha[batch.passage.mask].numpy(), own.alpha[batch.passage.mask].numpy())
    assert answer["distance"] == pytest.approx(float(distance), abs=1e-6)
    assert sum(answer["weights"]) == pytest.approx(1)


@pytest.mark.parametrize("run", [A, NLI])
def test_adversary_stays_within_epsilon_and_is_what_was_stored(client: TestClient, folder: Path, run: str) -> None:
    body = {"example": 2, "split": "test", "epsilon": 0.02}
    answer = client.post(f"/runs/{run}/adversary", json=body).json()
    assert answer["change"] <= 0.02 + 1e-9
    assert answer["distance"] <= answer["bound"] + 1e-9
    if run == A:
        stored = Run(folder / A).results.rows("adversarial").to_pylist()[2]
        usual = client.post(f"/runs/{A}/adversary", json={"example": 2}).json()
        assert usual["exact"]
        assert usual["distance"] == pytest.approx(stored["jsd"], abs=1e-6)
        np.testing.assert_allclose(usual["weights"], stored["adversarial"], atol=1e-6)


def test_deleting_and_replacing_words_moves_the_prediction(client: TestClient, folder: Path) -> None:
    model = load(Run(folder / A))
    for edit, expected in (
        ({"position": 0, "word": None}, "film is good"),
        ({"position": 1, "word": None}, "the is good"),
        ({"position": 3, "word": "dull dull"}, "the film is dull dull"),
    ):
        asked = {"text": "the film is good", "edit": edit}
        found = client.post(f"/runs/{A}/playground?format=json", json=asked).json()
        assert found["text"] == expected
        p = model.predict([expected, "the film is good"])
        np.testing.assert_allclose(found["probabilities"], p[0], atol=1e-6)
        np.testing.assert_allclose(found["before"]["probabilities"], p[1], atol=1e-6)


def test_words_the_model_does_not_know_are_marked(client: TestClient) -> None:
    words = data(client, f"/runs/{A}/playground?text=good+xylophone")["words"]
    assert [word["known"] for word in words] == [True, False]
    said = client.get(f"/runs/{A}/playground?text=good+xylophone&live=1").text
    assert "does not know the word xylophone" in said
    assert "knows no word of this text" not in said
    assert "knows no word of this text" in client.get(f"/runs/{A}/playground?text=xylophone+zebra&live=1").text


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("/runs/nobody", 404, "there is no run"),
        (f"/runs/{A}/nothing", 404, "has no results of"),
        (f"/runs/{A}/correlation?pair=a/b", 422, "pair=a/b is not known"),
        (f"/runs/{A}/permutation?low=abc", 422, "low=abc is not a number"),
        (f"/runs/{A}/permutation?page=-1", 422, "not a whole number"),
        (f"/runs/{A}/examples/x", 404, "not the place of a text"),
        (f"/runs/{A}/examples/1?methods=magic", 422, "there is no explainer"),
        (f"/runs/{NLI}/playground?text=a&query=%20%20&methods=magic", 422, "there is no explainer"),
        ("/?measure=x", 422, "measure=x is not known"),
        ("/nowhere", 404, "nothing at this address"),
    ],
)
def test_mistakes_are_one_sentence(client: TestClient, address: str, status: int, says: str) -> None:
    page = client.get(address)
    assert page.status_code == status
    assert says in page.text.replace("&#39;", "'")
    assert "Traceback" not in page.text
    error = client.get(address, headers={"Accept": "application/json"}).json()["error"]
    assert says in error


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1.0], "one number for each of the 2 words"),
        ([0.0, 0.0], "not all zero"),
        ([-1.0, 2.0], "not negative"),
        ([None, 1.0], "finite"),
        ("x", "list of numbers"),
        ([[1.0], [1.0, 2.0]], "list of numbers"),
        (None, "one number for each"),
    ],
)
def test_wrong_weights_are_refused(client: TestClient, weights: object, says: str) -> None:
    response = client.post(f"/runs/{A}/decode", json={"text": "good film", "weights": weights})
    assert response.status_code == 422
    assert says in response.json()["error"]


def test_a_run_without_its_texts_says_so(tmp_path: Path) -> None:
    run = webruns.make_run(tmp_path, "lost", webruns.examples(TEXTS[:3]), experiments=["permutation"])
    (run.path / "texts" / "test.parquet").unlink()
    client = TestClient(create_app(Library(tmp_path)), base_url="http://localhost")
    page = client.get("/runs/lost/permutation")
    assert page.status_code == 200
    assert "there is no corpus" in page.text
    assert data(client, "/runs/lost/examples/1")["results"]["permutation"][0]["example"] == 1


def test_texts_of_a_known_corpus_are_read_from_it(tmp_path: Path) -> None:
    from heedful.data.corpora import load as corpora

    given = corpora.load("planted-single")["test"]
    run = webruns.make_run(tmp_path, "planted", given[:20], dataset="planted-single", experiments=["permutation"])
    info = json.loads((run.path / "config.json").read_text())
    info["data"] |= {"examples": {"test": len(given)}, "fingerprint": source_fingerprint("planted-single")}
    (run.path / "config.json").write_text(json.dumps(info))
    (run.path / "texts" / "test.parquet").unlink()
    client = TestClient(create_app(Library(tmp_path)), base_url="http://localhost")
    live = client.get("/runs/planted/examples/7?live=1&format=json").json()  # waits for the corpus
    assert live["text"] == given[7].passage.text
    info["data"]["fingerprint"] = "other"  # as many texts, and others
    (run.path / "config.json").write_text(json.dumps(info))
    changed = TestClient(create_app(Library(tmp_path)), base_url="http://localhost")
    assert "have changed since" in changed.get("/runs/planted/examples/7?live=1").text


def test_library_refuses_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="no folder of runs"):
        Library(tmp_path / "none")
    with pytest.raises(Mistake, match="not a run folder"):
        Library(None, [tmp_path])


def test_named_runs_are_served_without_their_neighbours(folder: Path) -> None:
    client = TestClient(create_app(Library(None, [folder / B])), base_url="http://localhost")
    assert [run["run"] for run in data(client, "/")["runs"]] == [B]
    assert client.get(f"/runs/{A}").status_code == 404


def test_ports_that_cannot_be_had_are_mistakes() -> None:
    from heedful.cli.serve import listen

    with listen("127.0.0.1", None) as first:
        taken = first.getsockname()[1]
        with listen("127.0.0.1", None) as second:
            assert second.getsockname()[1] > taken
        with pytest.raises(Mistake, match=f"--port {taken}"):
            listen("127.0.0.1", taken)
    with pytest.raises(Mistake, match="cannot listen at"):
        listen("127.0.0.1", 99_999)


def test_every_setting_of_the_address_is_documented() -> None:
    """docs/serve.md names every address and every setting that the pages read."""
    source = "".join(path.read_text() for path in Path(web.__file__).parent.rglob("*.py"))
    settings = set(re.findall(r'query_params\.get(?:list)?\("(\w+)"', source))
    settings |= set(re.findall(r'(?:choice|real|whole)\(request, "(\w+)"', source))
    text = (Path(__file__).parents[1] / "docs" / "serve.md").read_text()
    assert {name for name in settings if not re.search(rf"\b{name}\b", text)} == set()
    assert len(settings) > 10


def test_reading_results_needs_no_torch(folder: Path) -> None:
    script = f"""
import sys
from pathlib import Path
import uvicorn, heedful.cli.serve
from starlette.testclient import TestClient
from heedful.server.app import create_app
from heedful.server.question import TooLong
from heedful.server.stored.library import Library
client = TestClient(create_app(Library(Path({str(folder)!r}))), base_url="http://localhost")
run = "/runs/{A}"
assert not {{"torch", "spacy", "pandas", "altair"}} & set(sys.modules)  # heedful serve has started
for address in ["/", run, run + "/correlation", run + "/examples/1", "/compare?a={A}&b={B}"]:
    assert client.get(address).status_code == 200, address
    assert "torch" not in sys.modules, address
client.post("/runs/{A}/decode", json=dict(text="good", weights=[1])).raise_for_status()
assert "torch" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


DEEP = "[" * 100_000


def get(client: TestClient, address: str, form: str) -> Any:
    answered = client.get(address, params={"format": form} if "?" not in address else None)
    assert answered.status_code == 200, answered.text
    return answered.json()


def damaged(info: dict[str, Any], *path: str, value: Any) -> str:
    """config.json with another value at a path."""
    changed = json.loads(json.dumps(info))
    part = changed
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return json.dumps(changed)


@pytest.fixture
def beside(tmp_path: Path) -> tuple[Path, Run, Run]:
    """(the folder of runs, a run that is whole, one that is to be damaged)."""
    given, folder = webruns.examples(webruns.SENTENCES), tmp_path / "runs"
    whole, other = (webruns.make_run(folder, name, given, experiments=["correlation"]) for name in ("whole", "other"))
    return folder, whole, other


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", DEEP),
        ("config.json", "null"),
        ("config.json", '"text"'),
        ("config.json", ("data", 3)),
        ("config.json", ("data", [])),
        ("config.json", ("data", "x")),
        ("config.json", ("data", "examples", [3])),
        ("config.json", ("versions", 3)),
        ("config.json", ("labels", [])),
        ("config.json", ("labels", 3)),
        ("config.json", ("labels", "positive")),
        ("config.json", ("labels", [None, {}])),
        ("config.json", ("task", [])),
        ("config.json", ("config", 3)),
        ("config.json", ("config", "dataset", 5)),
        ("config.json", ("config", "seed", "x")),
        ("config.json", ("config", "model", [])),
        ("config.json", ("config", "model", "encoder", {"a": 1})),
        ("config.json", ("model", "no")),
        ("results/performance.summary.json", DEEP),
        ("results/performance.summary.json", "[]"),
        ("results/performance.summary.json", '{"accuracy": "high"}'),
        ("results/performance.summary.json", '{"baseline": 3}'),
        ("results/correlation.summary.json", DEEP),
        ("results/correlation.summary.json", "{}"),
    ],
)
def test_one_damaged_run_breaks_no_page_of_another_and_is_listed_with_its_reason(
    beside: tuple[Path, Run, Run], file: str, content: Any
) -> None:
    folder, _, other = beside
    text = content if isinstance(content, str) else damaged(other.info, *content[:-1], value=content[-1])
    (other.path / file).unlink()
    (other.path / file).write_text(text)
    client = TestClient(create_app(Library(folder)), base_url="http://localhost", raise_server_exceptions=False)
    found = get(client, "/", "json")
    assert [run["run"] for run in found["runs"]] == ["whole"]
    assert list(found["broken"]) == ["other"]
    assert found["broken"]["other"].endswith((".", "`."))
    assert "other cannot be read: " in client.get("/").text
    for address in ("/?view=grid", "/?sort=accuracy", "/runs/whole", "/runs/whole/correlation", "/compare?a=whole"):
        assert client.get(address).status_code == 200, address
    refused = client.get("/runs/other")
    assert refused.status_code == 422
    assert "other cannot be read" in refused.text


def test_a_damaged_table_or_audit_breaks_no_other_page(beside: tuple[Path, Run, Run]) -> None:
    folder, _, other = beside
    (other.path / "results/correlation.parquet").unlink()
    (other.path / "results/correlation.parquet").write_text("no table")
    for audit in (DEEP, "3", '{"recommendation": [3], "header": [[]], "cells": [3, [1]], "warnings": [{}]}'):
        (other.path / "audit.json").write_text(audit)
        client = TestClient(create_app(Library(folder)), base_url="http://localhost", raise_server_exceptions=False)
        for address in ("/", "/?view=grid", "/runs/whole", "/compare?a=whole&b=whole"):
            assert client.get(address).status_code == 200, address
        assert client.get("/runs/other").status_code in (200, 422)
        assert client.get("/runs/other/playground?text=good&live=1").status_code == 200


def test_a_folder_of_runs_that_was_removed_is_said_and_stops_nothing(beside: tuple[Path, Run, Run]) -> None:
    folder, _, _ = beside
    library = Library(folder)
    client = TestClient(create_app(library), base_url="http://localhost", raise_server_exceptions=False)
    assert len(get(client, "/", "json")["runs"]) == 2
    folder.rename(folder.with_name("moved"))
    library._looked = 0.0
    assert "cannot be read any more" in client.get("/").text
    assert client.get("/runs/whole").status_code == 404
    folder.with_name("moved").rename(folder)
    library._looked = 0.0
    assert len(get(client, "/", "json")["runs"]) == 2


def test_comparing_with_one_run_says_what_is_missing_and_the_page_offers_no_such_link(tmp_path: Path) -> None:
    webruns.make_run(tmp_path, "only", webruns.examples(webruns.SENTENCES), experiments=["correlation"])
    client = TestClient(create_app(Library(tmp_path)), base_url="http://localhost")
    for address in ("/", "/runs/only"):
        page = client.get(address).text
        assert "Compare with another run" not in page, address
        assert "Compare A and B" not in page, address
    compared = client.get("/compare")
    assert compared.status_code == 200
    assert "A comparison needs two runs" in compared.text


def test_texts_that_were_put_in_another_order_are_not_shown_beside_the_rows(tmp_path: Path) -> None:
    """As many texts as before, so their number says nothing."""
    import heedful

    lines = [f"{text} number {i},{('no', 'yes')[i % 2]}" for i, text in enumerate(webruns.SENTENCES * 3)]
    lines = [line.replace(" ,", " ;", 1) if line.count(",") > 1 else line for line in lines]
    own = tmp_path / "own.csv"
    own.write_text("\n".join(["text,label", *lines]))
    options: dict[str, Any] = {"encoder": "average", "embedding_dim": 4, "hidden_dim": 4, "epochs": 1}
    run = heedful.train(str(own), runs=tmp_path / "runs", **options)
    heedful.run("permutation", run)
    shown = TestClient(create_app(Library(tmp_path / "runs")), base_url="http://localhost")
    before = shown.get(f"/runs/{run.name}/examples/0", params={"format": "json", "live": 1}).json()["text"]
    shutil.rmtree(run.path / "texts")
    afresh = TestClient(create_app(Library(tmp_path / "runs")), base_url="http://localhost")
    read = afresh.get(f"/runs/{run.name}/examples/0", params={"format": "json", "live": 1})
    assert read.json()["text"] == before
    own.write_text("\n".join(["text,label", *lines[::-1]]))
    changed = TestClient(create_app(Library(tmp_path / "runs")), base_url="http://localhost")
    refused = changed.get(f"/runs/{run.name}/examples/0", params={"format": "json", "live": 1})
    assert "have changed since these results were made" in refused.text


def test_what_was_measured_says_on_how_many_texts_and_no_page_says_none(tmp_path: Path) -> None:
    run = webruns.make_trial(tmp_path, "Bert", webruns.SENTENCES, limit=4)
    folder = run.path.parent
    webruns.make_run(folder, "made", webruns.examples(webruns.SENTENCES), experiments=["correlation"])
    client = TestClient(create_app(Library(folder)), base_url="http://localhost")
    overview = unescape(client.get("/").text)
    assert re.search(r">Bert-model</a>.*?on reviews.csv", overview)  # a model by its name, not by that of the file
    assert re.search(r"0\.750 <span class=\"quiet\">of 6 texts", overview)
    for address in ("/", "/?view=grid", f"/runs/{run.name}", "/runs/made", f"/compare?a={run.name}&b=made"):
        assert "seed None" not in client.get(address).text, address
    assert "measured on</dt><dd>6 texts" in client.get("/runs/made").text
    assert "of 6 texts" in client.get(f"/compare?a=made&b={run.name}").text
    other = client.get("/compare", params={"a": "made", "format": "json"}).json()
    assert {other["a"]["run"], other["b"]["run"]} == {"made", run.name}  # not with itself


def test_words_come_as_far_as_time_allows_and_go_on_when_asked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.report import sample

    own, asked = sample.leave_words_out, list[int]()

    def slow(model: Any, examples: Any) -> Any:
        if len(asked) % 6 == 5:
            asked.append(0)
            raise TooLong("too long")
        asked.append(len(examples))
        return own(model, examples)

    monkeypatch.setattr(sample, "leave_words_out", slow)
    client = TestClient(create_app(Library(folder)), base_url="http://localhost")
    page = client.get(f"/runs/{A}/words").text
    assert "as many as fit into the time limit" in page
    done = []
    for _ in range(6):
        found = data(client, f"/runs/{A}/words")
        done.append((found["texts"], found["of"]))
        if found["texts"] == found["of"]:
            break
    assert done[0][0] < done[0][1] == len(TEXTS)
    assert done == sorted(done)
    assert done[-1] == (len(TEXTS), len(TEXTS))
    monkeypatch.setattr(sample, "leave_words_out", own)
    whole = data(TestClient(create_app(Library(folder)), base_url="http://localhost"), f"/runs/{A}/words")
    assert whole["words"] == found["words"]


def test_the_playground_says_what_the_audit_recommends(tmp_path: Path) -> None:
    run = webruns.make_run(tmp_path, "made", webruns.examples(webruns.SENTENCES), experiments=["correlation"])
    client = TestClient(create_app(Library(tmp_path)), base_url="http://localhost")
    address = "/runs/made/playground?text=a+good+film&live=1"
    assert "audit" not in client.get(address).text
    audit = {"recommendation": ["Use LRP: it gets 92%."], "header": [], "cells": [], "warnings": []}
    run.write_audit({**audit, "recommended": "lrp"}, "")
    page = client.get(address).text
    assert "Use LRP: it gets 92%." in page
    (card,) = re.findall(
        r'<article class="method" data-method="(\w+)"[^>]*>\s*<h3>[^<]* <span class="badge for">', page
    )
    assert card == "lrp"
    run.write_audit(audit, "")  # of an older audit, that names it in words alone
    assert "Use LRP: it gets 92%." in client.get(address).text


def test_a_model_of_the_hub_that_a_run_folder_names_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    run = webruns.make_trial(tmp_path, "Bert", webruns.SENTENCES, limit=4)
    info = json.loads((run.path / "config.json").read_text())
    info["config"]["source"]["place"] = "hf:someone/something"
    (run.path / "config.json").write_text(json.dumps(info))
    write_sums(run.path, SEALED_TRIAL)
    asked: list[bool] = []

    def snapshot(*_: Any, local_files_only: bool = False, **__: Any) -> str:
        asked.append(local_files_only)
        raise FileNotFoundError

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    client = TestClient(create_app(Library(run.path.parent)), base_url="http://localhost")
    refused = client.post(f"/runs/{run.name}/playground", json={"text": "good"})
    assert refused.status_code == 422
    assert "the hub was not to be asked" in refused.json()["error"]
    assert asked
    assert all(asked)

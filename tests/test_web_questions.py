"""Questions to a model: they end at their deadline and with their client, and do not stand in each other's way."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.responses import Response
from starlette.testclient import TestClient

import webruns
from heedful.server import question
from heedful.server.app import create_app
from heedful.server.live import inference
from heedful.server.pages import playground
from heedful.server.question import Left, ModelQuestion, TooLong, alone, check, not_counted
from heedful.server.stored.library import Library
from heedful.server.turns import Turn, Turns

RUN = "made-average-additive-s0-1"
LONG = 60.0  # seconds after which a test gives up: no assertion about time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    webruns.make_run(runs, RUN, webruns.examples(webruns.SENTENCES * 2))
    return runs


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with webruns.serve(folder) as found:
        yield found


class Endless:
    """Stands for a question that would never end: it looks at its question again and again."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()
        self.why: type[BaseException] | None = None

    def __call__(self, *_: Any) -> Response:
        self.began.set()
        try:
            while not self.ended.wait(0.005):
                check()
            return Response("stopped by the test")
        except BaseException as error:
            self.why = type(error)
            raise
        finally:
            self.ended.set()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endless]:
    made = Endless()
    monkeypatch.setattr(playground, "ask", made)
    yield made
    made.ended.set()


def begin(address: str, path: str, body: dict[str, Any]) -> socket.socket:
    """A request on a connection of its own, whose answer nobody has read yet."""
    parts = urlsplit(address)
    connection = socket.create_connection((str(parts.hostname), parts.port or 80))
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    connection.sendall(head.encode() + f"Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
    return connection


def test_a_question_ends_when_its_client_has_gone(address: str, endless: Endless) -> None:
    connection = begin(address, f"/runs/{RUN}/playground", {"text": "good"})
    assert endless.began.wait(LONG)
    connection.close()
    assert endless.ended.wait(LONG)
    assert endless.why is Left


def test_a_question_ends_at_its_deadline_with_a_sentence(
    folder: Path, endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "DEADLINE", 0.05)
    client = TestClient(create_app(Library(folder)), base_url="http://localhost")
    found = client.post(f"/runs/{RUN}/playground", json={"text": "good"})
    assert found.status_code == 504
    assert "longer than the 0.05 seconds" in found.json()["error"]
    assert endless.why is TooLong


def test_a_long_question_blocks_neither_pages_nor_other_questions(address: str, endless: Endless) -> None:
    """While it runs: the playground's page, a drag, the view of heads, another explanation of an instance."""
    connection = begin(address, f"/runs/{RUN}/playground", {"text": "good"})
    assert endless.began.wait(LONG)
    with httpx.Client(base_url=address, timeout=LONG) as client:
        page = client.get(f"/runs/{RUN}/playground", params={"text": "a good film"})
        assert page.status_code == 200
        assert "data-waiting" in page.text
        moved = client.post(f"/runs/{RUN}/decode", json={"text": "good film", "weights": [1, 2]})
        assert moved.status_code == 200
        live = client.get(f"/runs/{RUN}/examples/2", params={"live": 1, "format": "json"})
        assert live.status_code == 200
        assert live.json()["live"]["probabilities"]
    assert not endless.ended.is_set()
    connection.close()


def test_too_many_questions_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "MOST_WAITING", 0)
    client = TestClient(create_app(Library(folder)), base_url="http://localhost")
    assert client.post(f"/runs/{RUN}/decode", json={"text": "good", "weights": [1]}).status_code == 503


def test_every_module_that_is_called_looks_at_the_question(folder: Path) -> None:
    from heedful.server.live.inference import LoadedModel

    model = LoadedModel(Library(folder).find(RUN))
    asked = ModelQuestion()
    asked.left = True
    with pytest.raises(Left):
        asked.work(lambda: model.predict(model.example("never read before")))
    late = ModelQuestion(seconds=-1.0)
    with pytest.raises(TooLong):
        late.work(lambda: model.predict(model.example("never read before either")))
    assert model.predict(model.example("never read before")).shape == (2,)  # nobody's question: nothing ends it


def test_methods_that_the_deadline_ends_are_left_out_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = inference.LoadedModel._explain

    def slow(self: inference.LoadedModel, example: Any, method: str, target: str | None) -> Any:
        if method == "omission":
            raise TooLong("too long")
        return own(self, example, method, target)

    monkeypatch.setattr(inference.LoadedModel, "_explain", slow)
    client = TestClient(create_app(Library(folder)), base_url="http://localhost")
    asked = {"text": "a good film", "methods": ["gradient", "attention", "omission", "lrp"]}
    found = client.post(f"/runs/{RUN}/playground?format=json", json=asked).json()
    assert [a["method"] for a in found["attributions"]] == ["gradient", "attention"]
    assert found["unfinished"] == ["omission", "lrp"]
    page = client.post(f"/runs/{RUN}/playground", json=asked, headers={"Accept": "text/html"}).text
    assert "Not finished in time, and left out" in page
    refused = client.post(f"/runs/{RUN}/playground", json=asked | {"methods": ["omission"]})
    assert refused.status_code == 504


def test_loading_a_model_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("heedful.server.question.time.monotonic", lambda: now[0])

    def answer() -> str:
        with not_counted():
            now[0] += 1000
            check()  # nothing ends it here
        now[0] += 29
        check()
        return "answered"

    assert ModelQuestion(30).work(answer) == "answered"
    with pytest.raises(TooLong):
        ModelQuestion(28).work(answer)


def test_long_questions_of_one_client_do_not_make_the_short_one_of_another_wait() -> None:
    """Six questions that never end fill the queue; another client's is answered while they are under way."""
    lane_turns, ended = Turns(at_once=2), threading.Event()
    others = [ModelQuestion(LONG, Turn(lane_turns, "greedy")) for _ in range(6)]

    def never() -> None:
        while not ended.wait(0.002):
            check()

    def ask(asked: ModelQuestion) -> None:
        with pytest.raises(Left):
            asked.work(never)

    threads = [threading.Thread(target=ask, args=[asked], daemon=True) for asked in others]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            assert ModelQuestion(LONG, Turn(lane_turns, "other")).work(lambda: "answered") == "answered"
        assert all(thread.is_alive() for thread in threads)
        assert lane_turns.running["greedy"] <= 2
    finally:
        for asked in others:
            asked.leave()
        for thread in threads:
            thread.join(LONG)
    assert not lane_turns.waiting
    assert not lane_turns.running.total()


def test_turns_go_round_by_client_and_within_a_client_to_the_shortest_question() -> None:
    turns = Turns(at_once=1)
    holder = Turn(turns, "a")
    assert holder.begin(lambda: False)
    assert not holder.is_over()  # nobody waits
    for client, seconds in (("a", 0.0), ("a", 3.0), ("b", 9.0), ("b", 5.0), ("c", 7.0)):
        waiting = Turn(turns, client)
        waiting.seconds = seconds
        turns.waiting.append(waiting)
    order = []
    holder.end()
    while turns.waiting:
        one = turns.next()
        assert one is not None
        turns.waiting.remove(one)
        turns.count += 1
        turns.last[one.client] = turns.count
        order.append((one.client, one.seconds))
    assert order == [("b", 5.0), ("c", 7.0), ("a", 0.0), ("b", 9.0), ("a", 3.0)]


def test_who_waits_for_a_lock_has_no_turn_meanwhile() -> None:
    """Else a question that holds it and has given way would never get its turn again."""
    turns, lock, met = Turns(at_once=1), threading.Lock(), []

    def locked(name: str) -> str:
        with alone(lock):
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                check()
            met.append(name)
        return name

    questions = [ModelQuestion(LONG, Turn(turns, name)) for name in "abc"]
    threads = [
        threading.Thread(target=asked.work, args=[lambda name=name: locked(name)], daemon=True)
        for asked, name in zip(questions, "abc", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert sorted(met) == ["a", "b", "c"]


def test_closing_ends_the_questions_under_way(folder: Path, endless: Endless) -> None:
    application = create_app(Library(folder))
    client = TestClient(application, base_url="http://localhost")
    answers: list[int] = []
    asking = threading.Thread(
        target=lambda: answers.append(client.post(f"/runs/{RUN}/playground", json={"text": "good"}).status_code)
    )
    asking.start()
    assert endless.began.wait(LONG)
    application.close()
    asking.join(LONG)
    assert answers == [499]
    assert endless.why is Left
    assert client.post(f"/runs/{RUN}/decode", json={"text": "good", "weights": [1]}).status_code == 499


def test_values_that_no_text_has_are_answered_with_a_sentence(folder: Path) -> None:
    client = TestClient(create_app(Library(folder)), base_url="http://localhost", raise_server_exceptions=False)
    wrong: list[tuple[str, dict[str, Any]]] = [
        *(("playground", {"text": "a good film", "edit": {"position": p, "word": "x"}}) for p in (True, False, 10**25)),
        *((kind, {"example": 10**25}) for kind in ("decode", "adversary", "attention")),
        *((kind, {"example": -1}) for kind in ("decode", "attention")),
        ("decode", {"example": 0, "weights": [10**400]}),
        ("decode", {"example": 0, "weights": {"0": 1}}),
        ("adversary", {"example": 0, "epsilon": True}),
        ("adversary", {"example": 0, "epsilon": 10**400}),
        ("attention", {"example": 0, "layer": 10**25}),
        ("playground", {"text": "good", "target": 10**25}),
    ]
    for address, body in wrong:
        answered = client.post(f"/runs/{RUN}/{address}", json=body)
        assert answered.status_code in (404, 422), (address, body, answered.text)
        assert answered.json()["error"]

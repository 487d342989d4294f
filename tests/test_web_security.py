"""Text is hostile until escaped, names are looked up and never joined to paths, and everything has a bound."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import webruns
from heedful.figures.figure import Figure
from heedful.server.answer import ENVIRONMENT, page, run_address
from heedful.server.app import create_app
from heedful.server.guard import LARGEST_BODY, LONGEST_ADDRESS, LONGEST_TEXT, MOST_WORDS
from heedful.server.pages.overview import sparkline
from heedful.server.stored.library import Library

EVIL = "<b>evil\"' [x]*?-average-additive-s0-2"
LABELS = ("<i>neg</i>", '\u202eposi"tive')
OURS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "script",
        "body",
        "header",
        "nav",
        "main",
        "footer",
        "section",
        "article",
    ),
    *(
        "a",
        "b",
        "i",
        "p",
        "br",
        "span",
        "div",
        "code",
        "h1",
        "h2",
        "h3",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "figure",
        "figcaption",
    ),
    *("form", "label", "select", "option", "input", "button", "textarea", "datalist", "fieldset", "legend"),
    *("table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("svg", "g", "rect", "line", "path", "text", "circle"),
}
OUTSIDE = [
    *(
        "../secret/other",
        "..%2fsecret%2fother",
        "%2e%2e%2fsecret%2fother",
        "..\\secret\\other",
        "....//secret",
        "linked",
    ),
    *(
        "%00",
        ".",
        "%2e",
        "~",
        "*",
        "made*",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..%c0%afsecret",
        "runs/../../secret/other",
    ),
]


class Tags(HTMLParser):
    """What a browser would make of a page: elements, attributes that run script, and plain text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.bad: list[str] = []
        self.scripts: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        names = dict(attrs)
        if tag == "script":
            self.scripts.append(names.get("src"))
        for name, value in attrs:
            if (
                name.startswith("on")
                or name == "style"
                or (name in ("href", "src", "action") and "script:" in (value or ""))
            ):
                self.bad.append(f"{tag} {name}={value}")
            if name in ("href", "src", "action") and not re.match(r"[/?#]", value or "#"):
                self.bad.append(f"{tag} {name}={value}")


def harmless(html: str) -> None:
    tags = Tags()
    tags.feed(html)
    assert tags.tags <= OURS
    assert not tags.bad
    assert set(tags.scripts) <= {"/static/site.js", "/static/prediction.js", "/attention.js"}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", html)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("outer") / "runs"
    given_texts = webruns.examples(webruns.HOSTILE)
    webruns.make_run(runs, EVIL, given_texts, LABELS, dataset="<script>alert(9)</script>")
    (runs.parent / "secret").mkdir()
    webruns.make_run(runs.parent / "secret", "other", webruns.examples(["top secret"]), experiments=["permutation"])
    (runs / "linked").symlink_to(runs.parent / "secret" / "other")
    return runs


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Library(folder)), base_url="http://127.0.0.1:8765") as opened:
        yield opened


@pytest.mark.parametrize(
    "parts",
    [
        (),
        ("correlation",),
        ("adversarial",),
        ("examples", 0),
        ("examples", 1),
        ("examples", 2),
        ("examples", 3),
        ("examples", 4),
        ("playground",),
    ],
)
def test_a_hostile_corpus_is_shown_harmlessly(client: TestClient, parts: tuple[object, ...]) -> None:
    for more in ({}, {"methods": "attention"}) if parts and parts[0] == "examples" else ({},):
        response = client.get(run_address(EVIL, *parts, **more))
        assert response.status_code == 200
        harmless(response.text)
        assert len(response.text) < 400_000


def test_hostile_names_in_the_overview_and_in_mistakes(client: TestClient) -> None:
    for address in (
        "/",
        "/?view=list",
        "/?q=<script>alert(1)</script>",
        "/?measure=<script>",
        "/<script>",
        "/runs/<script>alert(1)<%2Fscript>",
    ):
        response = client.get(address)
        harmless(response.text)
        assert "<script>alert" not in response.text


@pytest.mark.parametrize("text", webruns.HOSTILE)
def test_hostile_texts_in_the_playground(client: TestClient, text: str) -> None:
    text = text[: LONGEST_TEXT // 2]
    response = client.post(run_address(EVIL, "playground"), json={"text": text}, headers={"Accept": "text/html"})
    assert response.status_code == 200, response.text
    tags = Tags()
    tags.feed(response.text)
    assert tags.tags <= OURS
    assert not tags.bad
    twin = client.post(run_address(EVIL, "playground", format="json"), json={"text": text})
    assert twin.json()["text"] == text
    assert twin.headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_path_outside_the_runs_can_be_read(client: TestClient, name: str) -> None:
    for after in ("", "/permutation", "/examples/0", "/playground?text=a"):
        response = client.get(f"/runs/{name}{after}")
        assert response.status_code in (404, 422)
        assert "top secret" not in response.text
    for thing in (
        "permutation.parquet",
        "../config.json",
        "..%2fconfig",
        "%2e%2e/%2e%2e/secret/other/results/permutation",
    ):
        assert client.get(f"{run_address(EVIL)}/{thing}").status_code == 404
    split = client.get(run_address(EVIL, "examples", 0, split="../../secret/other/texts/test"))
    assert "top secret" not in split.text
    assert split.status_code in (404, 422)


def test_paths_that_no_client_cleaned_are_not_followed(folder: Path) -> None:
    """Straight to the application, as a client that does not tidy up its addresses would send it."""
    app = create_app(Library(folder))
    sent: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    for path in ("/runs/..", "/runs/../../secret/other", "/static/../app.py", "/runs/./../secret/other/permutation"):
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost")],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("localhost", 80),
        }

        async def one(scope: dict[str, Any] = scope) -> None:
            await app(scope, receive, send)

        asyncio.run(one())
    assert [message["status"] for message in sent if message["type"] == "http.response.start"] == [404] * 4
    assert not any(b"top secret" in message.get("body", b"") for message in sent)


@pytest.mark.parametrize(
    "path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "../../records.py", "..%5capp.py", "/etc/passwd"]
)
def test_static_files_stay_in_their_folder(client: TestClient, path: str) -> None:
    response = client.get(f"/static/{path}")
    assert response.status_code == 404
    assert "import" not in response.text


def test_a_link_out_of_a_run_is_not_followed(tmp_path: Path) -> None:
    run = webruns.make_run(tmp_path / "runs", "one", webruns.examples(["good"]), experiments=[])
    other = webruns.make_run(
        tmp_path / "elsewhere", "two", webruns.examples(["top secret"]), experiments=["permutation"]
    )
    (run.path / "results" / "permutation.parquet").symlink_to(other.path / "results" / "permutation.parquet")
    client = TestClient(create_app(Library(tmp_path / "runs")), base_url="http://localhost")
    assert client.get("/runs/one/permutation").status_code == 404


@pytest.mark.parametrize("name", ["texts/test.parquet", "model.safetensors", "vocabulary.json"])
def test_no_file_of_a_run_may_be_a_link_out_of_it(tmp_path: Path, name: str) -> None:
    run = webruns.make_run(tmp_path / "runs", "one", webruns.examples(["good"]), experiments=[])
    other = webruns.make_run(tmp_path / "elsewhere", "two", webruns.examples(["top secret"]), experiments=[])
    (run.path / name).unlink()
    (run.path / name).symlink_to(other.path / name)
    client = TestClient(create_app(Library(tmp_path / "runs")), base_url="http://localhost")
    response = client.get("/runs/one/examples/0?live=1")
    assert response.status_code == 422
    assert "leads out of its run" in response.text
    assert "top secret" not in response.text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "localhost.evil.example",
        "",
        "127.0.0.1.evil.example",
        "[::2]",
        "127.0.0.1@evil.example",
    ],
)
def test_other_hosts_are_refused(client: TestClient, host: str) -> None:
    response = client.get("/", headers={"Host": host})
    assert response.status_code == 400
    assert "only under the name of this machine" in response.text


def test_with_any_address_names_are_still_refused(folder: Path) -> None:
    client = TestClient(create_app(Library(folder), hosts=["box"], any_address=True), base_url="http://box")
    found = {
        host: client.get("/", headers={"Host": host}).status_code
        for host in ("box", "10.1.2.3:80", "[fe80::1]", "evil")
    }
    assert found == {"box": 200, "10.1.2.3:80": 200, "[fe80::1]": 200, "evil": 400}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8765", "[::1]:8765", "[::1]"])
def test_this_machine_is_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("address", ["/", "/nowhere", "/static/site.js", "/runs/none?format=json", "/colours.css"])
def test_every_answer_is_locked_down(client: TestClient, address: str) -> None:
    headers = client.get(address).headers
    policy = headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_what_is_too_large_is_refused_in_one_sentence(client: TestClient) -> None:
    address = run_address(EVIL, "playground")
    large = client.post(
        address, content=b'{"text": "' + b"a" * LARGEST_BODY + b'"}', headers={"Content-Type": "application/json"}
    )
    assert (large.status_code, large.json()["error"]) == (413, "this is more than the 256 KB that are read at once.")
    chunks = client.post(address, content=iter([b"x" * 100_000] * 5), headers={"Content-Type": "application/json"})
    assert chunks.status_code == 413
    long = client.post(address, json={"text": "a" * (LONGEST_TEXT + 1)})
    assert long.status_code == 413
    assert "at most 20,000" in long.json()["error"]
    many = client.post(address, json={"text": "a " * (MOST_WORDS + 1)})
    assert many.status_code == 422
    assert "at most 1,000" in many.json()["error"]
    assert client.get(address + "?text=" + "a" * LONGEST_ADDRESS).status_code == 414


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"text=a", "application/x-www-form-urlencoded", 422),
        (b'{"text": "a"}', "text/plain", 422),
        (b"{", "application/json", 422),
        (b"[1]", "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b'{"text": "\\ud800"}', "application/json", 422),
        (b'{"text": 5}', "application/json", 422),
        (b'{"text": "good", "edit": {"position": 99}}', "application/json", 422),
        (b'{"text": "good", "edit": 7}', "application/json", 422),
        (b'{"text": "good", "methods": [1]}', "application/json", 422),
        (b'{"text": "good", "target": "nobody"}', "application/json", 422),
        (b"\xff\xfe", "application/json", 422),
    ],
)
def test_wrong_bodies_are_one_sentence(client: TestClient, body: bytes, kind: str, status: int) -> None:
    response = client.post(run_address(EVIL, "playground"), content=body, headers={"Content-Type": kind})
    assert response.status_code == status
    assert response.json()["error"]
    assert "Traceback" not in response.text


def test_pages_of_other_sites_cannot_post(client: TestClient) -> None:
    response = client.post(run_address(EVIL, "decode"), json={}, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403
    assert client.put("/", content=b"").status_code == 405


def test_our_own_failure_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.server.pages.overview._rows", lambda *_: 1 / 0)
    client = TestClient(create_app(Library(folder)), base_url="http://localhost", raise_server_exceptions=False)
    response = client.get("/?format=json")
    assert response.status_code == 500
    assert response.json()["error"].startswith("heedful failed at this (ZeroDivisionError)")
    assert response.headers["content-security-policy"]


hostile = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(webruns.HOSTILE)


@given(text=hostile, name=hostile)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_string_becomes_markup(text: str, name: str) -> None:
    html = bytes(page("mistake.html", {"error": text, "status": 404}).body).decode()
    harmless(html)
    drawn = Figure(text, text, name, text, {"title": text, "data": {"values": [{"label": name}]}})
    macros = ENVIRONMENT.get_template("figure.html").module
    holder = {"text": run_address(name, x=text), "classes": json.dumps([text, name]), "group": text}
    made = f"<div {macros.figure_state(holder)}>{macros.figure(drawn, name)}</div>"  # type: ignore[attr-defined]
    harmless(made + str(sparkline([1, 2], -1, 1, 0.5, text)))


@given(parts=st.lists(hostile, min_size=1, max_size=3))
@settings(deadline=None)
def test_addresses_keep_names_apart(parts: list[str]) -> None:
    address = run_address(parts[0], *parts[1:], q="x".join(parts))
    assert address.split("?")[0].count("/") == 1 + len(parts)
    assert re.fullmatch(r"[\w/%.~+&=?-]*", address, re.ASCII)
    assert json.loads(json.dumps(address)) == address

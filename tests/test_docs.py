"""The documentation as a reader uses it: links that lead somewhere, pages that can be read, commands that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from heedful.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MOST_WORDS = 1200
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
READ = [path for path in PAGES if DOCS / "results" not in path.parents and DOCS in path.parents]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def anchors(text: str) -> set[str]:
    """Of headings, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_leads_to_a_file_and_an_anchor(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(without_code(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{named(page)} links to {target}, which is not there"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{named(page)}: {target} has no such heading"


@pytest.mark.parametrize("page", READ, ids=named)
def test_a_page_can_be_read_in_one_sitting_and_begins_with_its_answer(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    words = [word for word in text.split() if re.search(r"\w", word)]  # not the bars of tables
    assert len(words) <= MOST_WORDS
    headings = [line for line in text.splitlines() if line.startswith("# ")]
    assert text.startswith("# ")
    assert len(headings) >= 1
    after = re.findall(r"^## (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    first = next((at for at, one in enumerate(after) if one.startswith("Appendix")), len(after))
    assert all(one.startswith("Appendix") for one in after[first:]), "an appendix is the end of a page"


def test_every_page_of_the_documentation_can_be_found_from_the_index() -> None:
    seen, left = set(), [DOCS / "README.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
            file = (page.parent / target.partition("#")[0]).resolve()
            if DOCS in file.parents and file.exists():
                left.append(file)
    assert {path for path in PAGES if DOCS in path.parents} <= seen


def commands(text: str) -> Iterator[list[str]]:
    """Every `heedful ...` of a page: lines of code blocks, and code within a sentence."""
    text = text.replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"^```(?:\w*)\n(.*?)^```", text, flags=re.M | re.S))
    found = re.findall(r"^\s*(?:\$ )?(heedful [a-z].*)$", blocks, re.M)
    sentences = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found += [" ".join(one.split()) for one in re.findall(r"`(heedful [a-z][^`]*)`", sentences)]
    for line in found:
        plain = line if "--set" in line else re.sub(r"[\[\]|…]", " ", line)  # [--optional], a | b
        yield shlex.split(plain, comments=True)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_and_option_exists(page: Path) -> None:
    group: Any = typer.main.get_command(app)
    for words in commands(page.read_text(encoding="utf-8")):
        command = group
        for word in words[1:]:
            if not hasattr(command, "commands"):  # a command, not a group of them
                break
            assert word in command.commands, f"{named(page)}: heedful has no command {word!r}: {' '.join(words)}"
            command = command.commands[word]
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
        given = [word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)]
        for option in given:
            assert option in known, f"{named(page)}: {' '.join(words[:2])} has no option {option}: {' '.join(words)}"

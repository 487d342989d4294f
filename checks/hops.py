"""How many functions of heedful stand between what a person calls and the equation that answers?

    python checks/hops.py [explain|run|report|audit ...]

A small model is trained once on a few made-up texts, each command is called as the command line calls it, and the stack
is read when the function with the equation is called: the frames within heedful, from that of the command (`cli`) down
to that of the equation, both counted. The shortest way there is printed, function by function.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from typer.testing import CliRunner

TEXT = "the day was bright"
# the division by z of the recurrence, which is layer-wise relevance propagation of an LSTM
LRP = ("heedful.explainers.lrp.recurrent", "lstm.<locals>.back")

# command -> (words of the command line, the function with the equation: module and name)
WAYS: dict[str, tuple[list[str], tuple[str, str]]] = {
    "explain": (["explain", "{run}", TEXT, "-m", "lrp"], LRP),
    "run": (["run", "permutation", "--model", "{run}", "-q"], ("heedful.experiments.attention.permutation", "changes")),
    "report": (["report", "{run}", "-o", "{folder}/page.html", "-q"], LRP),
    "audit": (["audit", "{run}", "--budget", "20s", "-q"], LRP),
}


def name_of(frame: FrameType) -> tuple[str, str]:
    return frame.f_globals.get("__name__", ""), frame.f_code.co_qualname


def hops(call: Callable[[], Any], equation: tuple[str, str]) -> list[str]:
    """The shortest chain of functions of heedful that ends in `equation`; empty where it is never reached."""
    best: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal best
        if event != "call" or frame.f_code.co_name != equation[1].rpartition(".")[2] or name_of(frame) != equation:
            return
        chain: list[str] = []
        above: FrameType | None = frame
        while above is not None:
            module, name = name_of(above)
            if module.startswith("heedful.") and name != "main":
                chain.append(f"{module.removeprefix('heedful.')}:{name}")
            above = above.f_back
        if not best or len(chain) < len(best):
            best = chain[::-1]

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return best


def write_texts(folder: Path) -> Path:
    """A file of texts whose last word decides."""
    file = folder / "texts.csv"
    lines = [f"the {i % 7} day was {('gloomy', 'bright')[i % 2]},{('down', 'up')[i % 2]}" for i in range(60)]
    file.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return file


def main(commands: list[str]) -> int:
    from heedful import train
    from heedful.cli import app

    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        run = train(str(write_texts(Path(folder))), runs=folder, embedding_dim=4, hidden_dim=4, epochs=1)
        for command in commands or list(WAYS):
            words, equation = WAYS[command]
            if command == "report":  # which shows results
                CliRunner().invoke(app, ["run", "permutation", "--model", str(run.path), "-q"], catch_exceptions=False)
            typed = [word.format(run=run.path, folder=folder) for word in words]
            chain = hops(partial(CliRunner().invoke, app, typed, catch_exceptions=False), equation)
            missed += not chain
            print(f"{command}: {len(chain)} to {equation[0]}:{equation[1]}")
            for depth, name in enumerate(chain, 1):
                print(f"  {depth:2} {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

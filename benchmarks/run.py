"""Every benchmark, one after the other, in one process: ratios against named rivals.

make bench                                   all of them
python benchmarks/run.py training rank       some of them
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    names = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    wanted = sys.argv[1:] or names
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}. Known: {', '.join(names)}.")
    missed = []
    for name in wanted:
        print(f"\n{name}", flush=True)
        try:
            import_module(f"bench_{name}").main()
        except SystemExit as said:  # a bar that was missed does not keep the others from being measured
            if said.code:
                print(said.code, flush=True)
                missed.append(name)
    if missed:
        sys.exit(f"\nbars were missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()

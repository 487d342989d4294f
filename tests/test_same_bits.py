"""Same key, same result: what a product gives must not depend on where in memory its numbers lie."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import heedful, torch
torch.set_num_threads(1)
for kind in (torch.float32, torch.float64):
    for m, k, n in ((3, 8, 8), (7, 16, 16), (30, 32, 64)):
        x, w, found = torch.randn(m, k, dtype=kind), torch.randn(n, k, dtype=kind), []
        for shift in range(16):
            room = torch.empty(m * k + 16, dtype=kind)[shift : shift + m * k].view(m, k)
            found.append(torch.nn.functional.linear(room.copy_(x), w))
        assert all(torch.equal(one, found[0]) for one in found), (kind, m, k, n)
"""


def test_products_do_not_depend_on_addresses() -> None:
    """On some processors they do, unless MKL is told before its first product."""
    given = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_the_user_says_is_kept() -> None:
    told = "import heedful, os; print(os.environ['MKL_CBWR'])"
    given = os.environ | {"MKL_CBWR": "COMPATIBLE"}
    done = subprocess.run([sys.executable, "-c", told], env=given, capture_output=True, text=True)
    assert done.stdout.strip() == "COMPATIBLE"

"""What holds for all tests: a busy machine makes no property test fail, and real corpora may be absent."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

settings.register_profile("heedful", deadline=None)
settings.load_profile("heedful")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("corpora") and not os.environ.get("HEEDFUL_DATA"):
        pytest.skip("HEEDFUL_DATA does not say where the real corpora are")


def pytest_collection_finish() -> None:
    """What is loaded by now stays until the end: the collector need not go through it again and again."""
    gc.collect()
    gc.freeze()

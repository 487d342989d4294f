"""What holds for all tests: a busy machine makes no property test fail."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("heedful", deadline=None)
settings.load_profile("heedful")

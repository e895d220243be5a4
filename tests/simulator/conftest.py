"""Fixtures of the simulator's tests."""

from collections.abc import Iterator

import pytest
from raw_manager import RawManager


@pytest.fixture
def manager() -> Iterator[RawManager]:
    raw = RawManager()
    yield raw
    raw.close()

"""Reasons are compared as they are written in the code."""

from collections.abc import Iterator

import pytest
from django.utils import translation


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Switch the language of the msgids on."""
    with translation.override("en"):
        yield

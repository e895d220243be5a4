"""Lets the loop of a test call the stores itself: on its clock no time passes meanwhile."""

import pytest

# What is compared there is what a failure has to show.
pytest.register_assert_rewrite("truth.stored_truth")


@pytest.fixture(autouse=True)
def stores_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")

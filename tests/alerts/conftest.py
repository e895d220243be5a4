"""No rule but those that a test makes."""

import pytest

from facho.alerts.models import AlertRule


@pytest.fixture(autouse=True)
def _no_rules(request: pytest.FixtureRequest) -> None:
    """Take the rules of a fresh installation away."""
    if request.node.get_closest_marker("django_db"):
        request.getfixturevalue("transactional_db" if _is_transactional(request) else "db")
        AlertRule.objects.all().delete()


def _is_transactional(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    return bool(marker and marker.kwargs.get("transaction"))

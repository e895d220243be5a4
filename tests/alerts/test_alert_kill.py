"""A pass that dies between any two statements has changed nothing; the next one tells the same, once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from alerts.alert_world import add_onus, answering_olt, cut, make_channel, make_rule, messages, passes, repair
from alerts.alert_world import minute as at_minute
from facho.alerts.models import Alert, Notice
from facho.hosts.models import Olt
from facho.onus.models import Outage


class Killed(BaseException):
    """The process is gone."""


class Statements:
    """Counts statements, and dies at one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.count = 0
        self.last = last

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        """Run a statement, or never get to it."""
        self.count += 1
        if self.count == self.last:
            raise Killed
        return execute(sql, *rest)


@contextmanager
def counting(last: int | None = None) -> Iterator[Statements]:
    statements = Statements(last)
    with connection.execute_wrapper(statements):
        yield statements


def begin(olt: Olt) -> None:
    """Let one cut be reported; then it is repaired, and another one comes."""
    Notice.objects.all().delete()
    Alert.objects.all().delete()
    Outage.objects.all().delete()
    first = cut(olt, [], port=1)
    passes(0)
    repair(first, at=at_minute(1))
    cut(olt, [], port=2, at=at_minute(1))


def rows() -> tuple[list[Any], list[Any]]:
    alerts = Alert.objects.order_by("subject").values_list("subject", "state", "told_at", "resolved_at")
    notices = Notice.objects.order_by("kind", "channel", "title").values_list("kind", "channel", "title")
    return list(alerts), list(notices)


@pytest.mark.django_db(transaction=True)
def test_a_pass_that_dies_anywhere_loses_and_doubles_nothing() -> None:
    olt = answering_olt()
    add_onus(olt, 1)
    make_rule("pon_outage", make_channel("one"), make_channel("two"))
    make_rule("weak_light", make_channel("three"))
    begin(olt)
    before = rows()
    with counting() as whole:
        passes(1)
    expected = rows()
    assert [kind for kind, _ in messages()].count("opened") == 4
    assert len(expected[1]) == 6

    for number in range(1, whole.count + 1):
        begin(olt)
        with counting(number), pytest.raises(Killed):
            passes(1)
        assert rows() == before
        passes(1, 2)
        assert rows() == expected

"""Statements that are built once mean what the same query of Django means."""

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.db.models import DateTimeField, F, IntegerField, QuerySet

from facho.executions.models import OltToken
from facho.hosts.models import Olt
from facho.infrastructure.statements import Given, GivenMany, Insert, Select, Update
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

BY_NAME = Select(lambda: Olt.objects.filter(name=Given("name")).values_list("id", "enabled", "last_answer_at"))
AMONG = Select(lambda: Olt.objects.filter(GivenMany("ids", "id")).order_by("id").values_list("id"))
PAIRS = Select(lambda: Olt.objects.filter(GivenMany("pairs", "id", "port")).order_by("id").values_list("id"))
HEARD = Update(
    lambda: Olt.objects.filter(id=Given("id"), enabled=True),
    returning=("id", "last_answer_at"),
    last_answer_at=Given("now"),
    consecutive_failures=F("consecutive_failures") + Given("failures", IntegerField()),
    last_error="100 % lost, 'it' said",
)
TOKEN = Insert(OltToken, ("olt_id", "token"), returning=("token",))
STRICT_TOKEN = Insert(OltToken, ("olt_id", "token"), ignore_conflicts=False)


def test_rows_come_as_django_reads_them() -> None:
    olt, _ = make_olt(), make_olt()
    Olt.objects.filter(id=olt.id).update(last_answer_at=NOW)

    assert BY_NAME.rows(name=olt.name) == [(olt.id, True, NOW)]
    assert BY_NAME.first(name="nowhere") is None


def test_the_sql_is_built_once() -> None:
    built: list[QuerySet[Olt]] = []

    def build() -> QuerySet[Olt, tuple[int]]:
        built.append(Olt.objects.filter(id=Given("id")))
        return built[-1].values_list("id")

    statement = Select(build)
    for number in (1, 2, 3):
        statement.rows(id=number)

    assert len(built) == 1


def test_columns_are_compared_with_many_values_and_with_rows_of_them() -> None:
    first, second, third = make_olt(), make_olt(), make_olt()

    assert AMONG.rows(ids=[third.id, first.id]) == [(first.id,), (third.id,)]
    assert AMONG.rows(ids=[]) == []
    assert PAIRS.rows(pairs=[(second.id, second.port), (third.id, third.port + 1)]) == [(second.id,)]


def test_an_update_returns_what_it_changed_and_writes_constants_as_they_are() -> None:
    olt, disabled = make_olt(), make_olt(enabled=False)
    Olt.objects.update(consecutive_failures=2)

    assert HEARD.rows(id=olt.id, now=NOW, failures=3) == [(olt.id, NOW)]
    assert HEARD.rows(id=disabled.id, now=NOW, failures=3) == []
    olt.refresh_from_db()
    assert (olt.consecutive_failures, olt.last_error) == (5, "100 % lost, 'it' said")


def test_many_updates_are_counted_together() -> None:
    olts = [make_olt() for _ in range(3)]
    update = Update(lambda: Olt.objects.filter(id=Given("id")), last_answer_at=Given("now"))

    changed = update.run_each({"id": olt.id, "now": NOW} for olt in [*olts, Olt(id=0)])

    assert changed == 3
    assert update.run_each([]) == 0


def test_a_row_that_is_there_is_left_out_or_refused() -> None:
    olt = make_olt()

    assert TOKEN.rows(olt_id=olt.id, token=4) == [(4,)]
    assert TOKEN.rows(olt_id=olt.id, token=5) == []
    with pytest.raises(IntegrityError):
        STRICT_TOKEN.run(olt_id=olt.id, token=5)


def test_times_are_given_with_their_field() -> None:
    olt = make_olt()
    Olt.objects.update(last_answer_at=NOW)
    since = Select(lambda: Olt.objects.filter(last_answer_at__gt=Given("at", DateTimeField())).values_list("id"))

    assert since.rows(at=NOW - timedelta(seconds=1)) == [(olt.id,)]
    assert since.rows(at=NOW) == []

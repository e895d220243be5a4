"""What a supervisor asks: is the process alive, and does it poll and store."""

import io
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from api.rows import make_user
from facho.accounts.roles import Role
from facho.core import health
from facho.core.health import Seen
from facho.core.security import Strangers
from facho.infrastructure.standstill import Standstill
from facho.polling.domain.lease import Shard, all_shards
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.store import release_leadership, renew_leadership


def test_a_process_is_alive_whatever_its_database_does() -> None:
    assert Client().get("/livez").json() == {"status": "alive"}


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What a process has seen that has just begun."""
    seen = Seen()
    monkeypatch.setattr(health, "seen", seen)
    return seen


def lead(*, standstill: str = "", ago: timedelta = timedelta(0)) -> None:
    renewed_at = timezone.now() - ago
    LeaderLease.objects.create(name="scheduler", owner="engine/1", renewed_at=renewed_at, standstill=standstill)


@pytest.mark.django_db
def test_a_process_is_ready_while_somebody_leads_and_starts_nodes() -> None:
    lead()

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


@pytest.mark.django_db
@pytest.mark.parametrize("ago", [None, timedelta(minutes=1)])
def test_nobody_who_leads_is_a_reason(ago: timedelta | None) -> None:
    if ago:
        lead(ago=ago)

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["code"]) == (503, "no_leader")
    assert "facho scheduler" in answer.json()["reason"]


@pytest.mark.django_db
def test_ready_means_that_every_engine_schedules_and_a_dead_one_is_named(settings: Settings) -> None:
    settings.FACHO_ENGINES = 3
    for shard in all_shards(3):
        renew_leadership(f"engine/{shard.number}", now=timezone.now(), shard=shard)
    assert Client().get("/readyz").status_code == 200

    release_leadership("engine/2", Shard(2, 3))

    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "engine_gone")
    assert answer.json()["reason"].startswith("Engine 2/3 does not poll. ")


@pytest.mark.django_db
def test_engines_that_are_all_gone_are_no_leader_and_leases_of_another_count_change_nothing(settings: Settings) -> None:
    settings.FACHO_ENGINES = 2
    lead()
    for shard in all_shards(3):
        renew_leadership(f"engine/{shard.number}", now=timezone.now(), shard=shard)

    assert Client().get("/readyz").json()["code"] == "no_leader"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/account/", "/admin/", "/"])
def test_every_page_names_the_engine_that_does_not_poll(path: str, administrator: Client, unwatched: Seen) -> None:
    unwatched.standstill, unwatched.engines = Standstill.ENGINE_GONE, "2/3"

    page = administrator.get(path).content.decode()

    assert "Engine 2/3 does not poll." in page
    assert "Nothing is polled." not in page


@pytest.mark.django_db
@pytest.mark.parametrize("standstill", ["disk_full", "damaged", "ticks_fail"])
def test_a_leader_that_starts_nothing_says_why(standstill: str) -> None:
    lead(standstill=standstill)

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["code"]) == (503, standstill)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/account/", "/admin/", "/"])
def test_what_stands_still_is_said_on_every_page(path: str, administrator: Client, unwatched: Seen) -> None:
    assert b"Nothing is polled." not in administrator.get(path).content

    unwatched.standstill = Standstill.DISK_FULL

    page = administrator.get(path).content.decode()
    assert "Nothing is polled." in page
    assert "The disk of the database is full. Free some space" in page


@pytest.mark.django_db
def test_a_request_that_the_storage_fails_is_answered_with_503_and_makes_the_process_not_ready(
    monkeypatch: pytest.MonkeyPatch, administrator: Client, unwatched: Seen
) -> None:
    lead()
    unwatched.is_watched = True
    administrator.raise_request_exception = False

    def fail(*_arguments: object) -> None:
        try:
            raise full_disk()
        except sqlite3.Error as error:
            raise OperationalError(str(error)) from error

    monkeypatch.setattr("facho.api.olts.OltViewSet.list", fail)
    answer = administrator.get("/api/v1/olts/")

    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
    assert answer.json()["type"] == "urn:facho:problem:disk-full"
    assert answer.json()["detail"] == "The disk of the database is full. Free some space; polling resumes by itself."
    assert answer.headers["Retry-After"] == "30"
    assert Client().get("/readyz").json()["code"] == "disk_full"


def full_disk() -> sqlite3.Error:
    """The error of a real database that may not grow."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA max_page_count = 2")
        try:
            database.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(100000))")
        except sqlite3.Error as error:
            return error
    raise AssertionError("there was room")


@pytest.mark.django_db
def test_a_missing_migration_is_named() -> None:
    MigrationRecorder(connection).record_unapplied("traps", "0002_unsettled")

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["reason"]) == (
        503,
        "migration traps.0002_unsettled is not applied",
    )


@pytest.mark.django_db
def test_a_newer_database_is_named() -> None:
    MigrationRecorder(connection).record_applied("hosts", "9999_future")

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["reason"]) == (
        503,
        "the database is from a newer version (hosts.9999_future)",
    )


@pytest.mark.django_db
def test_a_silent_database_is_said_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise DatabaseError("connection to 10.0.0.9 as facho failed")

    monkeypatch.setattr("facho.core.health.read_database_version", fail)

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["code"]) == (503, "unreachable")
    assert "10.0.0.9" not in answer.content.decode()


@pytest.mark.parametrize("path", ["/livez", "/login/", "/api/v1/olts/", "/nothing"])
@pytest.mark.django_db
def test_every_answer_lets_only_our_own_scripts_run(path: str) -> None:
    assert "script-src 'self';" in Client().get(path).headers["Content-Security-Policy"]


@pytest.fixture
def strangers_log() -> Iterator[io.StringIO]:
    """What strangers let the product write, from the beginning of a minute."""
    handler = next(each for each in logging.getLogger("django.security").handlers if each.name == "strangers")
    assert isinstance(handler, logging.StreamHandler)
    log = io.StringIO()
    # The usual stream may be that of an earlier test, and closed: it is not flushed.
    usual_stream, usual_filters = handler.stream, handler.filters
    handler.stream, handler.filters = log, [Strangers()]
    yield log
    handler.stream, handler.filters = usual_stream, usual_filters


def test_a_name_that_nobody_allowed_is_reported_without_a_traceback(strangers_log: io.StringIO) -> None:
    answer = Client().get("/livez", headers={"host": "elsewhere.example"})

    assert answer.status_code == 400
    assert strangers_log.getvalue().count("Invalid HTTP_HOST header: 'elsewhere.example'") == 1
    assert "Traceback" not in strangers_log.getvalue()


@pytest.mark.django_db
def test_who_may_not_enter_is_one_line_of_the_log(strangers_log: io.StringIO) -> None:
    client = Client()
    client.force_login(make_user(Role.VIEWER))

    answer = client.get("/admin/login/")

    assert (answer.status_code, strangers_log.getvalue().count("\n")) == (403, 1)
    assert "Forbidden (Permission denied): /admin/login/" in strangers_log.getvalue()


def test_the_log_counts_what_it_leaves_out() -> None:
    lines, clock = Strangers(), 1_000_000.0

    def passes(at: float) -> tuple[bool, str]:
        record = logging.LogRecord("django.request", logging.WARNING, __file__, 1, "Not Found: %s", ("/x",), None)
        record.created = at
        return lines.filter(record), record.getMessage()

    written = [text for is_written, text in (passes(clock + number / 100) for number in range(100)) if is_written]

    assert len(written) == Strangers.LINES_PER_MINUTE
    assert passes(clock + 61) == (True, "Not Found: /x (and 80 lines that were left out)")
    assert passes(clock + 62) == (True, "Not Found: /x")


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    record = logging.LogRecord(
        "django.request", logging.ERROR, __file__, 1, "failed", (), (ValueError, ValueError(), None)
    )

    assert Strangers().filter(record)
    assert record.exc_info is not None

"""Whether code and database fit."""

import asyncio
import os
import signal

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import Settings

from facho.alerts.models import AlertRule
from facho.alerts.store import offer_default_rules
from facho.core.database import (
    compare,
    known_migrations,
    read_database_version,
)
from facho.core.env import Mode
from facho.core.processes.leader_watch import watch_version
from facho.core.product import BAD_CONFIGURATION, OperatorError, bring_up_to_date
from facho.executions.processes import ProcessReport, forget_process, save_process
from facho.infrastructure.gateway import ThreadGateway

FUTURE = ("hosts", "0999_from_the_future")


def test_what_is_known_and_applied_is_current() -> None:
    assert compare(known_migrations()).is_current


def test_what_separates_them_is_reported() -> None:
    missing = ("traps", "0002_unsettled")

    version = compare({*known_migrations(), FUTURE} - {missing})

    assert version.unknown == (FUTURE,)
    assert version.missing == (missing,)
    assert not version.is_current


def test_an_app_that_this_version_does_not_have_is_newer_too() -> None:
    assert compare({*known_migrations(), ("tomorrow", "0001_initial")}).unknown == (("tomorrow", "0001_initial"),)


@pytest.mark.django_db
def test_a_database_from_between_two_releases_is_refused_with_what_to_do() -> None:
    """Half of what a migration joins is applied, and no file has the other half any more."""
    recorder = MigrationRecorder(connection)
    joined = ("accounts", "0003_squashed_0008_passkeys")
    for gone in (joined, *squashed_migrations()[joined][1:]):
        recorder.record_unapplied(*gone)

    with pytest.raises(OperatorError) as refused:
        bring_up_to_date()

    assert refused.value.status == BAD_CONFIGURATION
    assert joined[1] in refused.value.lines[0]
    assert "facho olt export" in " ".join(refused.value.lines)


@pytest.mark.django_db
def test_the_test_database_is_current() -> None:
    assert read_database_version().is_current
    bring_up_to_date()


@pytest.mark.django_db
def test_a_newer_database_is_refused_in_both_modes(settings: Settings) -> None:
    MigrationRecorder(connection).record_applied(*FUTURE)

    for mode in Mode:
        settings.FACHO_MODE = mode
        with pytest.raises(OperatorError, match=r"hosts\.0999_from_the_future"):
            bring_up_to_date()


@pytest.mark.django_db
def test_the_distributed_mode_only_says_what_is_missing(settings: Settings) -> None:
    settings.FACHO_MODE = Mode.DISTRIBUTED
    MigrationRecorder(connection).record_unapplied("traps", "0002_unsettled")

    with pytest.raises(OperatorError, match=r"traps\.0002_unsettled"):
        bring_up_to_date()


@pytest.mark.django_db
def test_a_database_of_the_migrations_before_the_squash_passes_over() -> None:
    """The schema is the same, so the new names are recorded and nothing is run."""
    recorder, squashed = MigrationRecorder(connection), squashed_migrations()
    offer_default_rules()
    for key, replaced in squashed.items():
        recorder.record_unapplied(*key)
        for former in replaced:
            recorder.record_applied(*former)
    rules = list(AlertRule.objects.values_list("id", "name"))

    before = read_database_version()
    bring_up_to_date()

    assert (before.unknown, set(before.missing)) == ((), squashed.keys())
    assert read_database_version().is_current
    assert list(AlertRule.objects.values_list("id", "name")) == rules


def squashed_migrations() -> dict[tuple[str, str], list[tuple[str, str]]]:
    disk = MigrationLoader(None).disk_migrations
    return {key: migration.replaces for key, migration in disk.items() if migration.replaces}


@pytest.mark.django_db(transaction=True)
async def test_a_process_stops_once_the_database_is_newer_than_its_code(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr("os.kill", lambda *what: killed.append(what))
    database = ThreadGateway(1)
    try:
        await database.run(MigrationRecorder(connection).record_applied, *FUTURE)

        await watch_version(database)
    finally:
        await database.run(MigrationRecorder(connection).record_unapplied, *FUTURE)
        await database.close()

    assert killed == [(os.getpid(), signal.SIGTERM)]
    assert "database.newer" in caplog.text
    assert "hosts.0999_from_the_future" in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_two_versions_at_once_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    database = ThreadGateway(1)
    now = timezone.now()
    try:
        await database.run(save_process, ProcessReport("web@old", "0.0.9", now, now))

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await watch_version(database)
    finally:
        await database.run(forget_process, "web@old")
        await database.close()

    assert "versions.differ" in caplog.text
    assert "web@old 0.0.9" in caplog.text

"""Whether code and database fit."""

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from facho.alerts.models import AlertRule
from facho.alerts.store import offer_default_rules
from facho.core.database import (
    MissingMigrations,
    NewerDatabase,
    compare,
    ensure_current,
    known_migrations,
    read_database_version,
)
from facho.core.env import Mode

FUTURE = ("hosts", "0999_from_the_future")


def test_what_is_known_and_applied_is_current() -> None:
    assert compare(known_migrations()).is_current


def test_what_separates_them_is_told() -> None:
    missing = ("alerts", "0003_acting_on_messages")

    version = compare({*known_migrations(), FUTURE} - {missing})

    assert version.unknown == (FUTURE,)
    assert version.missing == (missing,)
    assert not version.is_current


def test_an_app_that_this_version_does_not_have_is_newer_too() -> None:
    assert compare({*known_migrations(), ("tomorrow", "0001_initial")}).unknown == (("tomorrow", "0001_initial"),)


@pytest.mark.django_db
def test_the_test_database_is_current() -> None:
    assert read_database_version().is_current
    ensure_current()


@pytest.mark.django_db
def test_a_newer_database_is_refused_in_both_modes(settings: Settings) -> None:
    MigrationRecorder(connection).record_applied(*FUTURE)

    for mode in Mode:
        settings.FACHO_MODE = mode
        with pytest.raises(NewerDatabase, match=r"hosts\.0999_from_the_future"):
            ensure_current()


@pytest.mark.django_db
def test_the_distributed_mode_only_says_what_is_missing(settings: Settings) -> None:
    settings.FACHO_MODE = Mode.DISTRIBUTED
    MigrationRecorder(connection).record_unapplied("alerts", "0003_acting_on_messages")

    with pytest.raises(MissingMigrations, match=r"alerts\.0003_acting_on_messages"):
        ensure_current()


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
    ensure_current()

    assert (before.unknown, set(before.missing)) == ((), squashed.keys())
    assert read_database_version().is_current
    assert list(AlertRule.objects.values_list("id", "name")) == rules


def squashed_migrations() -> dict[tuple[str, str], list[tuple[str, str]]]:
    disk = MigrationLoader(None).disk_migrations
    return {key: migration.replaces for key, migration in disk.items() if migration.replaces}

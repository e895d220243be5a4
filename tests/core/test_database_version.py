"""Whether code and database fit."""

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from facho.core.database_version import (
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
    version = compare({*known_migrations(), FUTURE} - {("hosts", "0001_initial")})

    assert version.unknown == (FUTURE,)
    assert version.missing == (("hosts", "0001_initial"),)
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
    MigrationRecorder(connection).record_unapplied("zabbix_pollers", "0001_initial")

    with pytest.raises(MissingMigrations, match=r"zabbix_pollers\.0001_initial"):
        ensure_current()

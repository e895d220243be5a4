"""Compares the database's migrations with those that this version knows, and applies what is missing."""

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from facho.core.env import Mode

Migration = tuple[str, str]


class NewerDatabase(Exception):
    """Migrations are applied that this version does not know; the message names one."""


class MissingMigrations(Exception):
    """Migrations of this version are not applied; the message names one."""


@dataclass(frozen=True, slots=True)
class DatabaseVersion:
    """What separates the database from this version, each as (app, name)."""

    unknown: tuple[Migration, ...]
    missing: tuple[Migration, ...]

    @property
    def is_current(self) -> bool:
        """Tell whether code and database fit."""
        return not self.unknown and not self.missing


def ensure_current() -> None:
    """Make the database fit this version, or raise; only the embedded mode changes it by itself."""
    version = read_database_version()
    _refuse_newer(version)
    if version.is_current:
        return
    if settings.FACHO_MODE is not Mode.EMBEDDED:
        raise MissingMigrations(named(version.missing))
    with _alone():
        call_command("migrate", interactive=False, verbosity=0)


def read_database_version() -> DatabaseVersion:
    """Compare the connected database with the migrations on disk."""
    return compare(MigrationRecorder(connection).applied_migrations())


def compare(applied: Iterable[Migration]) -> DatabaseVersion:
    """Compare applied migrations with the migrations on disk."""
    known, done = known_migrations(), set(applied)
    return DatabaseVersion(unknown=tuple(sorted(done - known)), missing=tuple(sorted(known - done)))


def known_migrations() -> set[Migration]:
    """List the migrations that this version brings; needs no database."""
    return set(MigrationLoader(None).disk_migrations)


def named(migrations: Iterable[Migration]) -> str:
    """Name the last one, which usually is the newest."""
    return ".".join(list(migrations)[-1])


def _refuse_newer(version: DatabaseVersion) -> None:
    if version.unknown:
        raise NewerDatabase(named(version.unknown))


@contextmanager
def _alone() -> Iterator[None]:
    """Keep two commands from migrating at once; the second finds nothing left to do."""
    path: Path = settings.DATA_FOLDER.path / "migrate.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""Turns DATABASE_URL into Django's DATABASES entry, with the options that each engine needs here."""

import fcntl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

# One engine process writes; another process (web, command line) waits its turn instead of failing.
SQLITE_BUSY_SECONDS = 20

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": SQLITE_BUSY_SECONDS,
    # Each thread has a connection; 2 MB of pages in each would fill over the first hour, and the system has them too.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-512;",
}


class BadDatabaseUrl(ValueError):
    """The URL has a scheme or shape that we do not support; its text may hold a password and is not repeated."""


def database_entry(url: str, *, data_dir: Path) -> dict[str, Any]:
    """Describe the database at `url`, or the SQLite file of the data folder when it is empty."""
    if not url:
        return _sqlite(data_dir / "facho.sqlite3")
    try:
        parts = urlsplit(url)
        if parts.scheme == "sqlite" and len(parts.path) > 1:
            return _sqlite(Path(unquote(parts.path.removeprefix("/"))))
        if parts.scheme in ("postgres", "postgresql") and len(parts.path) > 1:
            query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
            return {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": unquote(parts.path.removeprefix("/")),
                "USER": unquote(parts.username or ""),
                "PASSWORD": unquote(parts.password or ""),
                "HOST": query.pop("host", parts.hostname or ""),
                "PORT": str(parts.port or ""),
                "CONN_MAX_AGE": 60,
                "CONN_HEALTH_CHECKS": True,
                "OPTIONS": query,
            }
    except ValueError:
        # The parser's own words may repeat the password.
        raise BadDatabaseUrl("DATABASE_URL has a host or port that cannot be read") from None
    raise BadDatabaseUrl("DATABASE_URL must look like postgresql://HOST/NAME or sqlite:///PATH")


def _sqlite(path: Path) -> dict[str, Any]:
    # Opening the file for each call would take longer than most calls.
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": None,
        "OPTIONS": SQLITE_OPTIONS,
    }


Migration = tuple[str, str]
# They joined migrations that later ones join too; databases of then have their names beside those of all they joined.
JOINED_AGAIN = {
    ("accounts", "0003_squashed_0006_second_factors"),
    ("executions", "0001_squashed_0008_nothing_to_ask"),
    ("hosts", "0001_squashed_0010_discovered_at"),
    ("onus", "0001_squashed_0012_discovered_olts"),
    ("onus", "0002_search_indexes"),
    ("plant", "0001_squashed_0004_what_days_say_of_light"),
}


@dataclass(frozen=True, slots=True)
class DatabaseVersion:
    """What separates the database from this version, each as (app, name)."""

    unknown: tuple[Migration, ...]
    missing: tuple[Migration, ...]
    # Missing ones that join others, of which some are applied: no file has the others any more.
    halfway: tuple[Migration, ...] = ()

    @property
    def is_current(self) -> bool:
        return not self.unknown and not self.missing


def migrate() -> None:
    """Apply what is missing; of two processes on one data folder the second finds nothing left to do."""
    with (settings.DATA_FOLDER.path / "migrate.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        call_command("migrate", interactive=False, verbosity=0)


def offer_rules() -> None:
    """Add the default rules of alerts that this version brings."""
    # Settings import this module, so models cannot be imported at its top.
    from facho.alerts.store import offer_default_rules

    offer_default_rules()


def read_database_version() -> DatabaseVersion:
    return compare(MigrationRecorder(connection).applied_migrations())


def compare(applied: Iterable[Migration]) -> DatabaseVersion:
    """Compare applied migrations with the migrations on disk; those that others replaced are known too."""
    brought, done = _brought(), set(applied)
    replaced = {former for migration in brought.values() for former in migration.replaces}
    missing = brought.keys() - done
    halfway = {key for key in missing if 0 < len(done.intersection(brought[key].replaces)) < len(brought[key].replaces)}
    return DatabaseVersion(
        unknown=tuple(sorted(done - brought.keys() - replaced - JOINED_AGAIN)),
        missing=tuple(sorted(missing)),
        halfway=tuple(sorted(halfway)),
    )


def known_migrations() -> set[Migration]:
    """List the migrations that this version brings; needs no database."""
    return set(_brought())


@cache
def _brought() -> Mapping[Migration, Any]:
    """Read them once: the files may be those of a newer version by the time a process looks again."""
    return MigrationLoader(None).disk_migrations


def named(migrations: Iterable[Migration]) -> str:
    """Name the last one, which usually is the newest."""
    return ".".join(list(migrations)[-1])


def prefer_indexes(connection: BaseDatabaseWrapper, **_about: object) -> None:
    """Set the true cost of a random page, since the default is that of a spinning disk, and of help from workers.

    Otherwise whole tables are read to update the ONUs of a poll, and processes started to list fifty of a million.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET random_page_cost = 1.1; SET max_parallel_workers_per_gather = 0")

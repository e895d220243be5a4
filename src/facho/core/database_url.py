"""Turns DATABASE_URL into Django's DATABASES entry, with the options that each engine needs here."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

# One engine process writes; another process (web, command line) waits its turn instead of failing.
SQLITE_BUSY_SECONDS = 20

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": SQLITE_BUSY_SECONDS,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}


class BadDatabaseUrl(ValueError):
    """The URL has a scheme or shape that we do not support; its text may hold a password and is not repeated."""


def database_entry(url: str, *, data_dir: Path) -> dict[str, Any]:
    """Describe the database at `url`, or the SQLite file of the data folder when it is empty."""
    if not url:
        return _sqlite(data_dir / "facho.sqlite3")
    try:
        return _entry_of(url)
    except BadDatabaseUrl:
        raise
    except ValueError:
        # The parser's own words may repeat the password.
        raise BadDatabaseUrl("DATABASE_URL has a host or port that cannot be read") from None


def _entry_of(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and len(parts.path) > 1:
        return _sqlite(Path(unquote(parts.path.removeprefix("/"))))
    if parts.scheme in ("postgres", "postgresql") and len(parts.path) > 1:
        return _postgresql(url)
    raise BadDatabaseUrl("DATABASE_URL must look like postgresql://HOST/NAME or sqlite:///PATH")


def _sqlite(path: Path) -> dict[str, Any]:
    # Opening the file for each call would take longer than most calls.
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": None,
        "OPTIONS": SQLITE_OPTIONS,
    }


def _postgresql(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
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

"""The only module that reads the environment. Every setting is declared here once, with its default.

A value that cannot be read is kept as a problem, so that a system check can name it together with the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

PREFIX = "FACHO_"


class Mode(StrEnum):
    """How the product runs; chosen, never guessed."""

    EMBEDDED = "embedded"
    DISTRIBUTED = "distributed"


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: how to read it, and what holds when it is absent."""

    name: str
    read: Callable[[str], Any]
    default: str
    expects: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A variable whose value could not be used; the value itself is not kept, it may be a secret."""

    name: str
    expects: str


def _text(value: str) -> str:
    return value


def _optional_path(value: str) -> Path | None:
    return Path(value).expanduser() if value else None


def _path(value: str) -> Path:
    return Path(value).expanduser()


def _positive_int(value: str) -> int:
    number = int(value)
    if number < 1:
        raise ValueError
    return number


def _positive_seconds(value: str) -> float:
    number = float(value)
    if not 0 < number < 86_400:
        raise ValueError
    return number


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _language(value: str) -> str:
    if value not in ("es", "en"):
        raise ValueError
    return value


def _bind(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not host or not 0 <= int(port) <= 65_535:
        raise ValueError
    return value


def _log_level(value: str) -> str:
    if value not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ValueError
    return value


SETTINGS = (
    Setting("FACHO_MODE", Mode, Mode.EMBEDDED, "embedded or distributed"),
    Setting("FACHO_DATA_DIR", _path, "facho-data", "a folder that this user may write"),
    Setting("DATABASE_URL", _text, "", "postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:///PATH"),
    Setting("REDIS_URL", _text, "", "redis://HOST:PORT/NUMBER"),
    Setting("FACHO_SECRET_KEY_FILE", _optional_path, "", "a file with one line"),
    Setting("FACHO_ENCRYPTION_KEYS_FILE", _optional_path, "", "a file with one Fernet key a line"),
    Setting("FACHO_BIND", _bind, "127.0.0.1:8000", "HOST:PORT"),
    Setting("FACHO_ALLOWED_HOSTS", _names, "localhost,127.0.0.1,[::1]", "host names, separated by commas"),
    Setting("FACHO_POLLERS", _positive_int, "10", "a whole number from 1"),
    Setting("FACHO_LEASE_SECONDS", _positive_seconds, "60", "seconds, above 0 and below a day"),
    Setting("FACHO_LANGUAGE", _language, "es", "es or en"),
    Setting("FACHO_TIME_ZONE", _text, "UTC", "a time zone name such as America/Bogota"),
    Setting("FACHO_LOG_LEVEL", _log_level, "INFO", "DEBUG, INFO, WARNING or ERROR"),
)


@dataclass(frozen=True, slots=True)
class Environment:
    """All settings as typed values, and what was wrong with the environment."""

    values: Mapping[str, Any]
    problems: tuple[Problem, ...]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def read_environment(environ: Mapping[str, str]) -> Environment:
    """Read every declared setting; an unknown FACHO_ name is a problem too, since it is usually a typing error."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for setting in SETTINGS:
        try:
            values[setting.name] = setting.read(environ.get(setting.name) or setting.default)
        except ValueError:
            values[setting.name] = setting.read(setting.default)
            problems.append(Problem(setting.name, setting.expects))
    known = {setting.name for setting in SETTINGS}
    problems += [
        Problem(name, "no such setting") for name in sorted(environ) if name.startswith(PREFIX) and name not in known
    ]
    return Environment(values, tuple(problems))

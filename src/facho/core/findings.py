"""What the doctor says of one part of an installation."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad a finding is; only an error makes the doctor fail."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do."""

    verdict: Verdict
    name: str
    text: str


def ok(name: str, text: str) -> Finding:
    """Say that a part is as it should be."""
    return Finding(Verdict.OK, name, text)


def warning(name: str, text: str) -> Finding:
    """Say what should be looked after."""
    return Finding(Verdict.WARNING, name, text)


def error(name: str, text: str) -> Finding:
    """Say what has to be put right."""
    return Finding(Verdict.ERROR, name, text)

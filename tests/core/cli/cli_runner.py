"""The shape of a command run by a test."""

from dataclasses import dataclass
from typing import Protocol

CANARY = "canary-7f3a"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str


class Command(Protocol):
    """`facho ARGUMENTS`, with these bytes on standard input."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Outcome: ...

"""A message on its way out, and what became of one try; plain values, known to the process that sends as well."""

from dataclasses import dataclass
from enum import StrEnum


class Trouble(StrEnum):
    """Why a try failed."""

    UNREACHABLE = "unreachable"
    ADDRESS_REFUSED = "address_refused"
    TIMED_OUT = "timed_out"
    CERTIFICATE = "certificate"
    NOT_TAKEN = "not_taken"
    UNUSABLE = "unusable"
    KEY_LOST = "key_lost"
    CRASHED = "crashed"


# Answers of a service that will never take this very message: a repeat would only hold up those after it.
FINAL_ANSWERS = frozenset({400, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one try; `answer` is the status with which the other side refused, where it said one."""

    trouble: Trouble | None = None
    answer: int | None = None
    # Whether trying again cannot help.
    is_final: bool = False

    @property
    def is_sent(self) -> bool:
        """Whether the other side took the message."""
        return self.trouble is None

    @property
    def is_refused(self) -> bool:
        """Whether the other side was reached and did not take it, which may be about this very message."""
        return self.trouble is Trouble.NOT_TAKEN


SENT = Outcome()


@dataclass(frozen=True, slots=True)
class Message:
    """What is told; `id` is the same at every try, and of no other message of any installation."""

    id: str
    kind: str
    severity: str
    title: str
    body: str

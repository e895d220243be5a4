"""A message to send and the outcome of one try: plain values, which the sender process knows too."""

from dataclasses import dataclass
from enum import StrEnum


class Trouble(StrEnum):
    UNREACHABLE = "unreachable"
    ADDRESS_REFUSED = "address_refused"
    TIMED_OUT = "timed_out"
    CERTIFICATE = "certificate"
    NOT_TAKEN = "not_taken"
    UNUSABLE = "unusable"
    KEY_LOST = "key_lost"
    CRASHED = "crashed"


# Answers of a service that will never take this message: repeating it would only hold up those behind it.
FINAL_ANSWERS = frozenset({400, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one try; `answer` is the status of a refusal, if there was one."""

    trouble: Trouble | None = None
    answer: int | None = None
    # Whether trying again cannot help.
    is_final: bool = False

    @property
    def is_sent(self) -> bool:
        return self.trouble is None

    @property
    def is_refused(self) -> bool:
        """Whether the service was reached and did not take it, perhaps because of this very message."""
        return self.trouble is Trouble.NOT_TAKEN


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent; `id` is the same at every try, and unique across installations."""

    id: str
    kind: str
    severity: str
    title: str
    body: str
    # Links of this product, which are not escaped as the text from devices is.
    footer: str = ""
    # A table for channels that carry files.
    csv: str = ""

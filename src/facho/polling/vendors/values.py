"""What becomes of a value on arrival: a typed value, or none with the reason, so that rejects can be counted."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Reject(StrEnum):
    """Why a value was not taken."""

    SENTINEL = "sentinel"
    OUT_OF_RANGE = "out_of_range"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_ENUM = "unknown_enum"
    MALFORMED = "malformed"
    MISSING = "missing"


Typed = int | float | str | datetime


class Decoded(NamedTuple):
    """A typed value, or None and why; exactly one of the two is None. A tuple, because a walk makes millions."""

    value: Typed | None
    reason: Reject | None = None


SENTINEL = Decoded(None, Reject.SENTINEL)
OUT_OF_RANGE = Decoded(None, Reject.OUT_OF_RANGE)
WRONG_TYPE = Decoded(None, Reject.WRONG_TYPE)
UNKNOWN_ENUM = Decoded(None, Reject.UNKNOWN_ENUM)
MALFORMED = Decoded(None, Reject.MALFORMED)
MISSING = Decoded(None, Reject.MISSING)

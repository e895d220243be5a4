"""Why a run failed, in the few kinds that a policy can act on."""

from enum import StrEnum


class FailureKind(StrEnum):
    """What went wrong at the device, on the way to it, or with our right to speak to it."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    AUTH = "auth"
    TOO_BIG = "tooBig"
    MALFORMED = "malformed"
    LOOP = "loop"
    MISSING = "missing"
    CANCELLED = "cancelled"
    # Not the device's doing: our own code failed, or the process that ran it died.
    INTERNAL = "internal"

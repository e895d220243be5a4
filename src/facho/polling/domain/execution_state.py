"""The states of an execution and their groups, and how what was asked may fail."""

from enum import StrEnum


class ExecutionState(StrEnum):
    """PENDING and RUNNING hold an OLT and a poller; WAITING holds neither; the last four are final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    INTERRUPTED = "INTERRUPTED"
    SKIPPED = "SKIPPED"


ACTIVE = frozenset({ExecutionState.PENDING, ExecutionState.RUNNING})
TERMINAL = frozenset(
    {ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.INTERRUPTED, ExecutionState.SKIPPED}
)


class FailureKind(StrEnum):
    """What went wrong at the device, on the way to it, or with our permission to send."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    AUTH = "auth"
    TOO_BIG = "tooBig"
    MALFORMED = "malformed"
    LOOP = "loop"
    # It sends more than we keep.
    TOO_MUCH = "tooMuch"
    MISSING = "missing"
    # There was nothing to ask: no ONU of the OLT is known.
    NO_ONUS = "noOnus"
    # No ONU can be listed, though something shows that the OLT has some.
    HIDDEN_ONUS = "hiddenOnus"
    CANCELLED = "cancelled"
    # Not the device's doing: our own code failed, or the process that ran it died.
    INTERNAL = "internal"


# The reason of a suspension that concerns the OLT and not one node: it did not answer at all.
UNREACHABLE = "unreachable"


class QueryType(StrEnum):
    DISCOVERY = "discovery"
    GET = "get"
    WALK = "walk"
    TABLE = "table"
    BULK = "bulk"


# Larger goes first among the nodes of one OLT that keeps up (decision D11).
RANK: dict[QueryType, int] = {
    QueryType.DISCOVERY: 90,
    QueryType.GET: 40,
    QueryType.WALK: 30,
    QueryType.TABLE: 20,
    QueryType.BULK: 10,
}


class ProbeFinding(StrEnum):
    """Where reaching an OLT fails; each has advice for the operator."""

    # Nothing came back, and nothing else helped to find out why.
    SILENT = "silent"
    # Nothing came back in the version that was asked, but it speaks another.
    SPEAKS_V1 = "speaks_v1"
    SPEAKS_V2C = "speaks_v2c"
    SPEAKS_V3 = "speaks_v3"
    # A v3 agent identified itself, and then did not answer our question.
    IGNORES_USER = "ignores_user"
    PORT_CLOSED = "port_closed"
    NO_ROUTE = "no_route"
    NO_SOURCE = "no_source"
    UNKNOWN_USER = "unknown_user"
    WRONG_LEVEL = "wrong_level"
    WRONG_AUTH = "wrong_auth"
    WRONG_PRIV = "wrong_priv"
    # It answered, and will not let us read what it is.
    NOT_ALLOWED = "not_allowed"
    # It answered, and its view hides what lists ONUs: all of it, or their serials.
    ONUS_HIDDEN = "onus_hidden"
    SERIALS_HIDDEN = "serials_hidden"
    # What is stored is no credential, or cannot be decrypted.
    BAD_CREDENTIAL = "bad_credential"
    NOT_SNMP = "not_snmp"
    STOPPED = "stopped"
    FAULT = "fault"

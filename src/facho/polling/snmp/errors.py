"""What can go wrong between us and an agent, each with the FailureKind that policies act on.

Messages name addresses, OIDs and sizes; never a community or a key.
"""

from typing import ClassVar

from facho.polling.domain.failure import FailureKind


class SnmpError(Exception):
    """Any failure of an SNMP exchange; `kind` says which."""

    kind: ClassVar[FailureKind] = FailureKind.INTERNAL


class AgentTimeout(SnmpError):
    """The agent did not answer within all tries."""

    kind = FailureKind.TIMEOUT


class BudgetSpent(AgentTimeout):
    """The operation's total time ran out before the agent had told everything."""


class AgentRefused(SnmpError):
    """The network says that nobody listens there, or that there is no way to it; `number` is the system's errno."""

    kind = FailureKind.REFUSED

    def __init__(self, message: str, *, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class NoSource(AgentRefused):
    """The address that questions should leave from is not one of this machine."""


class AgentError(SnmpError):
    """The agent answered with an error status; `index` counts the guilty varbind from 1, 0 when it names none."""

    kind = FailureKind.REFUSED

    def __init__(self, message: str, *, status: int = 0, index: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.index = index


class AccessDenied(AgentError):
    """The agent knows us and will not tell (authorizationError, noAccess), or a v3 agent does not take our keys."""

    kind = FailureKind.AUTH


class UserRefused(AccessDenied):
    """A v3 agent does not take our user, level or keys; `statistic` is the number of the usmStats that it raised."""

    def __init__(self, message: str, *, statistic: int) -> None:
        super().__init__(message)
        self.statistic = statistic


class TooBig(AgentError):
    """The agent cannot fit the answer into a packet."""

    kind = FailureKind.TOO_BIG


class MalformedMessage(SnmpError):
    """Bytes that are not a well-formed SNMP message of a kind we speak."""

    kind = FailureKind.MALFORMED


class UnexpectedAnswer(MalformedMessage):
    """A well-formed answer that does not fit the question: too many rows, other OIDs, another kind of PDU."""


class ForgedAnswer(MalformedMessage):
    """A v3 answer that does not prove to come from the agent; it counts as none."""


class WalkLoop(SnmpError):
    """The agent sends OIDs that do not increase, or never stops sending."""

    kind = FailureKind.LOOP


class MissingObject(AgentError):
    """The agent has no such object, instance or successor."""

    kind = FailureKind.MISSING


class OwnershipLost(SnmpError):
    """We no longer hold the right to send to this device."""

    kind = FailureKind.CANCELLED


class SessionClosed(SnmpError):
    """The socket was closed while the exchange was under way."""

    kind = FailureKind.CANCELLED

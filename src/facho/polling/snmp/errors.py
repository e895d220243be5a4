"""What can go wrong between us and an agent, each with the FailureKind that policies act on.

Messages name addresses, OIDs and sizes; never a community or a key.
"""

from typing import ClassVar

from facho.polling.domain.execution_state import FailureKind


class SnmpError(Exception):
    """Any failure of an SNMP exchange; `kind` says which."""

    kind: ClassVar[FailureKind] = FailureKind.INTERNAL


class AgentTimeout(SnmpError):
    kind = FailureKind.TIMEOUT


class BudgetSpent(AgentTimeout):
    """The operation's time budget ran out before the agent had sent everything."""


class AgentRefused(SnmpError):
    kind = FailureKind.REFUSED

    def __init__(self, message: str, *, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class NoSource(AgentRefused):
    """The configured source address is not one of this machine."""


class NoSocket(SnmpError):
    """This process may open no further socket: not the device's fault."""


class AgentError(SnmpError):
    """The agent returned an error status; `index` is the varbind at fault from 1, 0 if none."""

    kind = FailureKind.REFUSED

    def __init__(self, message: str, *, status: int = 0, index: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.index = index


class AccessDenied(AgentError):
    """The agent refuses access (authorizationError, noAccess), or a v3 agent rejects our keys."""

    kind = FailureKind.AUTH


class UserRefused(AccessDenied):
    """A v3 agent rejects our user, level or keys; `statistic` is the number of the usmStats counter."""

    def __init__(self, message: str, *, statistic: int) -> None:
        super().__init__(message)
        self.statistic = statistic


class TooBig(AgentError):
    kind = FailureKind.TOO_BIG


class MalformedMessage(SnmpError):
    """Bytes that are not a well-formed SNMP message of a supported kind."""

    kind = FailureKind.MALFORMED


class UnexpectedAnswer(MalformedMessage):
    """A well-formed answer that does not match the request: too many rows, other OIDs, another PDU type."""


class ForgedAnswer(MalformedMessage):
    """An answer that is not proven to come from the agent; it is ignored."""


class WalkLoop(SnmpError):
    """The agent returns OIDs that do not increase, or never stops."""

    kind = FailureKind.LOOP


class TooMuchData(SnmpError):
    """The agent sends more than a run may keep, or many do so at once; nothing is stored."""

    kind = FailureKind.TOO_MUCH


class MissingObject(AgentError):
    """The agent has no such object, instance or successor."""

    kind = FailureKind.MISSING


class OnusHidden(SnmpError):
    """The agent shows no ONU, and something else of it shows that there are some."""

    kind = FailureKind.HIDDEN_ONUS


class OwnershipLost(SnmpError):
    """We no longer hold the permission to send to this device."""

    kind = FailureKind.CANCELLED


class OwnershipUnproven(SnmpError):
    """Only the database can confirm the permission to send: the lease may be over."""

    kind = FailureKind.CANCELLED


class SessionClosed(SnmpError):
    kind = FailureKind.CANCELLED

"""Finds out why an OLT cannot be asked, as far as the way to it tells."""

import errno
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from facho.polling.domain.collection import SendPermit
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.probe_finding import ProbeFinding
from facho.polling.snmp.errors import (
    AccessDenied,
    AgentRefused,
    AgentTimeout,
    MissingObject,
    NoSource,
    OwnershipLost,
    SessionClosed,
    SnmpError,
    UserRefused,
)
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_UP_TIME
from facho.polling.snmp.target import Community, Patience, SnmpVersion, Target, UserCredential

# One try each: it only has to be said when something comes back.
ONCE = Patience(timeout_s=2.0, tries=1)
# A user that does not exist: any v3 agent answers so, which shows that it is there.
NOBODY = UserCredential(user="facho")

_DENIALS = {
    1: ProbeFinding.WRONG_LEVEL,
    3: ProbeFinding.UNKNOWN_USER,
    5: ProbeFinding.WRONG_AUTH,
    6: ProbeFinding.WRONG_PRIV,
}
_KINDS = {
    FailureKind.TIMEOUT: ProbeFinding.SILENT,
    FailureKind.REFUSED: ProbeFinding.NOT_ALLOWED,
    FailureKind.AUTH: ProbeFinding.BAD_CREDENTIAL,
    FailureKind.CANCELLED: ProbeFinding.STOPPED,
    FailureKind.MALFORMED: ProbeFinding.NOT_SNMP,
}


def find_cause(error: SnmpError) -> ProbeFinding:
    """Judge a failed question by what the network or the agent said."""
    if isinstance(error, UserRefused):
        return _DENIALS.get(error.statistic, ProbeFinding.FAULT)
    if isinstance(error, NoSource):
        return ProbeFinding.NO_SOURCE
    if isinstance(error, AgentRefused):
        return ProbeFinding.PORT_CLOSED if error.number == errno.ECONNREFUSED else ProbeFinding.NO_ROUTE
    if isinstance(error, MissingObject) or (isinstance(error, AccessDenied) and error.status):
        return ProbeFinding.NOT_ALLOWED
    return cause_of_kind(error.kind)


def cause_of_kind(kind: str) -> ProbeFinding:
    """Judge by the kind of a failure alone."""
    return next((finding for known, finding in _KINDS.items() if known == kind), ProbeFinding.FAULT)


async def explain_silence(network: Network, target: Target, permit: SendPermit) -> ProbeFinding:
    """Ask a silent agent once in each other version that needs no secret beyond the one we may use."""
    for other, finding in _other_ways(target):
        session = network.open(other, permit)
        try:
            await session.get([SYS_UP_TIME], patience=ONCE)
        except (AgentTimeout, AgentRefused):
            continue
        except (OwnershipLost, SessionClosed):
            raise
        except SnmpError:
            # Whatever it has against us, it speaks.
            return finding
        finally:
            with suppress(SnmpError):
                await session.close()
        return finding
    return ProbeFinding.SILENT


def _other_ways(target: Target) -> Iterator[tuple[Target, ProbeFinding]]:
    if not isinstance(target.credential, Community):
        return
    if target.version is SnmpVersion.V2C:
        yield replace(target, version=SnmpVersion.V1), ProbeFinding.SPEAKS_V1
    else:
        yield replace(target, version=SnmpVersion.V2C), ProbeFinding.SPEAKS_V2C
    yield replace(target, version=SnmpVersion.V3, credential=NOBODY), ProbeFinding.SPEAKS_V3

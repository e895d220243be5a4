"""Why an OLT cannot be read: what the probe's findings mean, and the advice for each."""

import errno
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt, SnmpVersionChoice
from facho.polling.domain.collection import SendPermit
from facho.polling.domain.execution_state import FailureKind, ProbeFinding
from facho.polling.snmp import errors
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


def find_cause(error: errors.SnmpError) -> ProbeFinding:
    """Find the cause of a failed request in what the network or the agent answered."""
    if isinstance(error, errors.UserRefused):
        return _DENIALS.get(error.statistic, ProbeFinding.FAULT)
    if isinstance(error, errors.NoSource):
        return ProbeFinding.NO_SOURCE
    if isinstance(error, errors.AgentRefused):
        return ProbeFinding.PORT_CLOSED if error.number == errno.ECONNREFUSED else ProbeFinding.NO_ROUTE
    if isinstance(error, errors.MissingObject) or (isinstance(error, errors.AccessDenied) and error.status):
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
        except (errors.AgentTimeout, errors.AgentRefused):
            continue
        except (errors.OwnershipLost, errors.SessionClosed):
            raise
        except errors.SnmpError:
            # Whatever it has against us, it speaks.
            return finding
        finally:
            with suppress(errors.SnmpError):
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


@dataclass(frozen=True, slots=True)
class Advice:
    """A headline, what it means, and what to do, the likeliest first."""

    title: Promise
    meaning: Promise
    checks: tuple[Promise, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    title: str
    meaning: str
    checks: tuple[str, ...]


_ALLOW_US = _("On the OLT, check that its SNMP access list and any firewall on the way allow %(from)s to ask it.")
_COMMUNITY = _("Type the community again: case and trailing spaces matter.")
_USER = _("Compare user, protocols and keys with the SNMPv3 user on the OLT.")
_WHOLE_VIEW = _("On the OLT, give this community or user a view that holds the whole tree (1.3.6.1), for reading.")
_TIME = _("Try again in a minute; if it persists, see the log of Facho.")

ADVICE: Mapping[ProbeFinding, Advice] = {
    ProbeFinding.SILENT: Advice(
        _("No answer"),
        _(
            "%(address)s did not answer on UDP port %(port)s. A wrong community, a firewall and a "
            "device that is off all look the same."
        ),
        (
            _COMMUNITY,
            _ALLOW_US,
            _("Check that the OLT allows reading over SNMP version %(version)s."),
            _("Check that the address is right, and that it is the OLT's management address."),
        ),
    ),
    ProbeFinding.SPEAKS_V1: Advice(
        _("It supports only SNMPv1"),
        _("%(address)s does not answer in version %(version)s, but did in SNMPv1 with the same community."),
        (_("Choose SNMPv1 here, or enable SNMPv2c on the OLT, which is much faster."),),
    ),
    ProbeFinding.SPEAKS_V2C: Advice(
        _("It supports SNMPv2c"),
        _("%(address)s does not answer in version %(version)s, but did in SNMPv2c with the same community."),
        (_("Choose SNMPv2c here."),),
    ),
    ProbeFinding.SPEAKS_V3: Advice(
        _("It is up, but does not accept this community"),
        _("%(address)s answers SNMPv3, so address and port are right, but it does not answer our community."),
        (
            _COMMUNITY,
            _("Check that the OLT allows this community for reading from %(from)s."),
            _("If the OLT is set up for SNMPv3 only, choose SNMPv3 here."),
        ),
    ),
    ProbeFinding.IGNORES_USER: Advice(
        _("It supports SNMPv3, but not for this user"),
        _("%(address)s identified itself, then did not answer our request as user %(user)s."),
        (_USER, _ALLOW_US),
    ),
    ProbeFinding.PORT_CLOSED: Advice(
        _("Nothing listens there"),
        _("%(address)s is up, but nothing listens on its UDP port %(port)s."),
        (
            _("Enable SNMP on the OLT."),
            _("Check that the port is right: nearly every OLT uses 161."),
            _("Check that the address is the OLT's, and not that of another machine."),
        ),
    ),
    ProbeFinding.NO_ROUTE: Advice(
        _("No route to it"),
        _("The network reports %(address)s as unreachable from this machine."),
        (
            _("Check that the address is right."),
            _("Check that this machine has a route or VPN to the management network of the OLT."),
            _("A firewall may refuse it: allow UDP port %(port)s."),
        ),
    ),
    ProbeFinding.NO_SOURCE: Advice(
        _("Facho cannot use its own address"),
        _("FACHO_SOURCE_ADDRESS names an address that this machine does not have."),
        (_("Correct the setting, or leave it out, and start Facho again."),),
    ),
    ProbeFinding.UNKNOWN_USER: Advice(
        _("It does not know the user"),
        _("%(address)s supports SNMPv3, but has no user %(user)s."),
        (_("Enter the user exactly as on the OLT: case matters."), _("Create the user on the OLT.")),
    ),
    ProbeFinding.WRONG_LEVEL: Advice(
        _("It asks for another security level"),
        _("%(address)s knows the user %(user)s, but requires another security level."),
        (_("Choose the authentication and privacy that the user has on the OLT: none, one or both."),),
    ),
    ProbeFinding.WRONG_AUTH: Advice(
        _("The authentication is wrong"),
        _("%(address)s knows the user %(user)s, but the authentication key or protocol is wrong."),
        (_("Type the authentication key again."), _("Compare the protocol: MD5, SHA or one of the SHA-2 family.")),
    ),
    ProbeFinding.WRONG_PRIV: Advice(
        _("The privacy is wrong"),
        _("%(address)s accepts the user %(user)s and its authentication, but the privacy key or protocol is wrong."),
        (_("Type the privacy key again."), _("Compare the protocol: DES, AES, AES-192 or AES-256.")),
    ),
    ProbeFinding.NOT_ALLOWED: Advice(
        _("It answers, but does not let us read"),
        _("%(address)s accepts our credentials, but refuses the system group, which every device has."),
        (_WHOLE_VIEW,),
    ),
    ProbeFinding.ONUS_HIDDEN: Advice(
        _("It has ONUs, but does not list them"),
        _("The PON ports of %(address)s count ONUs, but its tables of ONUs are empty: a discovery would fail."),
        (_WHOLE_VIEW,),
    ),
    ProbeFinding.SERIALS_HIDDEN: Advice(
        _("It does not show the serials of its ONUs"),
        _("%(address)s lists ONU states, but no serials: its ONUs would be identified by place only."),
        (_WHOLE_VIEW, _("If this firmware has no serials, continue: they are added when they appear.")),
    ),
    ProbeFinding.BAD_CREDENTIAL: Advice(
        _("The stored credential cannot be used"),
        _("What is stored for this OLT is incomplete, or was encrypted with a key that is gone."),
        (_("Type the community, or the SNMPv3 keys, once more."),),
    ),
    ProbeFinding.NOT_SNMP: Advice(
        _("The answer is not SNMP"),
        _("%(address)s answers on UDP port %(port)s, but not with valid SNMP."),
        (_("Check that address and port are those of the OLT: another service may use that port."),),
    ),
    ProbeFinding.STOPPED: Advice(
        _("The test was stopped"), _("It was interrupted before it ended, so it says nothing about the OLT."), (_TIME,)
    ),
    ProbeFinding.FAULT: Advice(
        _("The test failed"), _("Facho could not make sense of what happened; see the error below."), (_TIME,)
    ),
}


def place_of(olt: Olt, *, asked_from: str) -> dict[str, object]:
    """Return the placeholders of the sentences: the address asked, from where, and the credentials used."""
    return {
        "address": olt.address,
        "port": olt.port,
        "from": asked_from or _("this machine"),
        "version": SnmpVersionChoice(olt.snmp_version).label,
        "user": f"“{olt.v3_user}”",
    }


def diagnose(finding: ProbeFinding, place: Mapping[str, object]) -> Diagnosis:
    advice = ADVICE[finding]
    checks = tuple(str(check) % place for check in advice.checks)
    return Diagnosis(str(advice.title), str(advice.meaning) % place, checks)

"""Reads what is needed to speak to an OLT, and records how it answered."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from django.conf import settings
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce, NullIf

from facho.hosts.models import Brand, Olt, OltModel, Reachability, SnmpVersion
from facho.hosts.pauses import is_paused
from facho.polling.domain.clock import CLOCK_TOLERANCE
from facho.polling.domain.collection import CollectRequest, Failure
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.retry import SILENCE
from facho.polling.domain.suspension import PROBE_PAUSES_SECONDS, next_probe_at
from facho.polling.snmp.errors import AccessDenied
from facho.polling.snmp.session import Limits
from facho.polling.snmp.target import AuthProtocol, Community, Credential, PrivProtocol, Target, UserCredential
from facho.polling.snmp.target import SnmpVersion as WireVersion

# Left out where an OLT is loaded beside something else: a secret is read where it is used, and nowhere else.
OLT_SECRETS = ("olt__community", "olt__v3_auth_key", "olt__v3_priv_key")

_WIRE_VERSIONS = {SnmpVersion.V1: WireVersion.V1, SnmpVersion.V2C: WireVersion.V2C, SnmpVersion.V3: WireVersion.V3}


class Device(NamedTuple):
    """Where packets to an OLT go."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What an OLT says of itself, and what the vendor definitions make of it."""

    sys_name: str
    sys_descr: str
    sys_object_id: str
    vendor: str
    brand: str
    model: str


def load_devices(olt_ids: Iterable[int]) -> dict[int, Device]:
    """Return where each OLT is reached, in one query; one that was deleted is not in it."""
    rows = Olt.objects.filter(id__in=set(olt_ids)).values_list("id", "address", "port")
    return {olt_id: Device(address, port) for olt_id, address, port in rows}


def load_target(request: CollectRequest, *, definition_in_flight: int) -> tuple[Target, Limits]:
    """Return whom to ask and how much at a time; the operator's limits win over the definition's.

    AccessDenied when what is stored is no credential that we can use.
    """
    olt = Olt.objects.get(id=request.olt_id)
    target = Target(
        address=request.address,
        credential=_credential(olt),
        version=_WIRE_VERSIONS[SnmpVersion(olt.snmp_version)],
        port=request.port,
        source_address=_source_address(request.address),
    )
    return target, Limits(olt.max_in_flight or definition_in_flight, olt.packets_per_second)


def _source_address(address: str) -> str | None:
    """Return the address that questions leave from, where it is of the device's family."""
    source: str = settings.FACHO_SOURCE_ADDRESS
    if not source or ip_address(source).version != ip_address(address).version:
        return None
    return source


def _credential(olt: Olt) -> Credential:
    try:
        if olt.snmp_version != SnmpVersion.V3:
            return Community(olt.community.reveal().encode())
        return UserCredential(
            user=olt.v3_user,
            auth_protocol=AuthProtocol(olt.v3_auth_protocol) if olt.v3_auth_protocol else None,
            auth_key=olt.v3_auth_key.reveal().encode() if olt.v3_auth_protocol else b"",
            priv_protocol=PrivProtocol(olt.v3_priv_protocol) if olt.v3_priv_protocol else None,
            priv_key=olt.v3_priv_key.reveal().encode() if olt.v3_priv_protocol else b"",
        )
    except ValueError as error:
        # Its words name lengths and protocols, never a secret.
        raise AccessDenied(f"the stored credential cannot be used: {error}") from None


def save_answer(olt_id: int, failure: Failure | None, *, was_heard: bool, now: datetime) -> None:
    """Record how the OLT took an operation: success resets the failure counter, failure raises it.

    An operation that had nothing to ask, or was cancelled, says nothing about the OLT.
    """
    changes: dict[str, object] = {}
    if was_heard:
        changes |= {"reachability": Reachability.UP, "last_answer_at": now}
    elif failure is not None and failure.kind in SILENCE:
        changes |= {"reachability": Reachability.DOWN}
    if failure is None and was_heard:
        changes |= {"consecutive_failures": 0, "last_error": "", "probes_done": 0}
    elif failure is not None and failure.kind is not FailureKind.CANCELLED:
        changes |= {"consecutive_failures": F("consecutive_failures") + 1, "last_error": failure.message[:300]}
    if changes:
        Olt.objects.filter(id=olt_id).update(**changes)


def schedule_probe(olt_id: int, now: datetime) -> None:
    """Plan the next look at an OLT whose nodes are suspended; the pauses grow until it answers a run again."""
    olt = Olt.objects.only("probes_done").filter(id=olt_id).first()
    if olt is not None:
        Olt.objects.filter(id=olt_id).update(
            next_probe_at=next_probe_at(olt.probes_done, now=now),
            probes_done=min(olt.probes_done + 1, len(PROBE_PAUSES_SECONDS)),
        )


def ask_for_probe(olt_id: int, now: datetime) -> None:
    """Leave the wish that an OLT be probed now; whoever keeps house looks every few seconds."""
    Olt.objects.filter(id=olt_id).update(next_probe_at=now, probes_done=0)


def load_due_probes(now: datetime) -> list[int]:
    """Return the enabled OLTs whose time for a probe has come and that are not paused.

    A time further ahead than any pause was written before the clock was set back.
    """
    longest_wait = timedelta(seconds=max(PROBE_PAUSES_SECONDS)) + CLOCK_TOLERANCE
    is_due = Q(next_probe_at__lte=now) | Q(next_probe_at__gt=now + longest_wait)
    due = Olt.objects.filter(is_due, ~is_paused("id", now), enabled=True)
    return list(due.values_list("id", flat=True))


def end_probes(olt_id: int) -> None:
    """Stop probing: the OLT answered, or nothing of it is suspended any more."""
    Olt.objects.filter(id=olt_id).update(next_probe_at=None)


def has_identity(olt_id: int) -> bool:
    """Tell whether an OLT has ever said who it is."""
    return Olt.objects.filter(id=olt_id).exclude(sys_object_id="").exists()


def save_identity(olt_id: int, identity: Identity, *, now: datetime) -> None:
    """Record what the OLT is; a vendor that the operator chose stays, also one who chooses right now."""
    changes: dict[str, object] = {
        "sys_name": identity.sys_name[:255],
        "sys_descr": identity.sys_descr[:255],
        "sys_object_id": identity.sys_object_id[:255],
        "vendor": Coalesce(NullIf(F("vendor"), Value("")), Value(identity.vendor)),
        "updated_at": now,
    }
    if identity.model:
        brand, _ = Brand.objects.get_or_create(name=identity.brand)
        changes["model"], _ = OltModel.objects.get_or_create(brand=brand, name=identity.model[:80])
    Olt.objects.filter(id=olt_id).update(**changes)

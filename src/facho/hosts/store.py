"""Reads what is needed to speak to an OLT, and records how it answered and which ONUs wait at it.

Maintenance pauses an OLT or everything for a while. A pause that keeps polling only silences alerts.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from django.conf import settings
from django.db.models import DateTimeField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf
from django.utils.translation import gettext

from facho.hosts.models import (
    Brand,
    LearnedSize,
    Olt,
    OltAddress,
    OltModel,
    Pause,
    Reachability,
    SnmpVersionChoice,
    WaitingOnu,
)
from facho.infrastructure.secrets import ForeignSecret, Secret
from facho.infrastructure.statements import Given, Row, Select, Update
from facho.polling.domain.collection import CollectRequest, Failure, OltIdentity, UnauthorisedOnu
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.ports import CLOCK_TOLERANCE
from facho.polling.domain.retry import PROBE_PAUSES_SECONDS, SILENCE, next_probe_at
from facho.polling.snmp.errors import AccessDenied, OwnershipLost
from facho.polling.snmp.session import Limits
from facho.polling.snmp.target import AuthProtocol, Community, Credential, PrivProtocol, Target, UserCredential
from facho.polling.snmp.target import SnmpVersion as WireVersion
from facho.polling.vendors.definition import Refusal
from facho.polling.vendors.loader import recognise

# Deferred when an OLT is loaded along with other rows: secrets are read only where they are used.
OLT_SECRETS = ("olt__community", "olt__v3_auth_key", "olt__v3_priv_key")


class Device(NamedTuple):
    address: str
    port: int


def load_devices(olt_ids: Iterable[int]) -> dict[int, Device]:
    """Return where each OLT is reached; one query. Deleted OLTs are missing."""
    rows = Olt.objects.filter(id__in=set(olt_ids)).values_list("id", "address", "port")
    return {olt_id: Device(address, port) for olt_id, address, port in rows}


class _Access(NamedTuple):
    """What of an OLT's row says how it is asked."""

    host: str
    address: str
    port: int
    snmp_version: str
    community: Secret
    v3_user: str
    v3_auth_protocol: str
    v3_auth_key: Secret
    v3_priv_protocol: str
    v3_priv_key: Secret
    max_in_flight: int | None
    packets_per_second: int | None


_ACCESS = Select(lambda: Olt.objects.filter(id=Given("olt_id")).order_by().values_list(*_Access._fields))
# Also the page sizes that worked, a row for each; one row where none is known.
_DEVICE = Select(
    lambda: (
        Olt.objects.filter(id=Given("olt_id"))
        .order_by()
        .values_list(*_Access._fields, "learned_sizes__subject", "learned_sizes__rows")
    )
)


def load_device(request: CollectRequest, *, definition_in_flight: int) -> tuple[Target, Limits, dict[str, int]]:
    """Return what `load_target` does, and the page sizes that worked last; one statement for every run."""
    rows = _DEVICE.rows(olt_id=request.olt_id)
    target, limits = _target(rows[0][:-2] if rows else None, request, definition_in_flight)
    return target, limits, {subject: size for *_, subject, size in rows if subject}


def load_target(request: CollectRequest, *, definition_in_flight: int) -> tuple[Target, Limits]:
    """Return the target and its limits; the operator's override the definition's.

    Raises AccessDenied if the stored credentials are unusable or for another place, OwnershipLost if the OLT's address
    changed since it was claimed: its new credentials are not sent to the old address.
    """
    return _target(_ACCESS.first(olt_id=request.olt_id), request, definition_in_flight)


def _target(row: Row | None, request: CollectRequest, definition_in_flight: int) -> tuple[Target, Limits]:
    if row is None:
        raise OwnershipLost("the OLT was deleted since this run was claimed")
    olt = _Access(*row)
    if (olt.address, olt.port) != (request.address, request.port):
        raise OwnershipLost("the OLT has another address or port since this run was claimed: the next run asks there")
    source: str | None = settings.FACHO_SOURCE_ADDRESS
    if not source or ip_address(source).version != ip_address(request.address).version:
        source = None
    target = Target(
        address=request.address,
        credential=credential_of(olt),
        version=WireVersion[SnmpVersionChoice(olt.snmp_version).name],
        port=request.port,
        source_address=source,
    )
    return target, Limits(olt.max_in_flight or definition_in_flight, olt.packets_per_second)


def credential_of(olt: "_Access | Olt") -> Credential:
    """Return the credential for an OLT; AccessDenied if the stored one is unusable or for another address."""

    def key(secret: Secret) -> bytes:
        return secret.reveal_for(str(OltAddress(olt.host, olt.address, olt.port))).encode()

    try:
        if olt.snmp_version != SnmpVersionChoice.V3:
            return Community(key(olt.community))
        return UserCredential(
            user=olt.v3_user,
            auth_protocol=AuthProtocol(olt.v3_auth_protocol) if olt.v3_auth_protocol else None,
            auth_key=key(olt.v3_auth_key) if olt.v3_auth_protocol else b"",
            priv_protocol=PrivProtocol(olt.v3_priv_protocol) if olt.v3_priv_protocol else None,
            priv_key=key(olt.v3_priv_key) if olt.v3_priv_protocol else b"",
        )
    except ForeignSecret as error:
        raise AccessDenied(str(error)) from None
    except ValueError as error:
        # Its words name lengths and protocols, never a secret.
        raise AccessDenied(f"the stored credential cannot be used: {error}") from None


_ANSWERED = Update(
    lambda: Olt.objects.filter(id=Given("olt_id")),
    reachability=Reachability.UP,
    last_answer_at=Given("now"),
    consecutive_failures=0,
    last_error="",
    probes_done=0,
)


def save_answer(olt_id: int, failure: Failure | None, *, was_heard: bool, now: datetime) -> None:
    """Record the result of an operation; one with nothing to ask, or a cancelled one, changes no failure count."""
    if failure is None:
        if was_heard:
            _ANSWERED.run(olt_id=olt_id, now=now)
        return
    changes: dict[str, object] = {}
    if was_heard:
        changes |= {"reachability": Reachability.UP, "last_answer_at": now}
    elif failure.kind in SILENCE:
        changes |= {"reachability": Reachability.DOWN}
    if failure.kind not in (FailureKind.CANCELLED, FailureKind.NO_ONUS):
        changes |= {"consecutive_failures": F("consecutive_failures") + 1, "last_error": failure.message[:300]}
    if changes:
        Olt.objects.filter(id=olt_id).update(**changes)


def schedule_probe(olt_id: int, now: datetime) -> None:
    """Schedule the next probe of an OLT with suspended nodes; delays grow until it answers."""
    olt = Olt.objects.only("probes_done").filter(id=olt_id).first()
    if olt is not None:
        Olt.objects.filter(id=olt_id).update(
            next_probe_at=next_probe_at(olt.probes_done, now=now),
            probes_done=min(olt.probes_done + 1, len(PROBE_PAUSES_SECONDS)),
        )


def ask_for_probe(olt_id: int, now: datetime) -> None:
    """Request a probe now; housekeeping checks every few seconds."""
    Olt.objects.filter(id=olt_id).update(next_probe_at=now, probes_done=0)


def _select_due_probes() -> QuerySet[Olt, tuple[int]]:
    now, latest = Given("now", DateTimeField()), Given("latest", DateTimeField())
    is_due = Q(next_probe_at__lte=now) | Q(next_probe_at__gt=latest)
    return Olt.objects.filter(is_due, ~is_paused("id", now), enabled=True).order_by("id").values_list("id")


_DUE_PROBES = Select(_select_due_probes)


def load_due_probes(now: datetime) -> list[int]:
    """Return enabled, unpaused OLTs due for a probe, also by a time that was written before the clock was set back."""
    longest_wait = timedelta(seconds=max(PROBE_PAUSES_SECONDS)) + CLOCK_TOLERANCE
    return [olt_id for (olt_id,) in _DUE_PROBES.rows(now=now, latest=now + longest_wait)]


def end_probes(olt_id: int) -> None:
    """The OLT answered, or no node is suspended."""
    Olt.objects.filter(id=olt_id).update(next_probe_at=None)


def mark_discovered(olt_id: int, now: datetime) -> None:
    """Record the end of the first discovery; later ones change nothing."""
    Olt.objects.filter(id=olt_id, discovered_at__isnull=True).update(discovered_at=now)


def has_identity(olt_id: int) -> bool:
    return Olt.objects.filter(id=olt_id).exclude(sys_object_id="").exists()


def save_identity(olt_id: int, identity: OltIdentity, *, now: datetime) -> None:
    """Store the identity; a vendor chosen by the operator stays, even if chosen concurrently."""
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


_SIZES = Select(lambda: LearnedSize.objects.filter(olt_id=Given("olt_id")).order_by().values_list("subject", "rows"))


def load_learned_sizes(olt_id: int) -> dict[str, int]:
    """Return the page size that last worked, by columns read."""
    return dict(_SIZES.rows(olt_id=olt_id))


def save_learned_size(olt_id: int, subject: str, rows: int, *, now: datetime) -> None:
    LearnedSize.objects.update_or_create(olt_id=olt_id, subject=subject, defaults={"rows": rows, "updated_at": now})


def refusal_of(olt: "Olt") -> str:
    """Return why a device is not polled; empty for an OLT, or if the operator chose the vendor."""
    if olt.vendor or not olt.sys_object_id:
        return ""
    verdict = recognise(olt.sys_object_id, olt.sys_descr)
    return gettext(verdict.sentence) if isinstance(verdict, Refusal) else ""


BATCH = 500
MAX_SERIAL_LENGTH = WaitingOnu._meta.get_field("serial").max_length
MAX_MODEL_LENGTH = WaitingOnu._meta.get_field("model").max_length
# More than any OLT has ports for; an agent that reports more makes them up.
MAX_WAITING = 4_096
# What the columns hold.
MAX_NUMBER = 32_767


def save_waiting(olt_id: int, found: Sequence[UnauthorisedOnu], *, is_complete: bool, now: datetime) -> int:
    """Update the list to what the OLT reports; only a complete report removes ONUs. Returns how many are new."""
    stored = {((row.frame, row.slot, row.port, row.serial)): row for row in WaitingOnu.objects.filter(olt_id=olt_id)}
    is_cut, found = len(found) > MAX_WAITING, found[:MAX_WAITING]
    wanted = {waiting[:4]: waiting for waiting in found}
    rows = [
        WaitingOnu(
            olt_id=olt_id,
            **waiting._asdict(),
            first_seen_at=stored[key].first_seen_at if key in stored else now,
            last_seen_at=now,
        )
        for key, waiting in wanted.items()
    ]
    # The list is bounded also where each report names others.
    if is_complete or is_cut or len(stored.keys() | wanted.keys()) > MAX_WAITING:
        WaitingOnu.objects.filter(pk__in=[row.pk for key, row in stored.items() if key not in wanted]).delete()
    WaitingOnu.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["olt", "frame", "slot", "port", "serial"],
        update_fields=["model", "last_seen_at"],
    )
    return len(wanted.keys() - stored.keys())


# A year: for longer, disable the OLT.
MAX_PAUSE_MINUTES = 366 * 24 * 60


def polling_pauses() -> QuerySet[Pause]:
    """Select the pauses in which nothing is polled, past and coming ones included."""
    return Pause.objects.filter(keeps_polling=False)


def active_pauses(now: datetime | Given) -> QuerySet[Pause]:
    return polling_pauses().filter(starts_at__lte=now, ends_at__gt=now)


def is_paused(olt_path: str, now: datetime | Given) -> Exists:
    """Build the condition that an OLT, by its path in the outer query, or everything is paused."""
    return Exists(active_pauses(now).filter(Q(olt__isnull=True) | Q(olt=OuterRef(olt_path))))


def active_windows(now: datetime | Given) -> QuerySet[Pause]:
    """Select what holds now: pauses, and silences of alerts."""
    return Pause.objects.filter(starts_at__lte=now, ends_at__gt=now)


def is_silenced(olt_path: str, now: datetime | Given) -> Exists:
    """Build the condition that an OLT gets no new alerts: it is paused, or only its alerts are silent."""
    return Exists(active_windows(now).filter(Q(olt__isnull=True) | Q(olt=OuterRef(olt_path))))


def load_pause(olt_id: int, now: datetime) -> Pause | None:
    """Load the active pause of an OLT, its own or a global one, that ends last."""
    return active_pauses(now).filter(Q(olt__isnull=True) | Q(olt_id=olt_id)).order_by("-ends_at").first()


def pause(olt: Olt | None, *, minutes: int, note: str, now: datetime) -> Pause:
    return Pause.objects.create(olt=olt, starts_at=now, ends_at=now + timedelta(minutes=minutes), note=note)


def end_pauses(olt: Olt | None, *, now: datetime) -> int:
    return end_all(active_pauses(now).filter(olt=olt), now)


def end_pause(pause_id: int, *, now: datetime) -> bool:
    """End a pause now; one that has not started is cancelled. False if it ended already."""
    return bool(end_all(Pause.objects.filter(id=pause_id, ends_at__gt=now), now))


def plan_pauses(
    olts: Iterable[Olt] | None, *, starts_at: datetime, ends_at: datetime, note: str, keeps_polling: bool
) -> list[Pause]:
    """Store a maintenance window for each of these OLTs, or one for everything."""
    window = {"starts_at": starts_at, "ends_at": ends_at, "note": note, "keeps_polling": keeps_polling}
    return Pause.objects.bulk_create([Pause(olt=olt, **window) for olt in ([None] if olts is None else olts)])


def end_all(pauses: QuerySet[Pause], now: datetime) -> int:
    """End these pauses now, in two statements; returns how many."""
    # A pause that has not started is deleted.
    dropped = pauses.filter(starts_at__gte=now).delete()[0]
    return dropped + pauses.filter(starts_at__lt=now).update(ends_at=now)

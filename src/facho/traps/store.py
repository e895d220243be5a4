"""Rows of the traps: known senders, what was heard, the reads that follow, and what the reads found."""

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest

from facho.executions.models import HintRead
from facho.executions.onu_reads import request_hinted
from facho.hosts.models import Olt
from facho.hosts.store import credential_of
from facho.infrastructure.secrets import UndecryptableSecret
from facho.onus.models import OltMemory, Onu, OnuReading, PonPort
from facho.onus.store import is_storable
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.hints import (
    NODE_GAP,
    HintOutcome,
    Meaning,
    ReadScope,
    Said,
    judge_hint,
    plan_hinted_reads,
)
from facho.polling.domain.onu_state import RunState
from facho.polling.snmp.errors import AccessDenied
from facho.polling.snmp.target import Credential
from facho.polling.vendors.definition import RUN_STATE
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_runs
from facho.traps.models import OltTraps, Trap, TrapReceiver, TrapSender, TrapSwitch

# The same notification within this time is one: senders repeat, and two receivers may hear it.
SAME_FOR = timedelta(minutes=2)
# Longer than any read of a port waits; a trap without a read by then stays without one.
SETTLES_WITHIN = timedelta(minutes=10)
# What is kept of one OLT in one go; reads follow from all of it.
MAX_ROWS_AT_ONCE = 300
# Addresses that are remembered; a forged sender address costs nothing, so they are bounded.
MAX_SENDERS = 1_000
_ENGINE_ID_BYTES = 12


class KnownSender(NamedTuple):
    """An OLT at the address that a notification came from."""

    olt_id: int
    # Where it is asked; simulated OLTs, and some real ones, send from there.
    port: int
    vendor: str
    credential: Credential


class EngineClock(NamedTuple):
    """Starts and seconds of an SNMPv3 engine, as it last said with a signature."""

    engine_id: bytes
    boots: int
    seconds: int


@dataclass(frozen=True, slots=True)
class HeardTrap:
    """A notification that counts, with what it means."""

    olt_id: int
    heard_at: datetime
    oid: str
    said: Said
    fingerprint: str
    values: Sequence[Sequence[str]] | None = None


def is_switched_on() -> bool:
    return TrapSwitch.objects.filter(is_on=True).exists()


def switch(*, is_on: bool) -> None:
    TrapSwitch.objects.update_or_create(id=1, defaults={"is_on": is_on})


def load_senders() -> dict[str, list[KnownSender]]:
    """Return the enabled OLTs by the addresses that their notifications may come from.

    One whose credential cannot be used is left out: nothing could prove that a notification is its own.
    """
    senders: dict[str, list[KnownSender]] = defaultdict(list)
    for olt in Olt.objects.filter(enabled=True).order_by("id").iterator():
        try:
            known = KnownSender(olt.id, olt.port, olt.vendor, credential_of(olt))
        except (AccessDenied, UndecryptableSecret):
            continue
        for address in {olt.address, *olt.trap_sources}:
            senders[address].append(known)
    return dict(senders)


def load_engines() -> list[EngineClock]:
    """Return the clocks of the SNMPv3 engines that sent before: an old notification is not heard twice."""
    rows = OltTraps.objects.exclude(engine_id="").values_list("engine_id", "engine_boots", "engine_time")
    return [EngineClock(bytes.fromhex(engine_id), boots, seconds) for engine_id, boots, seconds in rows]


def begin_receiver(name: str, now: datetime) -> EngineClock:
    """Count a start of the receiver; its engine id stays, so that those who send informs know it."""
    fresh = {"engine_id": secrets.token_hex(_ENGINE_ID_BYTES), "started_at": now, "seen_at": now}
    receiver, _is_new = TrapReceiver.objects.get_or_create(name=name, defaults=fresh)
    TrapReceiver.objects.filter(name=name).update(engine_boots=F("engine_boots") + 1, started_at=now, seen_at=now)
    return EngineClock(bytes.fromhex(receiver.engine_id), receiver.engine_boots + 1, 0)


def fingerprint_of(oid: str, content: bytes, uptime_ticks: int) -> str:
    """Name a notification so that a copy of it has the same name."""
    digest = hashlib.blake2b(content, digest_size=16, key=uptime_ticks.to_bytes(8, "big"))
    digest.update(oid.encode())
    return digest.hexdigest()


def save_heard(traps: Sequence[HeardTrap], engines: Mapping[int, EngineClock], *, now: datetime) -> int:
    """Store what was heard within a moment and leave the wishes that follow; returns how many rows are new.

    One transaction: killed before its end nothing is stored, and a copy that comes later counts.
    """
    by_olt: dict[int, list[HeardTrap]] = defaultdict(list)
    for trap in traps:
        by_olt[trap.olt_id].append(trap)
    known = set(Olt.objects.filter(id__in=by_olt, enabled=True).values_list("id", flat=True))
    stored = 0
    with transaction.atomic():
        for olt_id, heard in by_olt.items():
            if olt_id in known:
                stored += _save_of(olt_id, heard, engines.get(olt_id), now)
                _ask_for_reads(olt_id, heard, now)
    return stored


def _save_of(olt_id: int, heard: Sequence[HeardTrap], engine: EngineClock | None, now: datetime) -> int:
    Trap.objects.filter(olt_id=olt_id, fingerprint__isnull=False, heard_at__lt=now - SAME_FOR).update(fingerprint=None)
    copies: dict[str, int] = defaultdict(int)
    fresh: dict[str, HeardTrap] = {}
    for trap in heard:
        copies[trap.fingerprint] += 1
        fresh.setdefault(trap.fingerprint, trap)
    before = Trap.objects.filter(olt_id=olt_id, fingerprint__in=list(fresh))
    seen = {fingerprint or "": trap_id for fingerprint, trap_id in before.values_list("fingerprint", "id")}
    rows = _rows(olt_id, [trap for trap in fresh.values() if trap.fingerprint not in seen][:MAX_ROWS_AT_ONCE], copies)
    Trap.objects.bulk_create(rows, ignore_conflicts=True, batch_size=100)
    for fingerprint, trap_id in seen.items():
        Trap.objects.filter(id=trap_id).update(repeats=F("repeats") + copies[fingerprint])
    sums, _is_new = OltTraps.objects.get_or_create(olt_id=olt_id, defaults={"last_heard_at": now})
    changes: dict[str, object] = {"heard": F("heard") + len(rows), "last_heard_at": Greatest("last_heard_at", now)}
    if engine is not None and (engine.boots, engine.seconds) > (sums.engine_boots, sums.engine_time):
        changes |= {
            "engine_id": engine.engine_id.hex(),
            "engine_boots": engine.boots,
            "engine_time": engine.seconds,
        }
    OltTraps.objects.filter(olt_id=olt_id).update(**changes)
    return len(rows)


def _rows(olt_id: int, traps: Sequence[HeardTrap], copies: Mapping[str, int]) -> list[Trap]:
    ports = {
        (frame, slot, port): port_id
        for port_id, frame, slot, port in PonPort.objects.filter(olt_id=olt_id).values_list(
            "id", "frame", "slot", "port"
        )
    }
    numbers = {trap.said.place.onu for trap in traps if trap.said.place.onu is not None}
    serials = {trap.said.serial for trap in traps if trap.said.serial}
    onus = Onu.objects.filter(Q(onu_id__in=numbers) | Q(serial__in=serials), olt_id=olt_id, is_present=True)
    by_place: dict[tuple[int, int | None], int] = {}
    by_serial: dict[str, int] = {}
    for onu_id, port_id, number, serial in onus.values_list("id", "pon_port_id", "onu_id", "serial"):
        by_place[port_id, number] = onu_id
        by_serial[serial] = onu_id
    rows = []
    for trap in traps:
        said, place = trap.said, trap.said.place
        at_port = None if place.port is None else ports.get((place.frame or 0, place.slot or 0, place.port))
        onu = by_serial.get(said.serial)
        if at_port is not None and place.onu is not None:
            onu = by_place.get((at_port, place.onu))
        rows.append(
            Trap(
                olt_id=olt_id,
                heard_at=trap.heard_at,
                oid=trap.oid[:255],
                name=said.name[:120],
                meaning=said.meaning.value,
                is_end=said.is_end,
                frame=place.frame,
                slot=place.slot,
                port=place.port,
                onu_number=place.onu,
                pon_port_id=at_port,
                onu_id=onu,
                serial=said.serial[:32],
                values=trap.values,
                fingerprint=trap.fingerprint,
                repeats=copies[trap.fingerprint] - 1,
            )
        )
    return rows


def _ask_for_reads(olt_id: int, heard: Sequence[HeardTrap], now: datetime) -> None:
    reads = plan_hinted_reads(trap.said for trap in heard)
    gap = timedelta(seconds=settings.FACHO_TRAP_GAP_SECONDS)
    # A device may name any number.
    of_states = [
        read
        for read in reads
        if read.scope in (ReadScope.PORT, ReadScope.STATES)
        and is_storable(Place(read.frame, read.slot, read.port, read.onu or 0))
    ]
    if of_states and not _is_poll_near(olt_id, now):
        request_hinted(olt_id, of_states, heard_at=max(trap.heard_at for trap in heard), gap=gap, now=now)
    scopes = {read.scope for read in reads}
    nodes = WorkflowNode.objects.filter(workflow__olt_id=olt_id, suspended_at__isnull=True)
    nodes = nodes.filter(
        Q(last_run_at__isnull=True) | Q(last_run_at__lte=now - NODE_GAP), run_requested_at__isnull=True
    )
    if ReadScope.DISCOVERY in scopes:
        request_runs(nodes.filter(job__query_type=QueryType.DISCOVERY), now=now)
    if ReadScope.WAITING in scopes:
        request_runs(nodes.filter(job__oids__column_key__in=_waiting_columns()).distinct(), now=now)


def _is_poll_near(olt_id: int, now: datetime) -> bool:
    """Whether a poll of the states begins at this very moment: it finds what a hint is about."""
    states = WorkflowNode.objects.filter(
        workflow__olt_id=olt_id, enabled=True, suspended_at__isnull=True, job__oids__column_key=RUN_STATE
    )
    return states.filter(next_run_at__lte=now + timedelta(seconds=1), next_run_at__gt=now).exists()


def _waiting_columns() -> set[str]:
    definitions = load_definitions().values()
    return {column.key for definition in definitions for column in definition.columns_of(Scope.AUTOFIND)}


Counts = Mapping[tuple[str, str], tuple[int, int | None]]


@transaction.atomic
def save_counts(name: str, refused: Counts, *, heard: int, dropped: int, now: datetime) -> None:
    """Say that a receiver lives, and add what it heard, dropped and refused since it said so last."""
    save_refused(refused, now=now)
    TrapReceiver.objects.filter(name=name).update(seen_at=now, heard=F("heard") + heard, dropped=F("dropped") + dropped)


def save_refused(counts: Counts, *, now: datetime) -> None:
    """Add up what did not count, by address and reason, with the OLT that has the address.

    Beyond that many addresses, none is remembered.
    """
    room = MAX_SENDERS - TrapSender.objects.count()
    for (address, reason), (count, olt_id) in counts.items():
        known = TrapSender.objects.filter(address=address, reason=reason)
        if known.update(count=F("count") + count, last_heard_at=now, olt_id=olt_id) or room <= 0:
            continue
        row = TrapSender(address=address, reason=reason, olt_id=olt_id, count=count)
        row.first_heard_at = row.last_heard_at = now
        TrapSender.objects.bulk_create([row], ignore_conflicts=True)
        room -= 1


def settle(now: datetime) -> int:
    """Hold what was said of ONUs against the states that were read since; returns how many are settled."""
    open_traps = list(
        Trap.objects.filter(outcome="", onu__isnull=False, heard_at__gt=now - SETTLES_WITHIN)
        .order_by("id")
        .values_list("id", "olt_id", "onu_id", "pon_port_id", "heard_at", "meaning", "is_end")[:2_000]
    )
    settled = _expire(now)
    if not open_traps:
        return settled
    read_at = _load_read_times({row[1] for row in open_traps})
    states = dict(
        OnuReading.objects.filter(onu_id__in={row[2] for row in open_traps}).values_list("onu_id", "run_state")
    )
    outcomes: dict[HintOutcome, list[int]] = defaultdict(list)
    for trap_id, olt_id, onu_id, port_id, heard_at, meaning, is_end in open_traps:
        times = [read_at.get((olt_id, None)), read_at.get((olt_id, port_id))]
        if not any(at is not None and at > heard_at for at in times):
            continue
        state = states.get(onu_id, RunState.UNKNOWN.value)
        is_down = None if state == RunState.UNKNOWN else state == RunState.OFFLINE
        outcomes[judge_hint(Meaning(meaning), is_end=is_end, is_down=is_down)].append(trap_id)
    for outcome, ids in outcomes.items():
        settled += Trap.objects.filter(id__in=ids).update(outcome=outcome.value, settled_at=now)
    return settled


def _expire(now: datetime) -> int:
    late = Trap.objects.filter(outcome="", heard_at__lte=now - SETTLES_WITHIN)
    ids = list(late.order_by("heard_at").values_list("id", flat=True)[:2_000])
    return Trap.objects.filter(id__in=ids).update(outcome=HintOutcome.NOT_READ.value) if ids else 0


def _load_read_times(olt_ids: Iterable[int]) -> dict[tuple[int, int | None], datetime]:
    """Return since when the states of an OLT (None) and of its ports are known, by reads that have ended."""
    times: dict[tuple[int, int | None], datetime] = {}
    polled = OltMemory.objects.filter(olt_id__in=olt_ids, states_at__isnull=False)
    times |= {(olt_id, None): at for olt_id, at in polled.values_list("olt_id", "states_at") if at is not None}
    reads = HintRead.objects.filter(olt_id__in=olt_ids, execution__status=ExecutionState.SUCCESS)
    ports = {
        (olt_id, frame, slot, port): port_id
        for port_id, olt_id, frame, slot, port in PonPort.objects.filter(olt_id__in=olt_ids).values_list(
            "id", "olt_id", "frame", "slot", "port"
        )
    }
    for olt_id, frame, slot, port, is_whole, began_at in reads.values_list(
        "olt_id", "frame", "slot", "port", "is_whole", "execution__started_at"
    ):
        key = (olt_id, None if is_whole else ports.get((olt_id, frame, slot, port)))
        if began_at is not None and (is_whole or key[1] is not None):
            times[key] = max(times.get(key, began_at), began_at)
    return times


def load_silent_olts(count: int) -> list[Olt]:
    """Return the first enabled OLTs that never sent a notification that counted, with name and vendor only."""
    silent = Olt.objects.filter(enabled=True, trap_sums__isnull=True).order_by("name")
    return list(silent.only("name", "vendor")[:count])

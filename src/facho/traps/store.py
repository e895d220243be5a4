"""Rows of the traps: known senders, what was heard, the reads that follow, and what the reads found."""

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, TextField
from django.db.models.functions import Cast, Greatest

from facho.executions.models import HintRead
from facho.executions.onu_reads import request_hinted
from facho.hosts.models import Olt
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.hosts.store import credential_of
from facho.infrastructure.secrets import UndecryptableSecret, decrypt
from facho.onus.models import OltMemory, Onu, OnuReading, Outage, PonPort
from facho.onus.outages import MAX_CHANGES
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.hints import (
    NODE_GAP,
    READABLE,
    HintedRead,
    HintOutcome,
    Meaning,
    ReadScope,
    Said,
    is_port_down,
    judge_hint,
    plan_hinted_reads,
)
from facho.polling.domain.onu_state import PortPlace, RunState
from facho.polling.domain.outages import GASP_BEFORE, OutageScope
from facho.polling.snmp.errors import AccessDenied
from facho.polling.snmp.target import Credential
from facho.polling.vendors.definition import RUN_STATE
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_runs
from facho.traps.models import OltTraps, Reasons, Trap, TrapReceiver, TrapSender, TrapSwitch

# The same notification within this time is one: senders repeat, and two receivers may hear it.
SAME_FOR = timedelta(minutes=2)
# Longer than any read of a port waits; a trap without a read by then stays without one.
SETTLES_WITHIN = timedelta(minutes=10)
# What is kept of one OLT in one go; reads follow from all of it. A burst that the receiver lets through fits.
MAX_ROWS_AT_ONCE = 1_100
# Addresses that are remembered; a forged sender address costs nothing, so they are bounded.
MAX_SENDERS = 1_000
MAX_SETTLED_AT_ONCE = 2_000
_ENGINE_ID_BYTES = 12
# Neither for a state that is unknown.
_IS_DOWN = {RunState.OFFLINE.value: True, RunState.ONLINE.value: False}


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


class _SenderRow(NamedTuple):
    """An OLT's row as stored: its secrets are ciphertext, which is enough to see whether they changed."""

    id: int
    host: str
    address: str
    port: int
    vendor: str
    snmp_version: str
    v3_user: str
    v3_auth_protocol: str
    v3_priv_protocol: str
    trap_addresses: str
    community: str
    v3_auth_key: str
    v3_priv_key: str


_SECRETS = {f"stored_{name}": Cast(name, TextField()) for name in SECRET_COLUMNS}


class SenderBook:
    """The enabled OLTs by the addresses that their notifications may come from.

    Decrypting takes longer than everything else here, so it is done only for rows that changed.
    """

    def __init__(self) -> None:
        # With the addresses that each may send from; none if its credential cannot be used.
        self._known: dict[int, tuple[_SenderRow, KnownSender | None, frozenset[str]]] = {}

    def load(self) -> dict[str, list[KnownSender]]:
        """Return the senders that count now; one query.

        An OLT whose credential cannot be used is left out: nothing could prove that a notification is its own.
        """
        olts = Olt.objects.filter(enabled=True).order_by("id").annotate(**_SECRETS)
        plain = [name for name in _SenderRow._fields if name not in SECRET_COLUMNS]
        rows = map(_SenderRow._make, olts.values_list(*plain, *_SECRETS))
        before, self._known = self._known, {}
        senders: dict[str, list[KnownSender]] = defaultdict(list)
        for row in rows:
            known = before.get(row.id)
            if known is None or known[0] != row:
                known = (row, *_read_sender(row))
            self._known[row.id] = known
            sender, addresses = known[1:]
            if sender is not None:
                for address in addresses:
                    senders[address].append(sender)
        return dict(senders)


def _read_sender(row: _SenderRow) -> tuple[KnownSender | None, frozenset[str]]:
    fields = row._asdict()
    try:
        olt = Olt(**fields | {name: decrypt(fields[name]) for name in SECRET_COLUMNS})
        known = KnownSender(row.id, row.port, row.vendor, credential_of(olt))
    except (AccessDenied, UndecryptableSecret):
        return None, frozenset()
    return known, frozenset({row.address, *olt.trap_sources})


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
    """Store the traps of a moment and the read requests that follow; returns how many rows are new.

    One transaction: killed before its end nothing is stored, and a copy that comes later counts.
    """
    by_olt: dict[int, list[HeardTrap]] = defaultdict(list)
    for trap in traps:
        by_olt[trap.olt_id].append(trap)
    known = dict(Olt.objects.filter(id__in=by_olt, enabled=True).order_by("id").values_list("id", "address"))
    stored = 0
    with transaction.atomic():
        # In one order, so that two receivers do not wait for each other.
        for olt_id, address in known.items():
            heard = by_olt[olt_id]
            new, left_out = _save_of(olt_id, heard, engines.get(olt_id), now)
            stored += new
            if left_out:
                save_refused({(address, Reasons.RATE.value): (left_out, olt_id)}, now=now)
            _ask_for_reads(olt_id, heard, now)
    return stored


def _save_of(olt_id: int, heard: Sequence[HeardTrap], engine: EngineClock | None, now: datetime) -> tuple[int, int]:
    """Store rows for what is new and count what is not; returns how many are new, and for how many was no room."""
    OltTraps.objects.get_or_create(olt_id=olt_id, defaults={"last_heard_at": now})
    # Another receiver that heard the same waits here, and sees these rows then.
    sums = OltTraps.objects.select_for_update().get(olt_id=olt_id)
    copies: dict[str, int] = defaultdict(int)
    fresh: dict[str, HeardTrap] = {}
    for trap in heard:
        copies[trap.fingerprint] += 1
        fresh.setdefault(trap.fingerprint, trap)
    seen: dict[str, int] = {}
    stale: list[int] = []
    before = Trap.objects.filter(olt_id=olt_id, fingerprint__in=list(fresh))
    for fingerprint, trap_id, heard_at in before.values_list("fingerprint", "id", "heard_at"):
        if heard_at < now - SAME_FOR:
            stale.append(trap_id)
        else:
            seen[fingerprint or ""] = trap_id
    # What was the same long ago is another one.
    Trap.objects.filter(id__in=stale).update(fingerprint=None)
    new = [trap for trap in fresh.values() if trap.fingerprint not in seen]
    rows = _rows(olt_id, new[:MAX_ROWS_AT_ONCE], copies)
    Trap.objects.bulk_create(rows, batch_size=100)
    repeated: dict[int, list[int]] = defaultdict(list)
    for fingerprint, trap_id in seen.items():
        repeated[copies[fingerprint]].append(trap_id)
    for times, ids in repeated.items():
        Trap.objects.filter(id__in=ids).update(repeats=F("repeats") + times)
    changes: dict[str, object] = {"heard": F("heard") + len(rows), "last_heard_at": Greatest("last_heard_at", now)}
    if engine is not None and (engine.boots, engine.seconds) > (sums.engine_boots, sums.engine_time):
        changes |= {
            "engine_id": engine.engine_id.hex(),
            "engine_boots": engine.boots,
            "engine_time": engine.seconds,
        }
    OltTraps.objects.filter(olt_id=olt_id).update(**changes)
    return len(rows), len(new) - len(rows)


def _rows(olt_id: int, traps: Sequence[HeardTrap], copies: Mapping[str, int]) -> list[Trap]:
    ports = _load_ports([olt_id])
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
        message, place = trap.said, trap.said.place
        at_port = None if place.port is None else ports.get((olt_id, place.frame or 0, place.slot or 0, place.port))
        onu = by_serial.get(message.serial)
        if at_port is not None and place.onu is not None:
            onu = by_place.get((at_port, place.onu))
        rows.append(
            Trap(
                olt_id=olt_id,
                heard_at=trap.heard_at,
                oid=trap.oid[:255],
                name=message.name[:120],
                meaning=message.meaning.value,
                is_end=message.is_end,
                frame=place.frame,
                slot=place.slot,
                port=place.port,
                onu_number=place.onu,
                pon_port_id=at_port,
                onu_id=onu,
                serial=message.serial[:32],
                values=trap.values,
                fingerprint=trap.fingerprint,
                repeats=copies[trap.fingerprint] - 1,
            )
        )
    return rows


def _ask_for_reads(olt_id: int, heard: Sequence[HeardTrap], now: datetime) -> None:
    reads = plan_hinted_reads(trap.said for trap in heard)
    ports = set(PonPort.objects.filter(olt_id=olt_id).values_list("frame", "slot", "port"))
    gap = timedelta(seconds=settings.FACHO_TRAP_GAP_SECONDS)
    of_states = [_known_read(read, ports) for read in reads if read.scope in (ReadScope.PORT, ReadScope.STATES)]
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


def _known_read(read: HintedRead, ports: Collection[PortPlace]) -> HintedRead:
    """Read all states instead of a port that no discovery found: a sender may name any number of them."""
    is_known = read.scope is ReadScope.STATES or (read.frame, read.slot, read.port) in ports
    return read if is_known else HintedRead(ReadScope.STATES)


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


class ReadTime(NamedTuple):
    """A read of states that has ended."""

    began_at: datetime
    ended_at: datetime


def settle(now: datetime) -> int:
    """Hold what was said of ONUs and ports against the states that were read since; returns how many are settled."""
    settled = _expire(now)
    waiting = Trap.objects.filter(outcome="", meaning__in=READABLE, heard_at__gt=now - SETTLES_WITHIN)
    waiting = waiting.exclude(onu__isnull=True, pon_port__isnull=True)
    # Without DISTINCT: SQLite would go through all traps, sorted by OLT, instead of the few that are open.
    reads = _load_reads(set(waiting.order_by("heard_at").values_list("olt_id", flat=True)))
    latest: dict[int, datetime] = {}
    for (olt_id, _port), read in reads.items():
        latest[olt_id] = max(latest.get(olt_id, read.began_at), read.began_at)
    open_traps: list[tuple[Any, ...]] = []
    for olt_id, began_at in latest.items():
        # OLT by OLT: one that storms and cannot be read does not keep the others waiting.
        ready = waiting.filter(olt_id=olt_id, heard_at__lt=began_at).order_by("heard_at")
        columns = ("id", "olt_id", "onu_id", "pon_port_id", "heard_at", "meaning", "is_end")
        open_traps += ready.values_list(*columns)[:MAX_SETTLED_AT_ONCE]
    if not open_traps:
        return settled
    states = dict(
        OnuReading.objects.filter(onu_id__in={row[2] for row in open_traps}).values_list("onu_id", "run_state")
    )
    dark = _load_dark_ports({row[3] for row in open_traps if row[2] is None and row[3] is not None})
    outcomes: dict[tuple[HintOutcome, datetime], list[int]] = defaultdict(list)
    for trap_id, olt_id, onu_id, port_id, heard_at, meaning, is_end in open_traps:
        found = [reads[key] for key in ((olt_id, None), (olt_id, port_id)) if key in reads]
        since = [read.ended_at for read in found if read.began_at > heard_at]
        if since:
            is_down = dark.get(port_id or 0) if onu_id is None else _IS_DOWN.get(states.get(onu_id, ""))
            outcome = judge_hint(Meaning(meaning), is_end=is_end, is_down=is_down)
            outcomes[outcome, min(since)].append(trap_id)
    for (outcome, read_at), ids in outcomes.items():
        settled += Trap.objects.filter(id__in=ids).update(outcome=outcome.value, settled_at=read_at)
    return settled


def _expire(now: datetime) -> int:
    late = Trap.objects.filter(outcome="", heard_at__lte=now - SETTLES_WITHIN)
    ids = list(late.order_by("heard_at").values_list("id", flat=True)[:MAX_SETTLED_AT_ONCE])
    return Trap.objects.filter(id__in=ids).update(outcome=HintOutcome.NOT_READ.value) if ids else 0


def _load_dark_ports(port_ids: Collection[int]) -> dict[int, bool | None]:
    onus = OnuReading.objects.filter(onu__pon_port_id__in=port_ids, onu__is_present=True)
    counts: dict[int, dict[str, int]] = {port_id: {} for port_id in port_ids}
    for port_id, state, count in onus.order_by().values_list("onu__pon_port_id", "run_state").annotate(Count("onu_id")):
        counts[port_id][state] = count
    return {
        port_id: is_port_down(online=of.get(RunState.ONLINE, 0), offline=of.get(RunState.OFFLINE, 0))
        for port_id, of in counts.items()
    }


def _load_reads(olt_ids: Iterable[int]) -> dict[tuple[int, int | None], ReadTime]:
    """Return the last reads of the states of OLTs (None) and of their ports that have ended.

    When a poll began is not kept, only when its states were stored. It may have passed the place before the trap, so
    it counts only while no hinted read of its OLT waits or runs.
    """
    hinted = HintRead.objects.filter(olt_id__in=olt_ids)
    is_coming = Q(wanted_at__isnull=False) | Q(execution__isnull=False, execution__finished_at__isnull=True)
    coming = set(hinted.filter(is_coming).values_list("olt_id", flat=True))
    polled = OltMemory.objects.filter(olt_id__in=olt_ids, states_at__isnull=False).exclude(olt_id__in=coming)
    times: dict[tuple[int, int | None], ReadTime] = {
        (olt_id, None): ReadTime(at, at) for olt_id, at in polled.values_list("olt_id", "states_at") if at is not None
    }
    ports = _load_ports(olt_ids)
    ended = hinted.filter(execution__status=ExecutionState.SUCCESS)
    for olt_id, frame, slot, port, is_whole, began_at, ended_at in ended.values_list(
        "olt_id", "frame", "slot", "port", "is_whole", "execution__started_at", "execution__finished_at"
    ):
        key = (olt_id, None if is_whole else ports.get((olt_id, frame, slot, port)))
        if began_at is None or ended_at is None or not (is_whole or key[1] is not None):
            continue
        times[key] = max(times.get(key, ReadTime(began_at, ended_at)), ReadTime(began_at, ended_at))
    return times


def _load_ports(olt_ids: Iterable[int]) -> dict[tuple[int, int, int, int], int]:
    rows = PonPort.objects.filter(olt_id__in=olt_ids).values_list("id", "olt_id", "frame", "slot", "port")
    return {(olt_id, frame, slot, port): port_id for port_id, olt_id, frame, slot, port in rows}


def load_gasps(outage: Outage) -> dict[int, list[datetime]]:
    """Load when traps said a dying gasp of ONUs at the place of a port or card outage, by ONU; one query."""
    names = ("frame", "slot", "port") if outage.scope == OutageScope.PON else ("frame", "slot")
    at_place = {f"pon_port__{name}": getattr(outage, name) for name in names}
    traps = Trap.objects.filter(
        olt_id=outage.olt_id or 0,
        meaning=Meaning.ONU_DYING_GASP.value,
        is_end=False,
        onu__isnull=False,
        heard_at__gte=outage.started_at - GASP_BEFORE,
        **at_place,
    )
    if outage.ended_at:
        traps = traps.filter(heard_at__lte=outage.ended_at)
    gasps: dict[int, list[datetime]] = defaultdict(list)
    for onu_id, heard_at in traps.order_by("heard_at").values_list("onu_id", "heard_at")[:MAX_CHANGES]:
        gasps[onu_id or 0].append(heard_at)
    return dict(gasps)


def load_silent_olts(count: int) -> list[Olt]:
    """Return the first enabled OLTs that never sent a notification that counted, with name and vendor only."""
    silent = Olt.objects.filter(enabled=True, trap_sums__isnull=True).order_by("name")
    return list(silent.only("name", "vendor")[:count])

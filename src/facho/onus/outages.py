"""Keeps the outages: loads those that still matter, stores what the rules decide, and reports the ONUs affected."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from facho.hosts.models import Olt, Reachability
from facho.hosts.store import OLT_SECRETS
from facho.infrastructure.bulk import update_values
from facho.infrastructure.statements import Select
from facho.onus.events import AFTERWARDS
from facho.onus.history_models import STATE_CODES
from facho.onus.models import OltMemory, Onu, OnuEvent, OnuReading, Outage, PonPort, RunStateChoice
from facho.onus.present_onus import (
    CARD_SHIFT,
    LONGEST_CYCLE,
    OFFLINE,
    ONLINE,
    PORT_SHIFT,
    OltOnus,
    PresentOnu,
    load_present,
)
from facho.onus.shown_state import PortCounts, load_port_counts
from facho.onus.words import EventKinds, OutageScopes
from facho.polling.domain.onu_events import OnuStatus
from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.onu_table import pack_place
from facho.polling.domain.outages import (
    LIMITS,
    Cycle,
    Departure,
    OltVoice,
    OutageBreak,
    OutageCause,
    OutageChange,
    OutageMember,
    OutagePlace,
    OutageRecord,
    OutageScope,
    judge_ports,
    judge_silence,
)

_FIGURES = ("started_at", "resumed_at", "ended_at", "affected", "down", "affected_olts")
_CHANGING = ("cause", "part_of", "breaks", *_FIGURES)
# More than the largest card has ONUs that went and came back; a drawing tells no more of more.
MAX_CHANGES = 10_000
# An outage that flaps for a day is described by its latest breaks.
SHOWN_BREAKS = 5
# Two reads of states in one moment are not the same one.
SHORTEST_CYCLE = timedelta(seconds=1)


def load_port_outages(olt_id: int, *, now: datetime) -> list[OutageRecord]:
    """Load port and card outages of an OLT that are open, or ended so recently that they may continue."""
    return _outages(Outage.objects.filter(olt_id=olt_id, scope__in=(OutageScope.PON, OutageScope.CARD)), now)


def load_silences(*, now: datetime) -> list[OutageRecord]:
    """Load OLT and network outages that are open, or ended so recently that they may continue."""
    return _outages(Outage.objects.filter(scope__in=_SILENCES), now)


_SILENCES = (OutageScope.OLT, OutageScope.NETWORK)
_OPEN_SILENCE = Select(
    lambda: Outage.objects.filter(scope__in=_SILENCES, ended_at=None).order_by().values_list("id")[:1]
)
_SILENT_OLT = Select(
    lambda: Olt.objects.filter(enabled=True, reachability=Reachability.DOWN).order_by().values_list("id")[:1]
)


def has_silence() -> bool:
    """Tell in two queries whether there is anything to follow: an OLT is silent, or an outage of one is open."""
    return bool(_OPEN_SILENCE.rows() or _SILENT_OLT.rows())


@transaction.atomic
def follow_silence(intervals: Mapping[int, int], now: datetime) -> None:
    """Open and end the outages of silent OLTs, and of the poller's own network when most of them are silent at once.

    `intervals` are the OLTs that are polled, and how many seconds lie between two questions to each.
    """
    known = load_silences(now=now)
    rows = list(Olt.objects.filter(id__in=intervals).order_by("id").values_list("id", "reachability", "last_answer_at"))
    already_down = {outage.place.olt_id for outage in known if outage.is_open}
    new = [olt_id for olt_id, state, _ in rows if state == Reachability.DOWN and olt_id not in already_down]
    online: dict[int, int] = {}
    if new:
        # The ONUs that were online when the OLT was last heard.
        onus = Onu.objects.filter(olt_id__in=new, is_present=True, reading__run_state=RunStateChoice.ONLINE)
        online = dict(onus.order_by().values_list("olt_id").annotate(Count("id")))
    voices = [
        OltVoice(olt_id, now if state == Reachability.DOWN else None, answered_at, online.get(olt_id, 0))
        for olt_id, state, answered_at in rows
    ]
    # Half of the OLTs are asked at least this often.
    cycle = Cycle(now, timedelta(seconds=median(intervals.values()) if intervals else 0))
    save_outages(known, judge_silence(voices, known, cycle))


def save_outages(known: Iterable[OutageRecord], changes: Sequence[OutageChange]) -> None:
    """Write changes to what was loaded as `known`, and which ONUs and smaller outages they are about."""
    opened = Outage.objects.bulk_create(_row(change.outage) for change in changes if change.outage.outage_id is None)
    update_values(Outage, _CHANGING, [_values(change.outage) for change in changes if change.outage.outage_id])
    ids = {outage.place: outage.outage_id for outage in sorted(known, key=lambda outage: outage.outage_id or 0)}
    ids |= {_place(row): row.id for row in opened}
    joined = [(onu_id, ids[change.outage.place]) for change in changes for onu_id in change.joined]
    update_values(OnuReading, ["outage"], joined)
    parts: list[tuple[object, object]] = []
    for change in changes:
        parts += [(ids[place], ids[change.outage.place]) for place in change.absorbed]
        parts += [(ids[place], None) for place in change.released]
    update_values(Outage, ["part_of"], parts)


def _outages(rows: QuerySet[Outage], now: datetime) -> list[OutageRecord]:
    recent = Q(ended_at=None) | Q(ended_at__gt=now - LIMITS.reopens_within)
    return [_outage(row) for row in rows.filter(recent).order_by("id")]


def _outage(row: Outage) -> OutageRecord:
    return OutageRecord(
        place=_place(row),
        cause=OutageCause(row.cause),
        outage_id=row.id,
        part_of=row.part_of_id,
        breaks=breaks_of(row),
        **_figures(row),
    )


def _figures(outage: Outage | OutageRecord) -> dict[str, Any]:
    """Return what a row and the record of it have in the same words."""
    return {name: getattr(outage, name) for name in _FIGURES}


def breaks_of(row: Outage) -> tuple[OutageBreak, ...]:
    """Return when a recurring outage was over in between, the oldest first."""
    return tuple(OutageBreak(*map(datetime.fromisoformat, pair)) for pair in row.breaks)


def describe_breaks(breaks: Sequence[OutageBreak], *, started_at: datetime) -> str:
    """Describe when service was back in between, in the active language and time zone; empty without breaks."""
    if not breaks:
        return ""
    day = localtime(started_at).date()
    times = []
    for ended_at, resumed_at in (map(localtime, each) for each in breaks[-SHOWN_BREAKS:]):
        date = "" if ended_at.date() == day else f"{ended_at:%Y-%m-%d} "
        times.append(f"{date}{ended_at:%H:%M}–{resumed_at:%H:%M}")  # noqa: RUF001 a range
    words = {"begin": f"{localtime(started_at):%Y-%m-%d %H:%M}", "times": ", ".join(times)}
    return _("out since %(begin)s, back %(times)s") % words


def _texts(breaks: Iterable[OutageBreak]) -> list[list[str]]:
    return [[each.ended_at.isoformat(), each.resumed_at.isoformat()] for each in breaks]


def _place(row: Outage) -> OutagePlace:
    return OutagePlace(OutageScope(row.scope), row.olt_id or 0, row.frame, row.slot, row.port)


def _row(outage: OutageRecord) -> Outage:
    scope, olt_id, frame, slot, port = outage.place
    place = {"scope": scope.value, "olt_id": olt_id or None, "frame": frame, "slot": slot, "port": port}
    return Outage(cause=outage.cause.value, breaks=_texts(outage.breaks), **place, **_figures(outage))


def _values(outage: OutageRecord) -> tuple[object, ...]:
    causes = (outage.cause.value, outage.part_of, json.dumps(_texts(outage.breaks)))
    return (outage.outage_id, *causes, *_figures(outage).values())


def all_outages() -> QuerySet[Outage]:
    """Select outages with their OLT, without its secrets, and the number of their parts."""
    return Outage.objects.select_related("olt").defer(*OLT_SECRETS).annotate(part_count=Count("parts"))


def onus_of(outage: Outage) -> QuerySet[Onu]:
    """Return the ONUs of an outage by place.

    An ONU belongs to the latest outage that took it down. Behind an OLT that does not answer, it is every ONU present
    when the outage began.
    """
    if outage.scope in (OutageScopes.PON, OutageScopes.CARD):
        members = Q(reading__outage_id=outage.pk)
    else:
        silent = Outage.objects.filter(Q(pk=outage.pk) | Q(part_of_id=outage.pk), scope=OutageScopes.OLT)
        was_there = Q(is_present=True) | Q(absent_since__gte=outage.started_at)
        members = Q(olt_id__in=silent.values("olt_id"), first_seen_at__lte=outage.started_at) & was_there
    return (
        Onu.objects.filter(members)
        .select_related("olt", "pon_port", "reading")
        .defer(*OLT_SECRETS)
        .order_by("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id", "id")
    )


class MemberChange(NamedTuple):
    onu_id: int
    at: datetime
    is_down: bool
    cause: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The other ports of the card: how many have ONUs, and how many of those were down at the same time."""

    ports: int
    out: int


def load_changes(outage: Outage) -> list[MemberChange]:
    """Load the ONUs that went down or came back during a port or card outage, in order; one query."""
    until = Q(at__lte=outage.ended_at + AFTERWARDS) if outage.ended_at else Q()
    names = ("frame", "slot", "port") if outage.scope == OutageScopes.PON else ("frame", "slot")
    is_at = Q(olt_id=outage.olt_id, **{f"pon_port__{name}": getattr(outage, name) for name in names})
    events = OnuEvent.objects.filter(until, is_at, at__gte=outage.started_at, kind__in=(EventKinds.DOWN, EventKinds.UP))
    rows = events.order_by("at", "id").values_list("onu_id", "at", "kind", "cause")[:MAX_CHANGES]
    return [MemberChange(onu_id, at, kind == EventKinds.DOWN, cause) for onu_id, at, kind, cause in rows]


def dark_at_worst(changes: Iterable[MemberChange], *, until: datetime) -> set[int]:
    """Return the ONUs that were down when most were: one that went alone, before or after, shares no break."""
    down: set[int] = set()
    most: frozenset[int] = frozenset()
    for at, its in groupby(changes, key=lambda change: change.at):
        for change in its:
            (down.add if change.is_down else down.discard)(change.onu_id)
        if at <= until and len(down) > len(most):
            most = frozenset(down)
    return set(most)


def departures(changes: list[MemberChange]) -> list[Departure]:
    gone = (change for change in changes if change.is_down)
    return [Departure(change.onu_id, change.at, DownCause(change.cause or DownCause.UNKNOWN)) for change in gone]


def load_neighbours(outage: Outage) -> Neighbours:
    """Load the other ports of the card of a port outage; two queries."""
    card = _card(outage)
    carrying = PonPort.objects.filter(Exists(Onu.objects.filter(pon_port=OuterRef("pk"))), **card)
    others = set(carrying.exclude(port=outage.port).values_list("port", flat=True))
    at_once = Outage.objects.filter(
        Q(ended_at__isnull=True) | Q(ended_at__gt=outage.started_at), scope=OutageScopes.PON, port__in=others, **card
    )
    if outage.ended_at:
        at_once = at_once.filter(started_at__lt=outage.ended_at)
    return Neighbours(len(others), at_once.values("port").distinct().count())


def load_port_counts_of(outage: Outage) -> PortCounts | None:
    """Count the ONUs of the port of a port outage by current state; two queries."""
    port_id = PonPort.objects.filter(port=outage.port, **_card(outage)).values_list("id", flat=True).first()
    return load_port_counts([port_id])[port_id] if port_id else None


def _card(outage: Outage) -> dict[str, Any]:
    return {"olt_id": outage.olt_id, "frame": outage.frame, "slot": outage.slot}


def follow_outages(olt_id: int, onus: OltOnus, changed: Sequence[OnuStatus], *, now: datetime) -> None:
    """Open, extend and end outages; `changed` is stored, `onus` is what was loaded before.

    Only ONUs of cards become members where an outage is known, or enough ONUs went down to be one.
    """
    known = load_port_outages(olt_id, now=now) if onus.has_port_outage else []
    if not known and not changed:
        return
    cards = {pack_place(outage.place.frame, outage.place.slot, 0, 0) >> CARD_SHIFT for outage in known}
    cards |= _struck_cards(onus, changed)
    ids = onus.ids[onus.has_known_port & np.isin(onus.cards, list(cards))].tolist()
    if known or ids:
        present = load_present(olt_id, (), onu_ids=ids) if ids else {}
        _judge(olt_id, [member_of(onu, onu.status) for onu in present.values()], known, now)


def _struck_cards(onus: OltOnus, changed: Sequence[OnuStatus]) -> set[int]:
    """Return cards that, or a port of which, lost enough ONUs lately; the rules say whether that is an outage."""
    states, is_lost = onus.states.copy(), onus.changed_lately & (onus.states == OFFLINE)
    order = np.argsort(onus.ids)
    here = order[np.searchsorted(onus.ids, [status.onu_id for status in changed], sorter=order)]
    states[here] = [STATE_CODES[status.state] for status in changed]
    is_lost[here] = states[here] == OFFLINE
    struck: set[int] = set()
    for places, shift in ((onus.ports, CARD_SHIFT - PORT_SHIFT), (onus.cards, 0)):
        found, groups = np.unique(places[onus.has_known_port], return_inverse=True)
        lost = np.bincount(groups[is_lost[onus.has_known_port]], minlength=len(found))
        online = np.bincount(groups[(states == ONLINE)[onus.has_known_port]], minlength=len(found))
        for number in np.flatnonzero(lost >= LIMITS.min_onus).tolist():
            if LIMITS.is_outage(int(lost[number]), online=int(online[number])):
                struck.add(int(found[number]) >> shift)
    return struck


def end_abandoned_outages(olt_id: int, *, now: datetime) -> None:
    """Re-evaluate open outages after ONUs left their places: later polls may never report those ONUs."""
    known = load_port_outages(olt_id, now=now)
    if any(outage.is_open for outage in known):
        members = [member_of(onu, onu.status) for onu in load_present(olt_id, ()).values()]
        _judge(olt_id, members, known, now)


def member_of(onu: PresentOnu, status: OnuStatus) -> OutageMember:
    state = (status.state, status.state_since, status.cause)
    return OutageMember(onu.id, onu.place, *state, onu.outage_id, onu.is_port_known)


def _judge(olt_id: int, members: Sequence[OutageMember], known: Sequence[OutageRecord], now: datetime) -> None:
    # Return the time since states were last read; drops within it count as one cycle.
    states_at = OltMemory.objects.filter(olt_id=olt_id).values_list("states_at", flat=True).first()
    passed = now - states_at if states_at else LONGEST_CYCLE
    # Back in time only goes a clock that was set.
    cycle_length = min(max(passed, SHORTEST_CYCLE), LONGEST_CYCLE) if passed >= timedelta(0) else LONGEST_CYCLE
    save_outages(known, judge_ports(olt_id, members, known, Cycle(now, cycle_length)))

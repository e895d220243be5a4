"""Compares what stands in the database with what the journals say: events, outages, and who is where and how."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt
from facho.onus.models import Onu, OnuEvent, Outage
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.onu_events import EventKind
from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.definition import SERIAL
from facho.polling.vendors.index import Place
from truth.polled_fleet import EPOCH, INTERVAL, Fleet
from truth.sampled_journal import POWER_CAUSES, Fact, SampledJournal

# Who is gone is missed twice; a poll that broke off may be the first time.
MISSED_WITHIN = 4 * INTERVAL


@dataclass(slots=True)
class FleetTruth:
    """What the polls of a fleet have to tell, by its journals."""

    fleet: Fleet
    journals: list[SampledJournal] = field(default_factory=list)
    _followed_until: datetime = EPOCH - INTERVAL

    def __post_init__(self) -> None:
        self.journals = [
            SampledJournal(simulated.world, has_serials=simulated.definition.has_column(SERIAL))
            for simulated in self.fleet.olts
        ]

    def follow(self) -> None:
        """Take in the polls that ended since the last call; what the tables hid is hidden in all of them."""
        of_olt = {row.id: number for number, row in enumerate(self.fleet.rows)}
        # By their end: one that was tried again began before others that ended earlier.
        ended = Execution.objects.filter(
            status=ExecutionState.SUCCESS, finished_at__gt=self._followed_until, node__isnull=False
        )
        for run in ended.order_by("finished_at", "id"):
            assert run.finished_at is not None
            number = of_olt[run.olt_id]
            rows = self.fleet.olts[number].faults.max_rows
            seconds = (run.finished_at - EPOCH).total_seconds()
            self.journals[number].look(run.task_type, run.finished_at, seconds, rows=rows)
        self._followed_until = self.fleet.now


def assert_events_are_true(truth: FleetTruth) -> None:
    """Nothing more and nothing less is reported than the journals say, at the very poll that could see it first."""
    for row, journal in zip(truth.fleet.rows, truth.journals, strict=True):
        reported, expected = _moments(stored_facts(row)), _moments(journal.facts)
        more = [(what, at) for what, at in reported.items() if len(at) > len(expected.get(what, []))]
        less = [(what, at) for what, at in expected.items() if len(at) > len(reported.get(what, []))]
        assert (more, less) == ([], [])
        broken = _broken_polls(row)
        other = [(w, a, e) for w in reported for a, e in zip(reported[w], expected[w], strict=True) if a != e]
        assert [(w, a, e) for w, a, e in other if not _may_differ(w[0], a, e, broken)] == []


def _may_differ(kind: object, reported: datetime, expected: datetime, broken: set[datetime]) -> bool:
    """Tell whether a poll that broke off explains another moment than that of the journal.

    It may have seen something before, or missed for the first time who was gone. One that went on where it broke off
    still has who was there before the break, so that it is missed one poll later.
    """
    is_near = any(expected - MISSED_WITHIN < poll < min(reported, expected) for poll in broken)
    if reported > expected:
        return kind is EventKind.GONE and is_near and reported - expected <= INTERVAL
    return reported in broken or (kind is EventKind.GONE and is_near)


def stored_facts(olt: Olt) -> list[Fact]:
    """Return the timeline of an OLT in the words of the journal."""
    events = OnuEvent.objects.filter(olt=olt).select_related("pon_port", "other_port", "onu").order_by("id")
    return [Fact(e.at, EventKind(e.kind), _place(e), e.onu.serial or e.onu.mac, _detail(e)) for e in events]


def assert_rows_are_true(fleet: Fleet) -> None:
    """Everyone stands where it is, under its name and in its state."""
    for row, simulated in zip(fleet.rows, fleet.olts, strict=True):
        onus = Onu.objects.filter(olt=row, is_present=True).select_related("pon_port", "reading")
        stored = {
            Place(o.pon_port.frame, o.pon_port.slot, o.pon_port.port, o.onu_id): (
                _tail(o.serial or o.mac),
                o.description,
                o.reading.run_state,
            )
            for o in onus
        }
        true = {onu.place: (_tail(onu.serial), onu.description, onu.state.value) for onu in simulated.world.onus}
        assert stored == true


def stored_outages() -> list[tuple[object, ...]]:
    """Return what an operator is shown: whatever is no part of something larger, in order of time."""
    whole = Outage.objects.filter(part_of=None).order_by("started_at", "scope", "olt", "frame", "slot", "port")
    return [(o.scope, o.olt, o.place, o.cause, o.affected, o.started_at, o.ended_at) for o in whole]


def _moments(facts: list[Fact]) -> dict[tuple[object, ...], list[datetime]]:
    moments: defaultdict[tuple[object, ...], list[datetime]] = defaultdict(list)
    for fact in facts:
        moments[fact._replace(serial=_tail(fact.serial))[1:]].append(fact.at)
    return {what: sorted(at) for what, at in moments.items()}


def _tail(identity: str) -> str:
    """Return what serial and hardware address of a simulated ONU have in common."""
    return identity.replace(":", "")[-8:]


def _broken_polls(olt: Olt) -> set[datetime]:
    failed = ExecutionAttempt.objects.filter(execution__olt=olt, status=ExecutionState.FAILED)
    return {at for at in failed.values_list("finished_at", flat=True) if at}


def _place(event: OnuEvent) -> Place:
    port = event.pon_port
    return Place(port.frame, port.slot, port.port, event.onu_number)


def _detail(event: OnuEvent) -> object:
    if event.kind == EventKind.MOVED:
        port, number = event.other_port, event.other_number
        return Place(port.frame, port.slot, port.port, number or 0) if port else None
    if event.kind == EventKind.DESCRIPTION_CHANGED:
        return event.after
    if event.kind in (EventKind.DOWN, EventKind.FLAPPING) and event.cause:
        return DownCause(event.cause) in POWER_CAUSES
    return None

"""How an ONU, or an event of one, is shown as one line of many."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from facho.onus.events import all_events, describe_event, load_page
from facho.onus.models import Onu, OnuEvent
from facho.onus.words import DownCauses, EventKinds, ShownState
from facho.plant.models import LightFinding
from facho.plant.store import describe_common_step, first_step_of, fold_steps, load_step_folds

# A clock that was never set is decades off.
OLDEST_TOLD = timedelta(days=3 * 365)


@dataclass(frozen=True, slots=True)
class Since:
    """When a state began; `is_olt_time` if only the OLT's own clock knows."""

    at: datetime | None
    is_olt_time: bool = False


def code_of(onu: Onu) -> str:
    """Return the serial, or the hardware address on EPON; empty if the OLT reports neither."""
    return onu.serial or onu.mac or f"{onu.pon_port}/{onu.onu_id}"


def name_of(onu: Onu) -> str:
    """Return the customer's name if known, else the OLT's description."""
    customer = getattr(onu, "customer", None)
    return (customer.label if customer else "") or onu.description or onu.name


def cause_of(onu: Onu) -> str:
    reading = getattr(onu, "reading", None)
    return str(DownCauses(reading.last_down_cause).label) if reading and reading.last_down_cause else ""


def since_of(onu: Onu, state: ShownState) -> Since:
    reading = getattr(onu, "reading", None)
    if state is ShownState.ABSENT:
        return Since(onu.absent_since)
    if state is ShownState.UNKNOWN:
        return Since(onu.olt.last_answer_at)
    if reading is None or reading.state_since or state is not ShownState.OFFLINE:
        return Since(reading.state_since if reading else None)
    # Accept the OLT's time for an ONU already down at first sight, unless it is implausibly old.
    down_at = reading.last_down_at
    if down_at is None or not onu.first_seen_at - OLDEST_TOLD < down_at <= onu.first_seen_at:
        return Since(None)
    return Since(down_at, is_olt_time=True)


_LOOKS = {
    EventKinds.DOWN: "down",
    EventKinds.GONE: "down",
    EventKinds.FLAPPING: "late",
    EventKinds.POWER_DROP: "late",
    EventKinds.DUPLICATE_SERIAL: "late",
    EventKinds.DUPLICATE_MAC: "late",
    EventKinds.UP: "up",
    EventKinds.RETURNED: "up",
}


@dataclass(frozen=True, slots=True)
class EventLine:
    """One line of the table; any text in it may come from the device."""

    id: int
    onu_id: int
    at: datetime
    look: str
    what: str
    place: str
    code: str
    description: str
    olt_id: int
    olt: str

    @property
    def url(self) -> str:
        return reverse("onu", args=[self.onu_id])


def event_rows(events: Iterable[OnuEvent]) -> list[EventLine]:
    return [
        EventLine(
            id=event.id,
            onu_id=event.onu_id,
            at=event.at,
            look=_LOOKS.get(EventKinds(event.kind), "unknown"),
            what=describe_event(event),
            place=f"{event.pon_port}/{event.onu_number}",
            code=code_of(event.onu),
            description=event.onu.description,
            olt_id=event.olt_id,
            olt=event.olt.name,
        )
        for event in events
    ]


@dataclass(frozen=True, slots=True)
class FoldedStep(EventLine):
    """Light that several ONUs lost in common, instead of an event of each."""

    finding_id: int

    @property
    def url(self) -> str:
        return reverse("light-finding", args=[self.finding_id])


def load_latest(events: Q, findings: QuerySet[LightFinding], count: int) -> list[EventLine]:
    """Load the latest events of a place as lines; `findings` are those of its ports. Two queries."""
    folds = load_step_folds(findings, None, count)
    return event_lines(load_page(fold_steps(all_events().filter(events), folds), None, count).rows, folds)


def event_lines(events: Sequence[OnuEvent], folds: Sequence[LightFinding]) -> list[EventLine]:
    """Shape events, in their order, of which `folds` stand for others; no query."""
    findings = {first_step_of(finding): finding for finding in folds}
    return [
        _fold(line, finding) if (finding := findings.get(line.id)) is not None else line for line in event_rows(events)
    ]


def _fold(line: EventLine, finding: LightFinding) -> FoldedStep:
    hit: int = finding.hit_number  # type: ignore[attr-defined]  # annotated
    values = {each.name: getattr(line, each.name) for each in fields(line)}
    values |= {
        "what": describe_common_step(finding, hit),
        "place": line.place.rpartition("/")[0],
        "code": _("Plot and numbers"),
        "description": "",
    }
    return FoldedStep(**values, finding_id=finding.pk)

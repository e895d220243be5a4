"""The timeline of ONUs: writes what happened, all of a poll at once, and loads, counts and describes it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.store import OLT_SECRETS
from facho.infrastructure.bulk import insert_values, update_values
from facho.onus.models import OnuEvent
from facho.onus.search import MANY
from facho.onus.timeline import TimelineCursor, load_rows
from facho.onus.words import DownCauses, EventKinds, RunStateChoice
from facho.polling.domain import onu_events as rules
from facho.polling.domain.onu_state import OnuPlace, PortPlace

_SENTENCES: Mapping[str, Promise] = MappingProxyType(
    {
        EventKinds.NEW: gettext_lazy("Seen for the first time"),
        EventKinds.MOVED: gettext_lazy("Moved here from %(other)s"),
        EventKinds.GONE: gettext_lazy("Not found any more"),
        EventKinds.RETURNED: gettext_lazy("Found again"),
        EventKinds.DUPLICATE_SERIAL: gettext_lazy("The same serial is also at %(other)s"),
        EventKinds.DUPLICATE_MAC: gettext_lazy("The same hardware address is also at %(other)s"),
        EventKinds.CALM: gettext_lazy("Stable again: %(state)s"),
        EventKinds.UP: gettext_lazy("Went up"),
        EventKinds.DOWN: gettext_lazy("Went down"),
        EventKinds.FLAPPING: gettext_lazy("Flapping; the next event comes when it is stable"),
        EventKinds.POWER_DROP: gettext_lazy("Light dropped from %(before)s to %(after)s dBm"),
        EventKinds.POWER_RISE: gettext_lazy("Light rose from %(before)s to %(after)s dBm"),
        EventKinds.DESCRIPTION_CHANGED: gettext_lazy('Description changed from "%(before)s" to "%(after)s"'),
    }
)
_STATES: Mapping[str, str | Promise] = MappingProxyType(dict(RunStateChoice.choices))
_CAUSES: Mapping[str, str | Promise] = MappingProxyType(dict(DownCauses.choices))
_COLUMNS = (
    "olt",
    "pon_port",
    "onu",
    "onu_number",
    "at",
    "kind",
    "cause",
    "other_port",
    "other_number",
    "before",
    "after",
)
_TELL_A_CAUSE = (EventKinds.DOWN, EventKinds.FLAPPING)


def describe_event(event: OnuEvent) -> str:
    """Describe an event and its cause in one line of plain text; pages must escape it."""
    sentence = str(_SENTENCES[event.kind]) % {
        "other": f"{event.other_port}/{event.other_number}",
        "state": _STATES.get(event.after, event.after),
        "before": event.before,
        "after": event.after,
    }
    if not event.cause:
        return sentence
    return _("%(sentence)s: %(cause)s") % {"sentence": sentence, "cause": _CAUSES[event.cause]}


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, latest first, with cursors to the neighbouring pages; None at either end."""

    events: list[OnuEvent]
    newer: TimelineCursor | None
    older: TimelineCursor | None


@dataclass(frozen=True, slots=True)
class Count:
    number: int
    is_exact: bool


def all_events() -> QuerySet[OnuEvent]:
    """Select events with their names, without OLT secrets."""
    return OnuEvent.objects.select_related("olt", "pon_port", "onu__pon_port", "other_port").defer(*OLT_SECRETS)


def load_page(timeline: QuerySet[OnuEvent], cursor: TimelineCursor | None, size: int) -> EventPage:
    """Load one page; one query."""
    page = load_rows(timeline, "at", cursor, size)
    return EventPage(page.rows, page.newer, page.older)


def count_events(timeline: QuerySet[OnuEvent]) -> Count:
    """Count up to MANY; one query."""
    number = timeline.order_by()[: MANY + 1].count()
    return Count(min(number, MANY), number <= MANY)


def save_events(
    olt_id: int,
    events: Iterable[rules.ObservedEvent],
    *,
    port_ids: Mapping[PortPlace, int],
    new_ids: Mapping[OnuPlace, int] | None = None,
) -> None:
    """Write the events of a poll; `new_ids` are the rows of ONUs that did not exist when the events were decided."""
    insert_values(OnuEvent, _COLUMNS, [_row(olt_id, event, port_ids, new_ids or {}) for event in events])


def save_late_causes(causes: Iterable[rules.LateCause]) -> None:
    """Add causes the OLT reported after the event was stored."""
    wanted = {(late.onu_id, late.down_at): late.cause.value for late in causes}
    if not wanted:
        return
    told = OnuEvent.objects.filter(
        onu_id__in={onu_id for onu_id, _ in wanted}, at__in={at for _, at in wanted}, kind__in=_TELL_A_CAUSE
    )
    rows = [(pk, wanted.get((onu_id, at))) for pk, onu_id, at in told.values_list("id", "onu_id", "at")]
    update_values(OnuEvent, ["cause"], [row for row in rows if row[1]])


def _row(
    olt_id: int, event: rules.ObservedEvent, port_ids: Mapping[PortPlace, int], new_ids: Mapping[OnuPlace, int]
) -> tuple[object, ...]:
    other = event.other_place
    return (
        olt_id,
        port_ids[event.place[:3]],
        event.onu_id or new_ids[event.place],
        event.place[3],
        event.at,
        event.kind.value,
        event.cause.value if event.cause else "",
        port_ids[other[:3]] if other else None,
        other[3] if other else None,
        _text(event.before),
        _text(event.after),
    )


def _text(value: str | int | None) -> str:
    if isinstance(value, int):
        return f"{value / 100:.2f}"
    return value or ""

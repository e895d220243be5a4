"""The timeline of ONUs: writes what happened, all of a poll at once, and loads, counts and describes it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.lookups import Exact
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.store import OLT_SECRETS
from facho.infrastructure.bulk import insert_values, update_values
from facho.onus.models import OnuEvent, Outage
from facho.onus.search import MANY
from facho.onus.timeline import RowPage, TimelineCursor, load_rows
from facho.onus.words import DownCauses, EventKinds, OutageScopes, RunStateChoice
from facho.polling.domain import onu_events as rules
from facho.polling.domain.onu_state import OnuPlace, PortPlace

# Those that come back from an outage are seen by the polls after its end.
AFTERWARDS = timedelta(minutes=10)
# Of outages that began before a page of the timeline; more at once are those of a whole network.
MAX_EARLIER = 100

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
# What an outage is made of.
OF_OUTAGES = (EventKinds.DOWN, EventKinds.UP)
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
class Count:
    number: int
    is_exact: bool


def all_events() -> QuerySet[OnuEvent]:
    """Select events with their names, without OLT secrets."""
    return OnuEvent.objects.select_related("olt", "pon_port", "onu__pon_port", "other_port").defer(*OLT_SECRETS)


def load_folds(
    outages: QuerySet[Outage], cursor: TimelineCursor | None, size: int, *, after: datetime | None = None
) -> list[Outage]:
    """Load the port and card outages that a page of so many lines may meet, with their `first_event`; two queries.

    Those that begin on the page are at most as many as its lines; the others began earlier and still have events on it.
    With `after`, the first event is the first one since then.
    """
    of_it = OnuEvent.objects.filter(
        Q(pon_port__port=OuterRef("port")) | Q(Exact(OuterRef("scope"), Value(OutageScopes.CARD.value))),
        kind__in=OF_OUTAGES,
        olt_id=OuterRef("olt_id"),
        pon_port__frame=OuterRef("frame"),
        pon_port__slot=OuterRef("slot"),
        at__gte=OuterRef("started_at"),
    )
    of_it = of_it if after is None else of_it.filter(at__gte=after)
    first = Subquery(of_it.order_by("at", "id").values("pk")[:1])
    known = outages.filter(scope__in=(OutageScopes.PON, OutageScopes.CARD), part_of__isnull=True)
    known = known.annotate(first_event=first)
    is_newer = cursor is not None and cursor.is_newer
    reached = Q(**{f"started_at__{'gte' if is_newer else 'lte'}": cursor.at}) if cursor else Q()
    order = ("started_at", "id") if is_newer else ("-started_at", "-id")
    # Some begin at the very time of the cursor and were shown before.
    near: list[Outage] = list(known.filter(reached).order_by(*order)[: 2 * size])
    oldest = cursor.at if cursor and is_newer else near[-1].started_at if len(near) == 2 * size else None
    if oldest is None:
        return near
    lasts = Q(ended_at__isnull=True) | Q(ended_at__gte=oldest - AFTERWARDS)
    earlier = known.filter(lasts, started_at__lte=oldest).exclude(pk__in=[outage.pk for outage in near])
    return [*near, *earlier.order_by("-started_at", "-id")[:MAX_EARLIER]]


def fold_outages(timeline: QuerySet[OnuEvent], folds: Iterable[Outage]) -> QuerySet[OnuEvent]:
    """Leave one event of each of these outages, its first: the ups and downs of its ONUs become one line.

    The outages are named by their ids: with the place and time of each in the statement, PostgreSQL would plan it for
    half a second.
    """
    known = list(folds)
    if not known:
        return timeline
    # Not by the key itself: SQLite would look all of them up for each event, instead of the few of its OLT.
    of_it = (
        Outage.objects.alias(number=F("pk") + 0)
        .filter(
            Q(scope=OutageScopes.CARD) | Q(port=OuterRef("pon_port__port")),
            Q(ended_at__isnull=True) | Q(ended_at__gte=OuterRef("at") - AFTERWARDS),
            number__in=[each.pk for each in known],
            olt_id=OuterRef("olt_id"),
            frame=OuterRef("pon_port__frame"),
            slot=OuterRef("pon_port__slot"),
            started_at__lte=OuterRef("at"),
        )
        .order_by()
    )
    firsts = [first for each in known if (first := first_event_of(each))]
    return timeline.filter(~Q(kind__in=OF_OUTAGES) | Q(pk__in=firsts) | ~Exists(of_it))


def first_event_of(outage: Outage) -> int | None:
    """Return the event that is left of an outage that `load_folds` loaded."""
    first: int | None = getattr(outage, "first_event", None)
    return first


def load_events_of(outage_id: int, count: int) -> list[OnuEvent]:
    """Load the latest ups and downs at the place of a port or card outage while it lasted; two queries."""
    outage = Outage.objects.get(pk=outage_id)
    at_port = {"pon_port__port": outage.port} if outage.scope == OutageScopes.PON else {}
    until = {"at__lte": outage.ended_at + AFTERWARDS} if outage.ended_at else {}
    place = {"olt_id": outage.olt_id, "pon_port__frame": outage.frame, "pon_port__slot": outage.slot, **at_port}
    events = all_events().filter(**place, **until, kind__in=OF_OUTAGES, at__gte=outage.started_at)
    return list(events.order_by("-at", "-id")[:count])


def load_page(timeline: QuerySet[OnuEvent], cursor: TimelineCursor | None, size: int) -> RowPage[OnuEvent]:
    """Load one page; one query."""
    return load_rows(timeline, "at", cursor, size)


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
    stored = OnuEvent.objects.filter(
        onu_id__in={onu_id for onu_id, _ in wanted}, at__in={at for _, at in wanted}, kind__in=_TELL_A_CAUSE
    )
    rows = [(pk, wanted.get((onu_id, at))) for pk, onu_id, at in stored.values_list("id", "onu_id", "at")]
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

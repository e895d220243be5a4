"""One ONU as its page shows it: whose it is, how it is and why, and what its neighbours say about that."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from facho.accounts.scope import OltScope
from facho.dashboard.olt_events import EventRow, event_rows
from facho.dashboard.onu_figures import Figure, figures_of
from facho.dashboard.onu_names import Since, since_of
from facho.dashboard.onu_words import HINTS, tell_neighbours
from facho.dashboard.outages_now import OutageRow, outage_rows
from facho.onus.events_read_model import all_events, load_page
from facho.onus.models import Onu, OnuData, OnuReading, Outage
from facho.onus.port_view import PortCounts, load_port_counts
from facho.onus.search import shown_onus
from facho.onus.shown_state import last_known_state, shown_state
from facho.onus.words import DownCauses, OutageScopes, ShownState
from facho.snmp_jobs.read_names import load_named_reads, name_read


@dataclass(frozen=True, slots=True)
class OnuSheet:
    """What the head of the page says; everything in it may be text that a device chose."""

    state: ShownState
    since: Since
    last_known: str
    cause: str
    hint: str
    is_flapping: bool
    figures: list[Figure]
    # What stands there was read before it went.
    is_old_light: bool
    # None where the OLT does not tell the port: then nobody knows its neighbours.
    port: PortCounts | None
    neighbours: str
    outage: OutageRow | None


@dataclass(frozen=True, slots=True)
class RawValue:
    """A value as the device sent it."""

    oid: str
    name: str
    value: str
    updated_at: datetime


def load_onu(onu_id: int, scope: OltScope) -> Onu | None:
    """Load an ONU with all that is shown of it, if it is in scope; one query."""
    return scope.narrow(shown_onus()).filter(id=onu_id).first()


def load_sheet(onu: Onu) -> OnuSheet:
    """Judge a loaded ONU; two queries."""
    reading: OnuReading | None = getattr(onu, "reading", None)
    state = shown_state(onu)
    cause = reading.last_down_cause if reading else ""
    port = load_port_counts([onu.pon_port_id])[onu.pon_port_id] if onu.pon_port.is_known else None
    return OnuSheet(
        state=state,
        since=since_of(onu, state),
        last_known=str(last_known_state(onu).label),
        cause=str(DownCauses(cause).label) if cause else "",
        hint=str(HINTS.get(cause, "")) if state is ShownState.OFFLINE else "",
        is_flapping=bool(reading and reading.is_flapping),
        figures=figures_of(reading, are_old=state is not ShownState.ONLINE),
        is_old_light=state is not ShownState.ONLINE,
        port=port,
        neighbours=tell_neighbours(state, port),
        outage=_load_open_outage(onu),
    )


def load_onu_events(onu_id: int, count: int) -> list[EventRow]:
    """Load the latest events of an ONU; one query."""
    return event_rows(load_page(all_events().filter(onu_id=onu_id), None, count).events)


def load_onu_outages(onu: Onu, count: int) -> list[OutageRow]:
    """Load the latest outages of its port, its card and its OLT, as far as they began since it is known."""
    since = Q(started_at__gte=onu.first_seen_at) | Q(ended_at__isnull=True)
    return outage_rows(Outage.objects.filter(_of_place(onu), since).order_by("-started_at", "-id")[:count])


def load_raw_values(onu: Onu) -> list[RawValue]:
    """Load what the device sent last, with the names under which it was asked for; two queries."""
    reads = load_named_reads(onu.olt.vendor)
    rows = OnuData.objects.filter(onu_id=onu.id).order_by("oid").values_list("oid", "value", "updated_at")
    return [RawValue(oid, name_read(oid, reads).name, value, updated_at) for oid, value, updated_at in rows]


def _of_place(onu: Onu) -> Q:
    port = onu.pon_port
    of_card = Q(scope=OutageScopes.CARD, frame=port.frame, slot=port.slot)
    of_port = Q(scope=OutageScopes.PON, frame=port.frame, slot=port.slot, port=port.port)
    return Q(olt_id=onu.olt_id) & (of_port | of_card | Q(scope=OutageScopes.OLT))


def _load_open_outage(onu: Onu) -> OutageRow | None:
    """Load what is out now of where it hangs, the largest first."""
    now_out = Outage.objects.filter(_of_place(onu), ended_at__isnull=True).order_by("-affected", "id")
    return next(iter(outage_rows(now_out[:1])), None)

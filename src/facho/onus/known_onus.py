"""Loads the ONUs of an OLT as plain values: what the rules compare a walk or a poll with."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from facho.onus.models import Onu
from facho.polling.domain.onu_events import OnuStatus
from facho.polling.domain.onu_match import KnownOnu
from facho.polling.domain.onu_state import DownCause, OnuPlace, RunState

PLACE = ("pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id")
_KNOWN = ("id", *PLACE, "serial", "mac", "is_present", "misses", "missed_at")
_STATUS = (
    "description",
    "reading__run_state",
    "reading__state_since",
    "reading__last_down_cause",
    "reading__power_reference_cdbm",
    "reading__power_reference_at",
    "reading__flap_changes",
    "reading__flap_since",
)
_PRESENT = ("id", "pon_port_id", "pon_port__is_known", *PLACE, "misses", "reading__outage_id", *_STATUS)
_STATES: Mapping[str, RunState] = {state.value: state for state in RunState}
_CAUSES: Mapping[str, DownCause] = {cause.value: cause for cause in DownCause}


class PresentOnu(NamedTuple):
    """A present ONU, what is remembered of it, and the columns that were asked for, in their order."""

    id: int
    pon_port_id: int
    is_port_known: bool
    place: OnuPlace
    can_be_read: bool
    outage_id: int | None
    status: OnuStatus
    columns: tuple[Any, ...]


def load_known(olt_id: int) -> list[KnownOnu]:
    """Load who is known on an OLT, present and absent."""
    rows = Onu.objects.filter(olt_id=olt_id).order_by().values_list(*_KNOWN)
    return [KnownOnu(onu_id, tuple(row[:4]), *row[4:]) for onu_id, *row in rows]


def load_present(olt_id: int, columns: Sequence[str]) -> dict[OnuPlace, PresentOnu]:
    """Load the present ONUs of an OLT by their places, with further columns."""
    rows = Onu.objects.filter(olt_id=olt_id, is_present=True).order_by().values_list(*_PRESENT, *columns)
    return {onu.place: onu for onu in map(_present, rows)}


def state_of(value: object) -> RunState | None:
    """Return a run state that was stored or read; None for what is none."""
    return _STATES.get(value) if isinstance(value, str) else None


def cause_of(value: object) -> DownCause | None:
    """Return a cause that was stored or read; None for what is none."""
    return _CAUSES.get(value) if isinstance(value, str) else None


def _present(row: tuple[Any, ...]) -> PresentOnu:
    onu_id, port_id, is_port_known, frame, slot, port, number, misses, outage_id = row[:9]
    description, state, since, cause, power, power_at, changes, flap_since = row[9:17]
    place = (frame, slot, port, number)
    status = OnuStatus(
        onu_id,
        place,
        _STATES.get(state, RunState.UNKNOWN),
        since,
        _CAUSES.get(cause),
        description,
        power,
        power_at,
        changes or 0,
        flap_since,
    )
    return PresentOnu(onu_id, port_id, is_port_known, place, not misses, outage_id, status, row[17:])

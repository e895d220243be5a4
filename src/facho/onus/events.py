"""Writes what happened to ONUs into their timeline, all of a poll at once."""

from collections.abc import Iterable, Mapping

from facho.onus.bulk import insert_values, update_values
from facho.onus.models import OnuEvent
from facho.onus.words import EventKinds
from facho.polling.domain import onu_events as rules
from facho.polling.domain.onu_state import OnuPlace, PortPlace

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


def save_events(
    olt_id: int,
    events: Iterable[rules.OnuEvent],
    *,
    port_ids: Mapping[PortPlace, int],
    new_ids: Mapping[OnuPlace, int] | None = None,
) -> None:
    """Write events of one poll; `new_ids` are the rows of ONUs that had none when the rules looked."""
    insert_values(OnuEvent, _COLUMNS, [_row(olt_id, event, port_ids, new_ids or {}) for event in events])


def save_late_causes(causes: Iterable[rules.LateCause]) -> None:
    """Complete events that were told before the OLT knew the cause."""
    wanted = {(late.onu_id, late.down_at): late.cause.value for late in causes}
    if not wanted:
        return
    told = OnuEvent.objects.filter(
        onu_id__in={onu_id for onu_id, _ in wanted}, at__in={at for _, at in wanted}, kind__in=_TELL_A_CAUSE
    )
    rows = [(pk, wanted.get((onu_id, at))) for pk, onu_id, at in told.values_list("id", "onu_id", "at")]
    update_values(OnuEvent, ["cause"], [row for row in rows if row[1]])


def _row(
    olt_id: int, event: rules.OnuEvent, port_ids: Mapping[PortPlace, int], new_ids: Mapping[OnuPlace, int]
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
    """Write a description as it is, and a power in dBm."""
    if isinstance(value, int):
        return f"{value / 100:.2f}"
    return value or ""

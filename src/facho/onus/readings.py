"""Stores what a poll read of ONUs: reads the rows at hand, compares, and writes only what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from facho.onus.bulk import insert_values, update_values
from facho.onus.columns import ONU_COLUMNS, READING_COLUMNS, RX_POWER, Column, power_steps
from facho.onus.events import save_events, save_late_causes
from facho.onus.history import Samples, append
from facho.onus.history_metrics import STATE_CODES, Metric
from facho.onus.known_onus import PresentOnu, cause_of, load_present, state_of
from facho.onus.models import OltMemory, Onu, OnuReading
from facho.onus.port_outages import follow_outages, member_of
from facho.onus.raw_values import save_raw_values
from facho.polling.domain.onu_events import OnuStatus, PollChanges, Told, compare_poll
from facho.polling.vendors.index import Place

DESCRIPTION, STATE, CAUSE = "onu.description", "onu.run_state", "onu.last_down_cause"
_TOLD = frozenset({DESCRIPTION, STATE, CAUSE, RX_POWER})
_HISTORY: Mapping[str, Metric] = {
    RX_POWER: Metric.RX_POWER,
    "onu.tx_power": Metric.TX_POWER,
    "onu.olt_rx_power": Metric.OLT_RX_POWER,
    "onu.temperature": Metric.TEMPERATURE,
    "onu.distance": Metric.DISTANCE,
    STATE: Metric.STATE,
}
_STATUS = (
    "run_state",
    "state_since",
    "last_down_cause",
    "power_reference_cdbm",
    "power_reference_at",
    "flap_changes",
    "flap_since",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """Decoded values of one ONU by their column key; only what was read is in it."""

    place: Place
    values: dict[str, object]
    raw: dict[str, str]


Pairs = Sequence[tuple[PresentOnu, Reading]]


def save_readings(olt_id: int, readings: Sequence[Reading], *, now: datetime, is_poll: bool = True) -> int:
    """Store what a poll read of present ONUs, and what follows from it; returns how many ONUs changed.

    What is no poll read some ONUs and left out their neighbours: the cycle of polls does not begin anew with it.
    """
    keys = set(chain.from_iterable(reading.values for reading in readings))
    columns = _Columns(keys)
    onus = load_present(olt_id, columns.paths)
    pairs = [(onu, reading) for reading in readings if (onu := onus.get(reading.place)) and onu.can_be_read]
    changes = _compare(pairs, keys, now)
    changed = _save_status(pairs, changes) | columns.save(pairs, now)
    save_events(olt_id, changes.events, port_ids={onu.place[:3]: onu.pon_port_id for onu, _ in pairs})
    save_late_causes(changes.late_causes)
    raw = {onu.id: reading.raw for onu, reading in pairs}
    save_raw_values(olt_id, raw, port_ids={onu.pon_port_id for onu, _ in pairs}, now=now)
    _append_history(pairs, keys, now)
    if STATE in keys:
        after = {status.onu_id: status for status in changes.statuses}
        members = [member_of(onu, after.get(onu.id, onu.status)) for onu in onus.values()]
        follow_outages(olt_id, members, has_changes=bool(after), now=now)
        if is_poll:
            insert_values(OltMemory, ["olt", "states_at"], [(olt_id, now)], unique=["olt"])
    return len(changed)


def _compare(pairs: Pairs, keys: set[str], now: datetime) -> PollChanges:
    if keys.isdisjoint(_TOLD):
        return PollChanges((), (), ())
    return compare_poll(((onu.status, _told(reading.values)) for onu, reading in pairs), now=now)


def _told(values: Mapping[str, object]) -> Told:
    description = values.get(DESCRIPTION)
    return Told(
        state_of(values.get(STATE)),
        cause_of(values.get(CAUSE)),
        power_steps(values.get(RX_POWER)),
        description[:255] if isinstance(description, str) else None,
    )


def _save_status(pairs: Pairs, changes: PollChanges) -> set[int]:
    before = {onu.id: onu.status for onu, _ in pairs}
    described = [(s.onu_id, s.description) for s in changes.statuses if s.description != before[s.onu_id].description]
    update_values(Onu, ["description"], described)
    update_values(OnuReading, _STATUS, [_status_row(status) for status in changes.statuses])
    return {status.onu_id for status in changes.statuses}


def _status_row(status: OnuStatus) -> tuple[object, ...]:
    return (
        status.onu_id,
        status.state.value,
        status.state_since,
        status.cause.value if status.cause else "",
        status.power_reference_cdbm,
        status.power_reference_at,
        status.flap_changes,
        status.flap_since,
    )


class _Columns:
    """The columns that a poll is about: first those of the ONU, then those of its reading."""

    def __init__(self, keys: set[str]) -> None:
        self._onu = [column for column in ONU_COLUMNS if column.key in keys]
        self._reading = [column for column in READING_COLUMNS if column.key in keys]

    @property
    def paths(self) -> list[str]:
        return [column.name for column in self._onu] + [f"reading__{column.name}" for column in self._reading]

    def save(self, pairs: Pairs, now: datetime) -> set[int]:
        """Write the rows in which a value is another now, and return their ONUs."""
        of_onus = _changed(self._onu, 0, pairs)
        update_values(Onu, [column.name for column in self._onu], of_onus)
        of_readings = _changed(self._reading, len(self._onu), pairs)
        names = [column.name for column in self._reading]
        if "rx_power_cdbm" in names:
            names, of_readings = [*names, "power_at"], [(*row, now) for row in of_readings]
        update_values(OnuReading, names, of_readings)
        return {row[0] for row in chain(of_onus, of_readings)}


def _changed(columns: Sequence[Column], first: int, pairs: Pairs) -> list[tuple[Any, ...]]:
    rows = []
    for onu, reading in pairs:
        before = onu.columns[first : first + len(columns)]
        values = reading.values
        after = tuple([column.of(values, stored) for column, stored in zip(columns, before, strict=True)])
        if after != before:
            rows.append((onu.id, *after))
    return rows


def _append_history(pairs: Pairs, keys: set[str], now: datetime) -> None:
    wanted = [key for key in _HISTORY if key in keys]
    read = [(onu, reading.values) for onu, reading in pairs if not reading.values.keys().isdisjoint(wanted)]
    if not read:
        return
    columns = {_HISTORY[key]: _numbers(key, [values.get(key) for _, values in read]) for key in wanted}
    append(now, Samples([onu.id for onu, _ in read], [onu.pon_port_id for onu, _ in read], columns))


def _numbers(key: str, values: Sequence[object]) -> list[float | None]:
    if key == STATE:
        return [STATE_CODES.get(str(value)) for value in values]
    return [value if isinstance(value, int | float) else None for value in values]

"""Rows of an OLT's ONUs: what collectors ask of them, and storing an identity walk or a table of read values."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from django.utils.timezone import get_current_timezone_name, make_aware

from facho.hosts.models import Olt
from facho.hosts.store import mark_discovered
from facho.infrastructure.bulk import insert_values, update_numbers, update_values
from facho.onus.events import save_events, save_late_causes
from facho.onus.history import Samples, append
from facho.onus.history_models import STATE_CODES, Floats, Ints, Metric
from facho.onus.models import OltMemory, Onu, OnuReading, PonPort, RunStateChoice
from facho.onus.outages import end_abandoned_outages, follow_outages
from facho.onus.present_onus import (
    CAUSE_CODES,
    OFFLINE,
    PLACE,
    Bools,
    OltOnus,
    PresentOnu,
    cause_of,
    load_known,
    load_onus,
    load_present,
    state_of,
)
from facho.onus.raw_values import RawBlock, compare, load_blocks, save_blocks, take
from facho.onus.words import AdminStates
from facho.polling.domain.onu_events import POWER_STEP_CDBM, OnuStatus, PollChanges, PolledOnu, compare_poll
from facho.polling.domain.onu_presence import KnownOnu, OnuIdentity, PresencePlan, Walk, plan_presence
from facho.polling.domain.onu_state import DownCause, OnuPlace, PortPlace
from facho.polling.domain.onu_table import NO_VALUE, OnuColumn, OnuTable, Reading
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions

logger = logging.getLogger(__name__)

MAX_SERIAL_LENGTH = Onu._meta.get_field("serial").max_length


def load_places(olt_id: int) -> list[Place]:
    """Return the places of ONUs that can be read, in walking order; missed ONUs are left out."""
    onus = Onu.objects.filter(olt_id=olt_id, is_present=True, misses=0)
    return [Place(*row) for row in onus.order_by(*PLACE).values_list(*PLACE)]


def has_onus(olt_id: int) -> bool:
    return Onu.objects.filter(olt_id=olt_id).exists()


def count_present(olt_id: int) -> int:
    return Onu.objects.filter(olt_id=olt_id, is_present=True).count()


def load_ports(olt_id: int) -> list[Place]:
    return [Place(*row) for row in PonPort.objects.filter(olt_id=olt_id).values_list("frame", "slot", "port")]


def is_storable(place: Place) -> bool:
    """Whether the numbers of a place fit our columns; no real chassis exceeds them."""
    return max(place.frame, place.slot, place.port) <= MAX_SMALL and place.onu <= MAX_INTEGER


# Twice what the largest chassis is sold for; absent ONUs count until they are deleted. An agent that goes beyond makes
# ONUs up.
MAX_ONUS = 32_768
MAX_PORTS = 2_048
_KNOWN_ONU = ("pon_port", "onu_id", "serial", "mac", "misses", "missed_at", "is_present", "absent_since")
_NEW_ONU = (
    *("olt", "pon_port", "onu_id", "serial", "mac", "is_present", "first_seen_at", "misses"),
    *("description", "name", "model", "firmware", "admin_state"),
)
_NEW_READING = ("onu", "run_state", "last_down_cause", "flap_changes")


def save_inventory(olt_id: int, walk: Walk, *, now: datetime) -> None:
    """Store an identity walk: new, moved, gone, returned and duplicate ONUs."""
    olt = Olt.objects.select_related("memory").only("vendor", "discovered_at", "memory").get(id=olt_id)
    memory = getattr(olt, "memory", None) or OltMemory(olt_id=olt_id)
    known = load_known(olt_id)
    walk = _within_bounds(olt_id, known, walk)
    plan = plan_presence(known, walk, now=now, is_first=memory.walked_at is None, held_since=memory.held_at)
    if plan.is_held:
        logger.warning("inventory.held olt=%s found=%s", olt_id, len(walk.found))
    places = [onu.place for onu in (*known, *plan.updated)] + [place for place, _ in plan.new]
    port_ids = _save_ports(olt, {place[:3] for place in places}, found={place[:3] for place in walk.found})
    _save_known({onu.onu_id: onu for onu in known}, plan.updated, port_ids, now)
    new_ids = _save_new(olt_id, plan, port_ids, now)
    save_events(olt_id, plan.events, port_ids=port_ids, new_ids=new_ids)
    _save_memory(memory, walk, is_held=plan.is_held, now=now)
    if walk.is_complete and olt.discovered_at is None:
        mark_discovered(olt_id, now)
    if plan.updated:
        end_abandoned_outages(olt_id, now=now)


def _within_bounds(olt_id: int, known: Sequence[KnownOnu], walk: Walk) -> Walk:
    """Drop new places beyond an OLT's maximum; a truncated walk proves no absence."""
    places, ports = {onu.place for onu in known}, {onu.place[:3] for onu in known}
    room, kept = MAX_ONUS - len(known), dict[OnuPlace, OnuIdentity]()
    for place, who in walk.found.items():
        if place not in places:
            if room <= 0 or (place[:3] not in ports and len(ports) >= MAX_PORTS):
                continue
            room -= 1
            ports.add(place[:3])
        kept[place] = who
    if len(kept) == len(walk.found):
        return walk
    logger.warning("inventory.too_large olt=%s left_out=%s", olt_id, len(walk.found) - len(kept))
    return replace(walk, found=kept, is_complete=False, complete_ports=frozenset())


def _save_ports(olt: Olt, places: set[PortPlace], *, found: set[PortPlace]) -> dict[PortPlace, int]:
    definition = load_definitions().get(olt.vendor)
    are_known = definition is None or definition.has_ports
    ports = {_place_of(port): port for port in PonPort.objects.filter(olt_id=olt.id).order_by()}
    missing = [
        PonPort(olt_id=olt.id, frame=frame, slot=slot, port=port, is_known=are_known)
        for frame, slot, port in sorted(places - ports.keys())
    ]
    PonPort.objects.bulk_create(missing)
    # An OLT may turn out to be of another family.
    changed = [ports[place].id for place in found & ports.keys() if ports[place].is_known is not are_known]
    if changed:
        PonPort.objects.filter(id__in=changed).update(is_known=are_known)
    return {_place_of(port): port.id for port in (*ports.values(), *missing)}


def _place_of(port: PonPort) -> PortPlace:
    return (port.frame, port.slot, port.port)


def _save_known(
    before: Mapping[int, KnownOnu], updated: Sequence[KnownOnu], port_ids: Mapping[PortPlace, int], now: datetime
) -> None:
    """Update rows, those leaving a place first: a place holds one present ONU."""
    moved = {onu.onu_id for onu in updated if onu.place != before[onu.onu_id].place}
    leaving = [onu for onu in updated if before[onu.onu_id].is_present and (onu.onu_id in moved or not onu.is_present)]
    update_values(Onu, ["is_present", "absent_since"], [(onu.onu_id, False, now) for onu in leaving])
    rows = []
    for onu in updated:
        who = (onu.serial, onu.mac, onu.misses, onu.missed_at)
        absent_since = None if onu.is_present else now
        rows.append((onu.onu_id, port_ids[onu.place[:3]], onu.place[3], *who, onu.is_present, absent_since))
    update_values(Onu, _KNOWN_ONU, rows)
    # Its former state is not its current one.
    returned = [onu.onu_id for onu in updated if onu.is_present and not before[onu.onu_id].is_present]
    update_values(
        OnuReading, ["run_state", "state_since"], [(onu_id, RunStateChoice.UNKNOWN.value, None) for onu_id in returned]
    )
    # The light differs at another place.
    update_values(
        OnuReading, ["power_reference_cdbm", "power_reference_at"], [(onu_id, None, None) for onu_id in moved]
    )


def _save_new(olt_id: int, plan: PresencePlan, port_ids: Mapping[PortPlace, int], now: datetime) -> dict[OnuPlace, int]:
    if not plan.new:
        return {}
    rows = [
        (olt_id, port_ids[place[:3]], place[3], serial, mac, True, now, 0, *[""] * 5)
        for place, (serial, mac) in plan.new
    ]
    insert_values(Onu, _NEW_ONU, rows)
    present = Onu.objects.filter(olt_id=olt_id, is_present=True).order_by().values_list(*PLACE, "id")
    ids = {(frame, slot, port, number): onu_id for frame, slot, port, number, onu_id in present}
    new_ids = {place: ids[place] for place, _ in plan.new}
    insert_values(
        OnuReading, _NEW_READING, [(onu_id, RunStateChoice.UNKNOWN.value, "", 0) for onu_id in new_ids.values()]
    )
    return new_ids


def _save_memory(memory: OltMemory, walk: Walk, *, is_held: bool, now: datetime) -> None:
    walked_at, held_at = memory.walked_at, memory.held_at
    if is_held:
        held_at = held_at or now
    elif walk.is_complete:
        walked_at, held_at = now, None
    row = (memory.olt_id, walked_at, held_at)
    insert_values(OltMemory, ["olt", "walked_at", "held_at"], [row], unique=["olt"])


# What the columns hold; a device may send any number.
MAX_SMALL, MAX_INTEGER = 32_767, 2_147_483_647
# Times outside this range come from a clock that was never set.
_EARLIEST, _LATEST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)

RX_POWER = "onu.rx_power"
DESCRIPTION, STATE, CAUSE = "onu.description", "onu.run_state", "onu.last_down_cause"
LAST_UP, LAST_DOWN = "onu.last_up", "onu.last_down"
_REPORTED = frozenset({DESCRIPTION, STATE, CAUSE, RX_POWER})
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
Pairs = Sequence[tuple[PresentOnu, Reading]]


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of an ONU or its reading; an unreadable value clears it only if it `forgets`.

    A column that `stays` is filled by readings but changed only by an inventory, which knows which ONU is where.
    """

    key: str
    name: str
    convert: Callable[[Any], Any]
    forgets: bool = False
    stays: bool = False

    def of(self, values: Mapping[str, object], stored: Any) -> Any:
        if self.key not in values or (self.stays and stored):
            return stored
        value = self.convert(values[self.key])
        return stored if value is None and not self.forgets else value


@dataclass(frozen=True, slots=True)
class Steps:
    """Whole steps of a quantity, as they are stored; what the column cannot hold is no value."""

    per_unit: int
    lowest: int
    highest: int

    def __call__(self, value: object) -> int | None:
        if not isinstance(value, int | float):
            return None
        steps = value * self.per_unit
        # Also refuses NaN.
        return round(steps) if self.lowest <= steps <= self.highest else None

    def of_all(self, numbers: Floats) -> list[int | None]:
        """Convert many, each as one would be."""
        steps = numbers * self.per_unit
        is_held = (steps >= self.lowest) & (steps <= self.highest)
        found: list[int | None] = np.rint(np.where(is_held, steps, 0)).astype(np.int64).tolist()
        for row in np.flatnonzero(~is_held).tolist():
            found[row] = None
        return found


def _text(max_length: int, value: object) -> str | None:
    return value[:max_length] if isinstance(value, str) else None


def _text_of(max_length: int, value: object) -> str | None:
    """Return a text only the ONU itself can report; while it is offline the old one stays."""
    return _text(max_length, value) or None


def _admin_state(value: object) -> str | None:
    return str(value) if value in AdminStates.values else None


def _moment(value: object) -> datetime | None:
    """Return a device time; without a zone it is taken as local."""
    if not isinstance(value, datetime) or not 1990 <= value.year < 2100:
        return None
    moment = make_aware(value) if value.tzinfo is None else value
    return moment if _EARLIEST <= moment < _LATEST else None


power_steps = Steps(100, -MAX_SMALL, MAX_SMALL)

ONU_COLUMNS = (
    # Of an ONU without a serial it is its identity.
    StoredColumn("onu.mac", "mac", partial(_text, 17), stays=True),
    StoredColumn("onu.name", "name", partial(_text, 255)),
    StoredColumn("onu.model", "model", partial(_text_of, 60)),
    StoredColumn("onu.sw_version", "firmware", partial(_text_of, 60)),
    StoredColumn("onu.admin_state", "admin_state", _admin_state),
)
READING_COLUMNS = (
    StoredColumn(LAST_UP, "last_up_at", _moment),
    StoredColumn(LAST_DOWN, "last_down_at", _moment),
    StoredColumn("onu.distance", "distance_m", Steps(1, 0, MAX_INTEGER)),
    StoredColumn(RX_POWER, "rx_power_cdbm", power_steps, forgets=True),
    StoredColumn("onu.tx_power", "tx_power_cdbm", power_steps, forgets=True),
    StoredColumn("onu.olt_rx_power", "olt_rx_power_cdbm", power_steps, forgets=True),
    StoredColumn("onu.temperature", "temperature_tenths", Steps(10, -MAX_SMALL, MAX_SMALL), forgets=True),
    StoredColumn("onu.voltage", "voltage_mv", Steps(1000, 0, MAX_INTEGER), forgets=True),
    StoredColumn("onu.bias", "bias_ua", Steps(1000, 0, MAX_INTEGER), forgets=True),
)


def save_table(olt_id: int, table: OnuTable, *, now: datetime, is_poll: bool = True) -> int:
    """Store what was read of present ONUs and the consequences; returns the number of changed ONUs.

    A read of single ONUs is not a poll: it does not start a new polling cycle.
    """
    poll = _PolledTable.of(table, load_onus(olt_id, now=now))
    blocks = load_blocks(olt_id, poll.by_oid)
    touched, changed_blocks = dict[str, Bools](), dict[str, RawBlock]()
    for oid, columns in poll.by_oid.items():
        raw = take(columns[0].raw, poll.rows)
        compared = compare(blocks.by_oid[oid], poll.onu_ids, raw, rule=_rule_of(columns), now=int(now.timestamp()))
        touched[oid] = compared.touched
        if compared.block is not None:
            changed_blocks[oid] = compared.block
    quantities = poll.quantities()
    single, plain = poll.divide(touched, quantities)
    pairs = _load_pairs(olt_id, poll, single)
    changes = PollChanges((), (), ())
    if not poll.columns.keys().isdisjoint(_REPORTED):
        changes = compare_poll(((onu.status, _reported(reading.values)) for onu, reading in pairs), now=now)
    changed = _save_status(pairs, changes) | _save_columns(poll.columns, pairs, now)
    of_quantities = _save_quantities(poll, plain, quantities, now)
    save_events(olt_id, changes.events, port_ids={onu.place[:3]: onu.pon_port_id for onu, _ in pairs})
    save_late_causes(changes.late_causes)
    save_blocks(olt_id, blocks, changed_blocks, onu_ids=poll.onus.ids, now=now)
    _append_history(poll, now)
    if STATE in poll.columns:
        follow_outages(olt_id, poll.onus, changes.statuses, now=now)
        if is_poll:
            insert_values(OltMemory, ["olt", "states_at"], [(olt_id, now)], unique=["olt"])
    return len(changed) + of_quantities


class _Quantity(NamedTuple):
    """A polled column that is stored in steps; entry i of both arrays is of the i-th ONU that was found."""

    stored: StoredColumn
    steps: Steps
    numbers: Floats
    came: Bools


@dataclass(frozen=True, slots=True, eq=False)
class _PolledTable:
    """A table next to the ONUs that it is about: row `rows[i]` of its columns is of ONU `here[i]`, ids ascending."""

    table: OnuTable
    onus: OltOnus
    rows: Ints
    here: Ints
    # Those with a key of which a value came.
    columns: Mapping[str, OnuColumn]
    by_oid: Mapping[str, Sequence[OnuColumn]]

    @classmethod
    def of(cls, table: OnuTable, onus: OltOnus) -> "_PolledTable":
        by_oid: dict[str, list[OnuColumn]] = {}
        for column in table.columns:
            by_oid.setdefault(column.oid, []).append(column)
        columns = {c.key: c for c in table.columns if c.key and (c.raw.tags != NO_VALUE).any()}
        return cls(table, onus, *onus.find(table.places), columns, by_oid)

    @property
    def onu_ids(self) -> Ints:
        return self.onus.ids[self.here]

    def quantities(self) -> "list[_Quantity]":
        """Return the polled columns that are stored as numbers and were decoded as such."""
        polled = ((stored, self.columns[stored.key]) for stored in _polled(READING_COLUMNS, self.columns))
        return [
            _Quantity(stored, stored.convert, column.numbers[self.rows], column.raw.tags[self.rows] != NO_VALUE)
            for stored, column in polled
            if isinstance(stored.convert, Steps) and column.numbers is not None
        ]

    def divide(self, touched: Mapping[str, Bools], quantities: "Sequence[_Quantity]") -> tuple[Bools, Bools]:
        """Return which ONUs become objects, and of which others only quantities may be new.

        Objects are those to which a rule may apply, and those of which a text or a time changed. `touched` says by OID
        whose values are others.
        """
        single, plain = self.judge(), np.zeros(len(self.rows), dtype=np.bool_)
        numeric = {quantity.stored.key for quantity in quantities}
        for key, column in self.columns.items():
            is_other = touched[column.oid]
            if column.stand_ins or column.counts is not None:
                # Other columns decide about its values, too.
                is_other = np.any(list(touched.values()), axis=0)
            if key in numeric:
                plain |= is_other
            elif key in _SINGLE_KEYS and not (key in (STATE, CAUSE) and column.codes is not None):
                single |= is_other
        for quantity in quantities:
            if quantity.stored.forgets:
                # Of what did not come, the value before is kept.
                single |= plain & ~quantity.came
        return single, plain & ~single

    def judge(self) -> Bools:
        """Return for which ONUs a rule may apply though their raw values are the same.

        Rules depend on the time too, on the columns that were read together, and on walks in between.
        """
        state = self._codes(STATE, STATE_CODES)
        is_said = state > 0
        speaks: Bools = is_said & (self.onus.is_flapping[self.here] | (state != self.onus.states[self.here]))
        cause = self._codes(CAUSE, CAUSE_CODES)
        says_cause = (cause > 0) & (cause != CAUSE_CODES[DownCause.UNKNOWN])
        speaks |= is_said & says_cause & (cause != self.onus.causes[self.here])
        if RX_POWER in self.columns:
            steps = numbers_of(self.columns[RX_POWER])[self.rows] * 100
            reference = self.onus.power_references[self.here]
            is_step = np.abs(np.rint(steps) - reference) >= POWER_STEP_CDBM
            speaks |= (np.abs(steps) <= MAX_SMALL) & (self.onus.states[self.here] != OFFLINE) & is_step
        return speaks

    def _codes(self, key: str, codes: Mapping[str, int]) -> Ints:
        column = self.columns.get(key)
        if column is None or column.codes is None:
            return np.zeros(len(self.rows), dtype=np.int64)
        # Behind the words stands what a missing one, -1, means.
        return np.array([*(codes.get(word, 0) for word in column.words), 0])[column.codes[self.rows]]


def numbers_of(column: OnuColumn) -> Floats:
    """Return the values of a column as numbers, states as their codes; NaN where there is none."""
    if column.codes is not None:
        return np.array([*(STATE_CODES.get(word, np.nan) for word in column.words), np.nan])[column.codes]
    return np.full(len(column.raw), np.nan) if column.numbers is None else column.numbers


def _rule_of(columns: Sequence[OnuColumn]) -> str:
    """Name all that turns a raw value into stored ones; a time without a zone is also read by ours."""
    rules = [f"{column.key}={column.rule}" for column in columns]
    is_zoned = any(column.key in (LAST_UP, LAST_DOWN) for column in columns)
    return " ".join([*rules, get_current_timezone_name()] if is_zoned else rules)


# Of what changed in these, an object is made; but states and causes that are words have been judged.
_SINGLE_KEYS = _REPORTED | {column.key for column in (*ONU_COLUMNS, *READING_COLUMNS)}


def _load_pairs(olt_id: int, poll: _PolledTable, touched: Bools) -> Pairs:
    """Load the touched ONUs with all that is stored of the polled columns, and decode what was read of them."""
    ids = poll.onu_ids[touched].tolist()
    if not ids:
        return []
    paths = [column.name for column in _polled(ONU_COLUMNS, poll.columns)]
    paths += [f"reading__{column.name}" for column in _polled(READING_COLUMNS, poll.columns)]
    onus = load_present(olt_id, paths, onu_ids=ids)
    readings = poll.table.readings(poll.rows[touched])
    return [(onu, reading) for reading in readings if (onu := onus.get(reading.place))]


def _reported(values: Mapping[str, object]) -> PolledOnu:
    description = values.get(DESCRIPTION)
    return PolledOnu(
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


def _polled(columns: Sequence[StoredColumn], keys: Mapping[str, object]) -> list[StoredColumn]:
    return [column for column in columns if column.key in keys]


def _save_columns(keys: Mapping[str, object], pairs: Pairs, now: datetime) -> set[int]:
    """Save the columns of the ONUs, then those of their readings, in the order in which they were loaded."""
    onu, reading = _polled(ONU_COLUMNS, keys), _polled(READING_COLUMNS, keys)
    of_onus = _changed(onu, 0, pairs)
    update_values(Onu, [column.name for column in onu], of_onus)
    of_readings = _changed(reading, len(onu), pairs)
    names = [column.name for column in reading]
    if "rx_power_cdbm" in names:
        names, of_readings = [*names, "power_at"], [(*row, now) for row in of_readings]
    update_values(OnuReading, names, of_readings)
    return {row[0] for row in chain(of_onus, of_readings)}


def _save_quantities(poll: _PolledTable, plain: Bools, quantities: Sequence[_Quantity], now: datetime) -> int:
    """Save the quantities of ONUs of which nothing else is new; returns how many were changed."""
    return update_numbers(
        OnuReading,
        poll.onu_ids[plain].tolist(),
        {quantity.stored.name: quantity.steps.of_all(quantity.numbers[plain]) for quantity in quantities},
        kept=[quantity.stored.name for quantity in quantities if not quantity.stored.forgets],
        stamps={"power_at": now} if RX_POWER in poll.columns else {},
    )


def _changed(columns: Sequence[StoredColumn], first: int, pairs: Pairs) -> list[tuple[Any, ...]]:
    rows = []
    for onu, reading in pairs:
        before = onu.columns[first : first + len(columns)]
        values = reading.values
        after = tuple([column.of(values, stored) for column, stored in zip(columns, before, strict=True)])
        if after != before:
            rows.append((onu.id, *after))
    return rows


def _append_history(poll: _PolledTable, now: datetime) -> None:
    wanted = {metric: poll.columns[key] for key, metric in _HISTORY.items() if key in poll.columns}
    if not wanted:
        return
    was_read = np.any([column.raw.tags[poll.rows] != NO_VALUE for column in wanted.values()], axis=0)
    if was_read.any():
        rows, here = poll.rows[was_read], poll.here[was_read]
        values = {int(metric): numbers_of(column)[rows] for metric, column in wanted.items()}
        append(now, Samples(poll.onus.ids[here], poll.onus.pon_port_ids[here], values))

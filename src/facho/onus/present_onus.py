"""The ONUs of an OLT: as arrays, which a poll is compared with, and as plain values, for rules about single ones."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from django.db import connection
from django.db.models import DateTimeField, Field, Model
from numpy.typing import NDArray

from facho.infrastructure.statements import open_cursor
from facho.onus.history_models import STATE_CODES, Ints
from facho.onus.models import Onu, OnuReading, Outage, PonPort
from facho.polling.domain.onu_events import FLAP_CHANGES, REFERENCE_HOLDS, OnuStatus
from facho.polling.domain.onu_presence import KnownOnu
from facho.polling.domain.onu_state import DownCause, OnuPlace, RunState
from facho.polling.domain.onu_table import NOWHERE, PLACE_BITS
from facho.polling.domain.outages import LIMITS, OutageScope

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
# More than this is most of an OLT, and more than SQLite takes in one statement.
MOST_IDS = 2_000
_STATES: Mapping[str, RunState] = {state.value: state for state in RunState}
_CAUSES: Mapping[str, DownCause] = {cause.value: cause for cause in DownCause}


class PresentOnu(NamedTuple):
    """A present ONU, its remembered state, and the requested columns in order."""

    id: int
    pon_port_id: int
    is_port_known: bool
    place: OnuPlace
    can_be_read: bool
    outage_id: int | None
    status: OnuStatus
    columns: tuple[Any, ...]


def load_known(olt_id: int) -> list[KnownOnu]:
    rows = Onu.objects.filter(olt_id=olt_id).order_by().values_list(*_KNOWN)
    return [KnownOnu(onu_id, tuple(row[:4]), *row[4:]) for onu_id, *row in rows]


def load_present(
    olt_id: int, columns: Sequence[str], *, onu_ids: Sequence[int] | None = None
) -> dict[OnuPlace, PresentOnu]:
    """Load the present ONUs of an OLT by place, with extra columns; given ids, those and perhaps others."""
    statement, times = _statement((*_PRESENT, *columns))
    parameters: list[int | str] = [olt_id]
    if onu_ids is not None and len(onu_ids) <= MOST_IDS:
        condition, ids = _is_one_of(onu_ids)
        statement, parameters = f"{statement} AND o.id {condition}", [*parameters, ids]
    with open_cursor() as cursor:
        cursor.execute(statement, parameters)
        rows = cursor.fetchall()
    if connection.vendor == "sqlite":
        rows = [_with_times(row, times) for row in rows]
    return {onu.place: onu for onu in map(_present, rows)}


def _is_one_of(onu_ids: Sequence[int]) -> tuple[str, str]:
    """Return a condition on ids and its one value: with a place for each id, every number of them is new SQL."""
    if connection.vendor == "postgresql":
        return "= ANY (%s::bigint[])", f"{{{','.join(map(str, onu_ids))}}}"
    return "IN (SELECT value FROM json_each(%s))", json.dumps(list(onu_ids))


@cache
def _statement(paths: tuple[str, ...]) -> tuple[str, tuple[int, ...]]:
    """Return the statement that loads these columns, and which of them are times; building a query set takes longer."""
    models: dict[str, tuple[str, type[Model]]] = {
        "pon_port": ("p", PonPort),
        "reading": ("r", OnuReading),
        "": ("o", Onu),
    }
    names, times = [], []
    for number, path in enumerate(paths):
        relation, _, name = path.rpartition("__")
        alias, model = models[relation]
        field: Field[Any, Any] = next(f for f in model._meta.concrete_fields if name in (f.name, f.attname))
        names.append(f"{alias}.{connection.ops.quote_name(str(field.column))}")
        times += [number] if isinstance(field, DateTimeField) else []
    statement = (
        f"SELECT {', '.join(names)} FROM {Onu._meta.db_table} o "  # noqa: S608 our own names
        f"JOIN {PonPort._meta.db_table} p ON p.id = o.pon_port_id "
        f"LEFT JOIN {OnuReading._meta.db_table} r ON r.onu_id = o.id WHERE o.olt_id = %s AND o.is_present"
    )
    return statement, tuple(times)


def _with_times(row: Sequence[Any], times: Iterable[int]) -> tuple[Any, ...]:
    """Read times as Django does from SQLite, which has none of its own."""
    values = list(row)
    for number in times:
        values[number] = connection.ops.convert_datetimefield_value(values[number], None, connection)  # type: ignore[attr-defined]  # SQLite's alone
    return tuple(values)


def state_of(value: object) -> RunState | None:
    return _STATES.get(value) if isinstance(value, str) else None


def cause_of(value: object) -> DownCause | None:
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
    return PresentOnu(onu_id, port_id, bool(is_port_known), place, not misses, outage_id, status, row[17:])


Bools = NDArray[np.bool_]
ONLINE, OFFLINE = STATE_CODES[RunState.ONLINE], STATE_CODES[RunState.OFFLINE]
# 0 is no cause.
CAUSE_CODES: Mapping[str, int] = MappingProxyType({cause.value: code for code, cause in enumerate(DownCause, start=1)})
# What was seen longer ago than this is no part of what is seen now, however seldom states are read.
LONGEST_CYCLE = timedelta(hours=1)
# A power reference that does not hold: so far from any light that all of it is a step.
NO_REFERENCE = -1_000_000
# Of packed places: what is above are port, slot and frame; slot and frame.
PORT_SHIFT = PLACE_BITS[3]
CARD_SHIFT = PLACE_BITS[2] + PORT_SHIFT
_IS_PRESENT, _READABLE, _KNOWN_PORT, _FLAPPING, _CHANGED_LATELY, _PORT_OUTAGE = (1 << bit for bit in range(6))


@dataclass(frozen=True, slots=True, eq=False)
class OltOnus:
    """Entry i of every array is of one ONU; places ascend. Those that left are there, with `is_present` False."""

    ids: Ints
    pon_port_ids: Ints
    # Packed; NOWHERE for one that no table can contain.
    places: Ints
    states: Ints
    causes: Ints
    # In 0.01 dBm; NO_REFERENCE where whatever is read becomes the new one.
    power_references: Ints
    flags: Ints

    @property
    def is_present(self) -> Bools:
        return self._has(_IS_PRESENT)

    @property
    def can_be_read(self) -> Bools:
        """Whether it is present, and was where it should be when the OLT was last walked."""
        return self._has(_IS_PRESENT | _READABLE)

    @property
    def has_known_port(self) -> Bools:
        return self._has(_IS_PRESENT | _KNOWN_PORT)

    @property
    def is_flapping(self) -> Bools:
        return self._has(_FLAPPING)

    @property
    def changed_lately(self) -> Bools:
        """Whether its state is so young that it may be part of an outage that begins now."""
        return self._has(_CHANGED_LATELY)

    @property
    def has_port_outage(self) -> bool:
        """Whether the OLT has an outage of a port or a card that is open, or ended so recently that it may continue."""
        return bool(self._has(_PORT_OUTAGE).any())

    @property
    def ports(self) -> Ints:
        return self.places >> PORT_SHIFT

    @property
    def cards(self) -> Ints:
        return self.places >> CARD_SHIFT

    def find(self, places: Ints) -> tuple[Ints, Ints]:
        """Find who can be read at these places: positions there, and here, in the order of the ONUs' ids."""
        (here,) = self.can_be_read.nonzero()
        if not here.size:
            return here, here
        at = np.minimum(np.searchsorted(self.places[here], places), len(here) - 1)
        (rows,) = (self.places[here[at]] == places).nonzero()
        onus = here[at[rows]]
        order = np.argsort(self.ids[onus])
        return rows[order], onus[order]

    def _has(self, flags: int) -> Bools:
        has: Bools = (self.flags & flags) == flags
        return has


def load_onus(olt_id: int, *, now: datetime) -> OltOnus:
    """Load all ONUs of an OLT; one statement."""
    holds = [now - REFERENCE_HOLDS, now + REFERENCE_HOLDS]
    lately = now - LONGEST_CYCLE * LIMITS.cycles
    adapt = connection.ops.adapt_datetimefield_value
    with open_cursor() as cursor:
        cursor.execute(_ONUS, [*map(adapt, holds), adapt(lately), olt_id, adapt(now - LIMITS.reopens_within), olt_id])
        rows: Sequence[Sequence[int]] = cursor.fetchall()
    width = len(OltOnus.__slots__)
    numbers = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * width).reshape(-1, width)
    return OltOnus(*np.ascontiguousarray(numbers[np.argsort(numbers[:, 2])].T))


def _code(column: str, codes: Mapping[str, int]) -> str:
    cases = (f"WHEN '{word}' THEN {code}" for word, code in codes.items() if code)
    return f"CASE {column} {' '.join(cases)} ELSE 0 END"


def _flag(condition: str, flag: int) -> str:
    return f"CASE WHEN {condition} THEN {flag} ELSE 0 END"


def _place() -> str:
    """Pack places as `pack_place` does."""
    shift, packed, fits = 0, [], []
    for part, bits in zip(("o.onu_id", "p.port", "p.slot", "p.frame"), reversed(PLACE_BITS), strict=True):
        packed.append(f"{part} * CAST({1 << shift} AS bigint)")
        fits.append(f"{part} < CAST({1 << bits} AS bigint)")
        shift += bits
    return f"CASE WHEN {' AND '.join(fits)} THEN {' + '.join(packed)} ELSE {NOWHERE} END"


_FLAGS = (
    _flag("o.is_present", _IS_PRESENT),
    _flag("o.misses = 0", _READABLE),
    _flag("p.is_known", _KNOWN_PORT),
    _flag(f"r.flap_changes > {FLAP_CHANGES}", _FLAPPING),
    _flag("r.state_since > %s", _CHANGED_LATELY),
    # Of the OLT, so asked once for all rows.
    _flag(
        f"EXISTS (SELECT 1 FROM {Outage._meta.db_table} WHERE olt_id = %s AND (ended_at IS NULL OR ended_at > %s) "  # noqa: S608 our own names
        f"AND scope IN ('{OutageScope.PON.value}', '{OutageScope.CARD.value}'))",
        _PORT_OUTAGE,
    ),
)
_ONUS = (
    f"SELECT o.id, o.pon_port_id, {_place()}, "  # noqa: S608 our own names and numbers
    f"{_code('r.run_state', STATE_CODES)}, {_code('r.last_down_cause', CAUSE_CODES)}, "
    "CASE WHEN r.power_reference_at > %s AND r.power_reference_at < %s AND r.power_reference_cdbm IS NOT NULL "
    f"THEN r.power_reference_cdbm ELSE {NO_REFERENCE} END, {' + '.join(_FLAGS)} "
    f"FROM {Onu._meta.db_table} o JOIN {PonPort._meta.db_table} p ON p.id = o.pon_port_id "
    f"LEFT JOIN {OnuReading._meta.db_table} r ON r.onu_id = o.id WHERE o.olt_id = %s"
)

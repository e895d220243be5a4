"""Tries a definition that is being written on a device: a few rows of every column, as one gentle operation.

Columns that the OLT has to ask each ONU for are read of a few ONUs only. Nothing of it is stored.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.onu_state import RunState
from facho.polling.domain.onu_table import NO_VALUE_TAGS
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Oid, VarBind
from facho.polling.snmp.columns import Row
from facho.polling.snmp.courier import MOST_TIMEOUTS
from facho.polling.snmp.errors import BudgetSpent, SnmpError, TooMuchData, WalkLoop
from facho.polling.snmp.walk import WalkOptions, walk_columns
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import RUN_STATE, Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.read_cost import longest_answer_seconds
from facho.polling.vendors.suspicion import ColumnVerdict, judge_column
from facho.polling.vendors.vocabulary import Cost, Scope, Typed
from facho.snmp_get.reading import EXPECTED, Devices, Reader, count_traffic, failure_of

# Enough to see the format of a column and whether its values differ.
DEFAULT_ROWS = 100
# A line card feels each of these.
DEFAULT_LIVE_ONUS = 8
DEFAULT_SECONDS = 120
# A device that leaves so many columns without an answer is not asked for the rest.
MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class TrialBounds:
    """How many rows of a column and ONUs of a live column are read, and how long the OLT may be held for it."""

    rows: int = DEFAULT_ROWS
    live_onus: int = DEFAULT_LIVE_ONUS
    seconds: float = DEFAULT_SECONDS


@dataclass(frozen=True, slots=True)
class ColumnTrial:
    """What came of one column; `has_more` if the device has more rows than were wanted."""

    verdict: ColumnVerdict
    has_more: bool = False
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """What every column made of the device, up to where `failure` or the time ended it."""

    columns: tuple[ColumnTrial, ...] = ()
    is_out_of_time: bool = False
    failure: Failure | None = None


NOT_TRIED = Trial(failure=Failure(FailureKind.CANCELLED, "the run was withdrawn before it began"))


@dataclass(slots=True)
class TrialCollector:
    """A collector whose answer is kept in `trial`, for the person who asked."""

    devices: Devices
    definition: Definition
    bounds: TrialBounds = TrialBounds()
    trial: Trial = NOT_TRIED

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read some of every column; a column that cannot be read does not hide the others."""
        try:
            async with self._within_known_timeouts(request).open(request, self.definition, control) as reader:
                deadline = asyncio.get_running_loop().time() + self.bounds.seconds
                reader.deadline = min(reader.deadline, deadline)
                self.trial = await _Tryout(reader, self.bounds).run()
        except EXPECTED as error:
            self.trial = Trial(failure=failure_of(error))
            return Collected(failure=self.trial.failure)
        values = sum(column.verdict.rows for column in self.trial.columns)
        summary = {"values": values, **count_traffic(reader.session)}
        return Collected(summary, self.trial.failure, was_heard=reader.session.traffic.bytes_received > 0)

    def _within_known_timeouts(self, request: CollectRequest) -> Devices:
        """Wait no longer than the OLT's own definition does: after a crash the OLT is kept closed as long as that."""
        known = load_definitions().get(request.vendor)
        longest = longest_answer_seconds(known, request, self.devices.max_timeout_seconds)
        return replace(self.devices, max_timeout_seconds=longest / MOST_TIMEOUTS)


def try_on_recording(definition: Definition, rows: Sequence[VarBind], bounds: TrialBounds) -> Trial:
    """Try a definition on what `facho record` wrote of a device; no packet is sent."""
    told: dict[str, dict[Oid, Typed]] = {}
    for column in map(definition.column, definition.naming_columns):
        decoded = ((suffix, column.decode(tag, raw).value) for suffix, tag, raw in _recorded(column, rows))
        told[column.key] = {suffix: value for suffix, value in decoded if value is not None}
    learned = definition.learn(told) if told else definition
    tried = []
    for column in learned.columns.values():
        sent = _recorded(column, rows)
        tried.append(ColumnTrial(judge_column(column, sent[: bounds.rows]), has_more=len(sent) > bounds.rows))
    return Trial(tuple(tried))


def _recorded(column: Column, rows: Sequence[VarBind]) -> list[Row]:
    size = len(column.oid)
    return [(oid[size:], tag, raw) for oid, tag, raw in rows if oid[:size] == column.oid and len(oid) > size]


class _Tryout:
    """One pass over the columns, those that ask ONUs at the end; `_rows` holds what came by OID."""

    def __init__(self, reader: Reader, bounds: TrialBounds) -> None:
        self._reader = reader
        self._bounds = bounds
        self._failures = 0
        self._done: dict[str, ColumnTrial] = {}
        self._rows: dict[str, list[Row]] = {}

    async def run(self) -> Trial:
        definition = self._reader.definition
        own = [column for column in definition.columns.values() if column.shares is None]
        for column in sorted(own, key=_is_live):
            try:
                error = await self._try(column)
            except TooMuchData as unable:
                return self._ended(unable)
            if isinstance(error, BudgetSpent) and self._reader.session.traffic.bytes_received:
                return replace(self._ended(None), is_out_of_time=True)
            if error and not self._reader.session.traffic.bytes_received:
                return Trial(failure=failure_of(error))
            if error and _is_withdrawn(error):
                return self._ended(error)
            self._failures += error is not None
            if self._failures >= MOST_FAILURES:
                return self._ended(error)
        return self._ended(None)

    async def _try(self, column: Column) -> SnmpError | None:
        """Read a column, and judge it and those that share its OID."""
        if _is_live(column):
            rows, has_more, error = await self._read_live(column)
        else:
            rows, has_more, error = await walk_column(self._reader, column, max_rows=self._bounds.rows)
        self._rows[column.key] = rows
        if error is not None and not rows and (isinstance(error, BudgetSpent) or _is_withdrawn(error)):
            return error
        failure = None if error is None else failure_of(error)
        for each in self._reader.definition.readings(column.key):
            self._done[each.key] = ColumnTrial(judge_column(each, rows), has_more, failure)
        return error

    async def _read_live(self, column: Column) -> tuple[list[Row], bool, SnmpError | None]:
        """Ask ONUs that are online; where none is known or none answers, read the first rows of the column."""
        online = self._online(column)
        if online:
            options = BatchOptions(
                max_varbinds=self._reader.definition.polling.max_varbinds,
                patience=self._reader.patience_for(column.cost),
                deadline=self._reader.deadline,
            )
            batch = await get_batched(self._reader.session, [[column.instance(place)] for place in online], options)
            answers = [answer[0] for answer in batch.answers if answer]
            rows = [(oid[len(column.oid) :], tag, raw) for oid, tag, raw in answers if tag not in NO_VALUE_TAGS]
            if rows or batch.failure:
                return rows, True, batch.failure
        return await walk_column(self._reader, column, max_rows=self._bounds.live_onus)

    def _online(self, column: Column) -> list[Place]:
        state = self._reader.definition.columns.get(RUN_STATE)
        if state is None or state.index.scope is not column.index.scope:
            return []
        rows = self._rows.get(state.shares or state.key, [])
        online = (suffix for suffix, tag, raw in rows if state.decode(tag, raw).value is RunState.ONLINE)
        places = (place for suffix in online if (place := state.index.decode(suffix)) is not None)
        return [place for place in places if _fits(column, place)][: self._bounds.live_onus]

    def _ended(self, error: SnmpError | None) -> Trial:
        columns = [self._done[key] for key in self._reader.definition.columns if key in self._done]
        return Trial(tuple(columns), failure=None if error is None else failure_of(error))


async def walk_column(reader: Reader, column: Column, *, max_rows: int) -> tuple[list[Row], bool, SnmpError | None]:
    """Return the first rows of a column, whether the device has more, and what broke the walk."""
    options = WalkOptions(
        max_repetitions=min(reader.definition.polling.max_repetitions, max_rows),
        patience=reader.patience_for(column.cost),
        deadline=reader.deadline,
        # The page that reaches the wanted rows is the last one.
        max_rows=max_rows - 1,
    )
    walk = await walk_columns(reader.session, [column.oid], options)
    [rows], [cursor] = walk.rows, walk.cursors
    is_enough = isinstance(walk.failure, WalkLoop) and len(rows) >= max_rows
    has_more = is_enough and not (cursor.is_done and len(rows) == max_rows)
    return list(islice(rows, max_rows)), has_more, None if is_enough else walk.failure


def _is_live(column: Column) -> bool:
    return column.cost is Cost.LIVE and column.index.scope is Scope.ONU


def _is_withdrawn(error: SnmpError) -> bool:
    return error.kind is FailureKind.CANCELLED


def _fits(column: Column, place: Place) -> bool:
    try:
        column.instance(place)
    except ValueError:
        return False
    return True

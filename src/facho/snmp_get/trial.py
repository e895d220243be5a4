"""Tries a definition that is being written on a device: a few rows of every column, as one gentle operation.

Columns that the OLT has to ask each ONU for are read of a few ONUs only. Nothing of it is stored.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.onu_state import RunState
from facho.polling.domain.onu_table import NO_VALUE_TAGS, raw_text
from facho.polling.snmp.ber import Oid, Tag, VarBind
from facho.polling.snmp.errors import BudgetSpent, SnmpError, TooMuchData, WalkLoop
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.session import MOST_TIMEOUTS
from facho.polling.snmp.walk import Row, WalkOptions, walk_columns
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import RUN_STATE, Definition, longest_answer_seconds
from facho.polling.vendors.index import Place, write_place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.review import ColumnVerdict, Doubt, Gap, Review, SentExample, Suspicion, judge_column
from facho.polling.vendors.vocabulary import Cost, Scope, Typed
from facho.snmp_get import reading

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

    devices: reading.Devices
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
        except reading.EXPECTED as error:
            self.trial = Trial(failure=reading.failure_of(error))
            return Collected(failure=self.trial.failure)
        values = sum(column.verdict.rows for column in self.trial.columns)
        summary = {"values": values, **reading.count_traffic(reader.session)}
        return Collected(summary, self.trial.failure, was_heard=reader.session.traffic.bytes_received > 0)

    def _within_known_timeouts(self, request: CollectRequest) -> reading.Devices:
        """Wait no longer than the OLT's own definition does: after a crash the OLT is kept closed as long as that."""
        known = load_definitions().get(request.vendor)
        longest = longest_answer_seconds(known, request, self.devices.max_timeout_seconds)
        return replace(self.devices, max_timeout_seconds=longest / MOST_TIMEOUTS)


def try_on_recording(definition: Definition, rows: Sequence[VarBind], bounds: TrialBounds) -> Trial:
    """Try a definition on what `facho record` wrote of a device; no packet is sent."""
    naming: dict[str, dict[Oid, Typed]] = {}
    for column in map(definition.column, definition.naming_columns):
        decoded = ((suffix, column.decode(tag, raw).value) for suffix, tag, raw in _recorded(column, rows))
        naming[column.key] = {suffix: value for suffix, value in decoded if value is not None}
    learned = definition.learn(naming) if naming else definition
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

    def __init__(self, reader: reading.Reader, bounds: TrialBounds) -> None:
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
                return Trial(failure=reading.failure_of(error))
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
        failure = None if error is None else reading.failure_of(error)
        for each in self._reader.definition.readings(column.key):
            self._done[each.key] = ColumnTrial(judge_column(each, rows), has_more, failure)
        return error

    async def _read_live(self, column: Column) -> tuple[list[Row], bool, SnmpError | None]:
        """Ask ONUs that are online; where none is known or none answers, read the first rows of the column."""
        online = self._online(column)
        if online:
            patience = self._reader.patience_for(column.cost)
            batch = await self._reader.get([[column.instance(place)] for place in online], patience)
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
        return [place for place in places if reading.fits(column, place)][: self._bounds.live_onus]

    def _ended(self, error: SnmpError | None) -> Trial:
        columns = [self._done[key] for key in self._reader.definition.columns if key in self._done]
        return Trial(tuple(columns), failure=reading.failure_of(error) if error else None)


async def walk_column(
    reader: reading.Reader, column: Column, *, max_rows: int
) -> tuple[list[Row], bool, SnmpError | None]:
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


GAPS: Mapping[Gap, Promise] = {
    Gap.RECOGNITION: gettext_lazy("no device is recognised as this family; it has to be chosen by hand"),
    Gap.IDENTITY: gettext_lazy("ONUs cannot be listed"),
    Gap.DISCOVERY: gettext_lazy("ONUs are never discovered"),
    Gap.RUN_STATE: gettext_lazy("ONUs are neither online nor offline, and their light is not read"),
    Gap.LAST_DOWN_CAUSE: gettext_lazy("the cause of an outage stays unknown"),
    Gap.DISTANCE: gettext_lazy("the distance of an ONU stays unknown"),
    Gap.DESCRIPTION: gettext_lazy("ONUs are shown without their description"),
    Gap.RX_POWER: gettext_lazy("there is no power at the ONU"),
    Gap.OLT_RX_POWER: gettext_lazy("there is no power at the OLT"),
    Gap.MODEL: gettext_lazy("the model of an ONU stays unknown"),
    Gap.SW_VERSION: gettext_lazy("the firmware of an ONU stays unknown"),
    Gap.ADMIN_STATE: gettext_lazy("an ONU that was switched off looks like one that failed"),
    Gap.WAITING: gettext_lazy("ONUs that wait for authorisation are not listed"),
}

SUSPICIONS: Mapping[Suspicion, Promise] = {
    Suspicion.NO_ROWS: gettext_lazy("no rows: wrong OID, closed view, or nothing to report"),
    Suspicion.NO_PLACE: gettext_lazy("rows without a place: the index does not fit"),
    Suspicion.WRONG_TYPE: gettext_lazy("another type than the column's"),
    Suspicion.UNKNOWN_ENUM: gettext_lazy("values without a word"),
    Suspicion.OUT_OF_RANGE: gettext_lazy("out of range"),
    Suspicion.MALFORMED: gettext_lazy("cannot be decoded"),
    Suspicion.ONLY_SENTINELS: gettext_lazy("only sentinels"),
    Suspicion.CONSTANT: gettext_lazy("the same value in every row"),
}


@dataclass(frozen=True, slots=True)
class TrialLine:
    column: str
    oid: str
    rows: str
    place: str
    type: str
    raw: str
    value: int | float | str | None
    unit: str
    suspicious: str


def describe_trial(trial: Trial) -> list[TrialLine]:
    """Write a line for each column that was read, in the order of the definition."""
    return [_line(column) for column in trial.columns]


def describe_gaps(review: Review) -> list[str]:
    """Write a line for each thing that the definition leaves out."""
    lines = [_("no %(what)s: %(effect)s") % {"what": gap.value, "effect": GAPS[gap]} for gap in review.gaps]
    if review.unread:
        lines.append(_("no job reads %s") % ", ".join(review.unread))
    return lines


def describe_recognition(definition: Definition, sys_object_id: str, sys_descr: str, trial: Trial) -> str:
    """Write whether a device that says this of itself, and had these rows, belongs to the family."""
    verdict = definition.recognise(sys_object_id, sys_descr)
    words = {"key": definition.key, "oid": sys_object_id}
    if not sys_object_id:
        return _("The OLT has not reported its sysObjectID yet, so its recognition cannot be checked.")
    if isinstance(verdict, Definition):
        return _("With sysObjectID %(oid)s the OLT is recognised as %(key)s.") % words
    if definition.may_be(sys_object_id) and _has_rows_below(definition.recognition.tables, trial):
        return _("With sysObjectID %(oid)s and the tables that have rows the OLT is recognised as %(key)s.") % words
    if verdict is None:
        return _("With sysObjectID %(oid)s the OLT is not recognised as %(key)s: check `recognition`.") % words
    words["sentence"] = _(verdict.sentence)
    return _("With sysObjectID %(oid)s the OLT is refused by %(key)s: %(sentence)s") % words


def _has_rows_below(tables: Sequence[Oid], trial: Trial) -> bool:
    """Return whether a column below one of the tables, or above it, had rows."""
    read = [tried.verdict.column.oid for tried in trial.columns if tried.verdict.rows]
    return any(oid[: len(table)] == table[: len(oid)] for oid in read for table in tables)


def _doubt(doubt: Doubt) -> str:
    text = str(SUSPICIONS[doubt.suspicion])
    if doubt.suspicion is Suspicion.NO_ROWS:
        return text
    values = ", ".join(raw_text(Tag.NULL, raw) for raw in doubt.examples)
    return f"{text} ({doubt.rows}x: {values})" if values else f"{text} ({doubt.rows}x)"


def _line(tried: ColumnTrial) -> TrialLine:
    verdict = tried.verdict
    column, example = verdict.column, verdict.example
    doubts = [_doubt(doubt) for doubt in verdict.doubts]
    if tried.failure is not None:
        # Nothing is known of rows that could not be asked for.
        doubts = [tried.failure.message, *(doubts if verdict.rows else ())]
    return TrialLine(
        column=column.key,
        oid=format_oid(column.oid),
        rows=f"{verdict.rows}+" if tried.has_more else str(verdict.rows),
        place=_place(tried, example) if example else "",
        type=reading.tag_name(example.tag) if example else "",
        raw=raw_text(example.tag, example.raw) if example else "",
        value=reading.plain_value(example.value) if example else None,
        unit=column.unit.value if column.unit else "",
        suspicious="; ".join(doubts),
    )


def _place(tried: ColumnTrial, example: SentExample) -> str:
    """Write the place of a row, or its index as it came."""
    if example.place is None:
        return f".{format_oid(example.suffix)}"
    return write_place(tried.verdict.column.index, example.place)

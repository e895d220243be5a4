"""Records an OLT: the system group and every table of its definition, as one gentle operation.

Columns that the OLT has to ask each ONU for are read of a few ONUs only: enough to show their format. Of an OLT that no
definition knows, the tables of its vendor are sampled: enough to write a definition.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import NamedTuple

from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.onu_state import RunState
from facho.polling.snmp.ber import Oid, Tag, VarBind
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.memory import PER_ROW
from facho.polling.snmp.oid import SYS_OBJECT_ID, SYSTEM
from facho.polling.snmp.target import CHEAP, Patience
from facho.polling.snmp.walk import Cursor, WalkOptions, walk_columns
from facho.polling.vendors.anonymise import anonymise, write_recording
from facho.polling.vendors.column import Column, instances
from facho.polling.vendors.definition import RUN_STATE, Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import GENERIC_KEY, load_definitions
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_get.reading import EXPECTED, Devices, Part, Reader, failure_of, fits

# A line card feels each of these; sixteen show every column, and mostly sit on one port.
LIVE_ONUS = 16
SYSTEM_GROUP = "system group"
LIVE_COLUMNS = "live columns"

_NOT_RECORDED = frozenset(
    map(int, (Tag.NULL, Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE, Tag.END_OF_MIB_VIEW)),
)
_HEADING = "# A device of the family {key}. Serials, names and addresses are made up.\n"
_UNKNOWN_HEADING = "# A device of no known family. Serials, names and addresses are made up.\n"
_CUT = "# It has more than was read.\n"

# An OID of a vendor begins with six numbers that all share, and the vendor's own.
_VENDOR_LENGTH = 7
_VENDORS = (4, 1)
VENDOR_TABLES = "tables of the vendor"
# A report that a person can look through and send by mail; a walk of a whole chassis would be a hundred times that.
MAX_UNKNOWN_ROWS = 20_000
MAX_UNKNOWN_BYTES = 4_000_000
MAX_UNKNOWN_SECONDS = 300.0
# So many rows show what a column holds.
SAMPLE_ROWS = 16
# Columns have small numbers; a larger one is part of an index.
_LARGEST_COLUMN = 1000


class RecordingStep(NamedTuple):
    """A finished part of the recording, to show progress."""

    part: str
    values: int
    number: int
    of: int


Progress = Callable[[RecordingStep], None]
ReadPart = Callable[[], Awaitable[SnmpError | None]]


@dataclass(frozen=True, slots=True)
class Recording:
    """What was read, or why not all of it. The rows tell everything about customers: give away the text only."""

    definition: Definition | None = None
    rows: tuple[VarBind, ...] = field(default=(), repr=False)
    failure: Failure | None = None
    # Below this OID only the device knows what the rows mean.
    unknown_below: Oid | None = None
    is_cut: bool = False

    def text(self, *, salt: bytes) -> str:
        """Write the recording, anonymised; ValueError when it is not complete."""
        if self.failure is not None or self.definition is None:
            raise ValueError("an incomplete recording is none")
        rows = anonymise(self.rows, self.definition, salt=salt, unknown_below=self.unknown_below)
        heading = _HEADING if self.definition.key != GENERIC_KEY else _UNKNOWN_HEADING
        return heading.format(key=self.definition.key) + (_CUT if self.is_cut else "") + write_recording(rows)


NOT_STARTED = Recording(failure=Failure(FailureKind.CANCELLED, "the run was withdrawn before it began"))


@dataclass(slots=True)
class RecordingCollector:
    """A collector whose answer is kept in `recording`, for the person who asked; nothing of it is stored."""

    devices: Devices
    progress: Progress
    with_live: bool = True
    recording: Recording = NOT_STARTED

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read everything that the definition names; a part that breaks ends the recording."""
        definition = load_definitions().get(request.vendor or GENERIC_KEY)
        if definition is None:
            return self._failed(Failure(FailureKind.MISSING, f"no vendor definition {request.vendor!r}"))
        try:
            async with self.devices.open(request, definition, control) as reader:
                tour = _Tour(reader, with_live=self.with_live)
                error = await tour.run(self.progress)
        except EXPECTED as unable:
            return self._failed(failure_of(unable))
        collected = reader.collected([Part({"values": len(tour.rows)}, error)])
        self.recording = Recording(
            definition, tuple(tour.rows.values()), collected.failure, tour.unknown_below, tour.is_cut
        )
        return collected

    def _failed(self, failure: Failure) -> Collected:
        self.recording = Recording(failure=failure)
        return Collected(failure=self.recording.failure)


class _Tour:
    """One pass over the device, part by part; `rows` holds what came so far."""

    def __init__(self, reader: Reader, *, with_live: bool) -> None:
        self.rows: dict[Oid, VarBind] = {}
        self.unknown_below: Oid | None = None
        self.is_cut = False
        self._reader = reader
        self._live = [column for column in reader.definition.columns.values() if _is_live(column)]
        self.parts: dict[str, ReadPart] = {SYSTEM_GROUP: self._read_system}
        for table in reader.definition.tables:
            cheap = [column.key for column in table.columns if column.shares is None and column not in self._live]
            if cheap:
                self.parts[table.name] = partial(self._read_table, cheap)
        if reader.definition.key == GENERIC_KEY:
            self.parts[VENDOR_TABLES] = self._sample_vendor
        if with_live and self._live:
            self.parts[LIVE_COLUMNS] = self._read_live

    async def run(self, progress: Progress) -> SnmpError | None:
        """Read part after part; return what stopped it, None when everything was read."""
        for number, (part, read) in enumerate(self.parts.items(), start=1):
            known = len(self.rows)
            error = await read()
            if error is not None:
                return error
            progress(RecordingStep(part, len(self.rows) - known, number, len(self.parts)))
        return None

    async def _read_system(self) -> SnmpError | None:
        options = WalkOptions(
            max_repetitions=self._reader.definition.polling.max_repetitions,
            patience=Patience(min(CHEAP.timeout_s, self._reader.max_timeout_seconds), CHEAP.tries),
            deadline=self._reader.deadline,
        )
        walk = await walk_columns(self._reader.session, [SYSTEM], options)
        self._add(((*SYSTEM, *suffix), tag, value) for suffix, tag, value in walk.rows[0])
        return walk.failure

    async def _read_table(self, keys: Sequence[str]) -> SnmpError | None:
        failure = None
        async for together, walk in self._reader.walk_each(keys):
            failure = walk.failure
            for key, rows in zip(together, walk.rows, strict=True):
                oid = self._reader.definition.column(key).oid
                self._add(((*oid, *suffix), tag, value) for suffix, tag, value in rows)
        return failure

    async def _sample_vendor(self) -> SnmpError | None:
        """Read some of each column below the vendor's number; where it has none, below those of all vendors."""
        _, _, object_id = self.rows.get(SYS_OBJECT_ID, ((), 0, ()))
        if not isinstance(object_id, tuple) or object_id[4 : _VENDOR_LENGTH - 1] != _VENDORS:
            return None
        for root in (object_id[:_VENDOR_LENGTH], object_id[: _VENDOR_LENGTH - 1]):
            known = len(self.rows)
            self.unknown_below = root
            error = await self._sample(root)
            if error is not None and error.kind is FailureKind.CANCELLED:
                return error
            # What came before it broke off is still worth a report.
            self.is_cut |= error is not None
            if len(self.rows) > known:
                break
        return None

    async def _sample(self, root: Oid) -> SnmpError | None:
        deadline = min(self._reader.deadline, asyncio.get_running_loop().time() + MAX_UNKNOWN_SECONDS)
        options = WalkOptions(
            max_repetitions=self._reader.definition.polling.max_repetitions,
            patience=Patience(min(CHEAP.timeout_s, self._reader.max_timeout_seconds), CHEAP.tries),
            deadline=deadline,
            max_rows=SAMPLE_ROWS - 1,
        )
        cursor, rows, size = Cursor(), 0, 0
        while not cursor.is_done:
            walk = await walk_columns(self._reader.session, [root], options, resume=[cursor])
            [page], [cursor] = walk.rows, walk.cursors
            self._add(((*root, *suffix), tag, value) for suffix, tag, value in page)
            rows += len(page)
            size += sum(len(value) for _, _, value in page if isinstance(value, bytes))
            # More rows than asked for are no failure: this walk goes from sample to sample.
            if walk.failure is not None and len(page) < SAMPLE_ROWS:
                return walk.failure
            if rows >= MAX_UNKNOWN_ROWS or size >= MAX_UNKNOWN_BYTES:
                self.is_cut = True
                break
            if not cursor.is_done:
                cursor = Cursor(next_sample([suffix for suffix, _, _ in page]))
        return None

    async def _read_live(self) -> SnmpError | None:
        """Ask a few ONUs that are online for all their live columns at once, one PON port after the other."""
        patience = self._reader.patience([column.key for column in self._live])
        for _, places in groupby(sorted(self._online())[:LIVE_ONUS], key=lambda place: place.pon):
            batch = await self._reader.get(instances(self._live, list(places)), patience)
            for answer in batch.answers:
                self._add(answer or ())
            if batch.failure is not None:
                return batch.failure
        return None

    def _online(self) -> Iterator[Place]:
        """Find in the rows read so far the ONUs that are online and fit every live column's index."""
        if not self._reader.definition.has_column(RUN_STATE):
            return
        state = self._reader.definition.column(RUN_STATE)
        for oid, tag, value in self.rows.values():
            if oid[: len(state.oid)] == state.oid and state.decode(tag, value).value is RunState.ONLINE:
                place = state.index.decode(oid[len(state.oid) :])
                if place is not None and all(fits(column, place) for column in self._live):
                    yield place

    def _add(self, rows: Iterable[VarBind]) -> None:
        known = len(self.rows)
        self.rows.update((row[0], row) for row in rows if row[1] not in _NOT_RECORDED)
        self._reader.session.memory.take(PER_ROW * (len(self.rows) - known))


def next_sample(suffixes: Sequence[Oid]) -> Oid:
    """Return where to continue after these rows: past their column, if they are all of one.

    Rows that differ in their last number only, or first in one that is too large for a column, are of one column.
    """
    last = suffixes[-1]
    recent = suffixes[-SAMPLE_ROWS:]
    shared = next((at for at, parts in enumerate(zip(*recent, strict=False)) if len(set(parts)) > 1), 0)
    is_index = shared == len(last) - 1 or min(suffix[shared] for suffix in recent) > _LARGEST_COLUMN
    if not shared or not is_index or len({len(suffix) for suffix in recent}) > 1:
        return last
    while shared and last[shared - 1] > _LARGEST_COLUMN:
        shared -= 1
    return (*last[: shared - 1], last[shared - 1] + 1) if shared else last


def _is_live(column: Column) -> bool:
    return column.cost is Cost.LIVE and column.index.scope is Scope.ONU and column.shares is None

"""The collector: opens a session with the OLT, reads what the node asks for, and reports failures as outcomes.

Columns that the OLT has to ask each ONU for are dear by the ONU, not by the column: they are read together, of ONUs
that are online right now only, and one PON port after the other. A discovery that finds no ONU fails if anything shows
that there are some (decision 56).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby

from facho.onus.store import MAX_SERIAL_LENGTH, count_present, is_storable, load_places, load_ports
from facho.polling.domain.collection import Collected, CollectRequest, Failure, FreeOid, Rows, RunControl, RunProgress
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.hints import HintedRead, ReadScope
from facho.polling.domain.onu_presence import MISPLACED_ROWS, OnuIdentity, Sign, Walk, clean_identity, find_evidence
from facho.polling.domain.onu_state import OnuPlace, PortPlace, RunState
from facho.polling.domain.onu_table import OnuTable, pack_place
from facho.polling.snmp.batch import BatchOptions, BatchResult, get_batched
from facho.polling.snmp.errors import MissingObject, OnusHidden, SnmpError, TooMuchData, WalkLoop
from facho.polling.snmp.oid import Oid, parse_oid
from facho.polling.snmp.walk import WalkResult
from facho.polling.vendors.column import Column, instances
from facho.polling.vendors.definition import MAC, RUN_STATE, SERIAL, Definition
from facho.polling.vendors.index import LearnedIndex, Place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_get.olt_values import Wanted, list_waiting, read_free_oids, read_olt_values
from facho.snmp_get.reading import EXPECTED, Devices, GatheredOnus, Part, Reader, failure_of, is_standard, subject_of

logger = logging.getLogger(__name__)

DOWN_CAUSE = "onu.last_down_cause"
# Columns that count all ONUs together, of PON ports or of the OLT, the best first.
PORT_COUNTS = (("pon.onu_count",), ("chassis.onu_count",), ("pon.onu_online", "pon.onu_offline"))
# As they are logged; pages have words of their own.
_REASONS = {
    Sign.UNPLACED: "the tables list {} ONUs, but none with a place: is the SNMP view closed?",
    Sign.COUNTED: "the PON ports count {} ONUs, the tables of ONUs are empty: is the SNMP view closed?",
    Sign.KNOWN: "{} ONUs were known, the tables of ONUs are empty: is the SNMP view closed?",
}


async def fetch_onus(reader: Reader, keys: Sequence[str], *, cursor: Mapping[str, int] | None = None) -> Part:
    """Ask for the columns of every present ONU; live columns only of those that are online.

    A live pass may give way at the border of a PON port; `cursor` is the port at which it continues.
    """
    coming = _ComingOnus(reader)
    gathered = coming.gathered
    known = await reader.database.run(load_places, reader.olt_id)
    is_live = reader.definition.cost_of(keys) is Cost.LIVE
    places, failure = await _online(reader, known, gathered) if is_live and known else (known, None)
    if is_live and places and not failure:
        keys = await _choose_answering(reader, keys)
    if cursor is not None:
        first = Place(cursor["frame"], cursor["slot"], cursor["port"])
        places = [place for place in places if place.pon >= first]
    # Cheap reads are one batch, live ones are split at the borders of PON ports.
    batches = [list(batch) for _, batch in groupby(places, key=lambda place: place.pon if is_live else None)]
    asked = unreadable = 0
    if not failure and places and not all(reader.definition.column(key).index.is_exact for key in keys):
        # Rows whose whole number is not known beforehand cannot be asked for.
        walk = await reader.walk(keys)
        gathered.add_walk(keys, walk.rows)
        failure, batches = walk.failure, []
        asked = 0 if failure else len(places)
    stopped_at: Place | None = None
    for number, batch_places in enumerate([] if failure else batches):
        reader.control.show(RunProgress(asked, len(places), number, len(batches)))
        if number and reader.control.wants_rows():
            await coming.hand_over()
        if number and await reader.control.should_yield():
            stopped_at = batch_places[0].pon
            break
        batch = await _fetch_batch(reader, keys, batch_places)
        gathered.add_batch(keys, batch_places, batch)
        unreadable += len(batch.failures)
        failure = batch.failure
        if failure:
            stopped_at = batch_places[0].pon
            break
        asked += len(batch_places)

    rows = coming.rest()
    counts = {"onus": asked, "unreadable": unreadable, **coming.rejects}
    # The next slice or try continues at the port where this one stopped.
    goes_on_at = cursor if failure else None
    if stopped_at is not None:
        goes_on_at = {"frame": stopped_at.frame, "slot": stopped_at.slot, "port": stopped_at.port}
    return Part(counts, failure, rows, goes_on_at, is_empty=not known)


class _ComingOnus:
    """What a pass over the ports of an OLT has brought, and not handed over yet."""

    def __init__(self, reader: Reader) -> None:
        self.gathered = GatheredOnus(reader.definition)
        self.rejects: Counter[str] = Counter()
        self._reader = reader
        self._is_begun = False

    async def hand_over(self) -> None:
        """Store what is finished. States go first and apart: next to them, ONUs not asked yet would show a gap."""
        rows = []
        if not self._is_begun:
            rows.append(Rows(table=self._table(self.gathered.split_off(_state_keys(self._reader.definition)))))
            self._is_begun = True
        rows.append(Rows(table=self._table(self.gathered), is_poll=False, learned_sizes=self._reader.new_sizes))
        self.gathered.clear()
        await self._reader.control.hand_over(*rows)

    def rest(self) -> Rows:
        """Return what is left for the end of the run."""
        return Rows(table=self._table(self.gathered), is_poll=not self._is_begun)

    def _table(self, gathered: GatheredOnus) -> OnuTable:
        table = gathered.table()
        self.rejects.update(table.rejects)
        return table


async def _online(
    reader: Reader, places: Sequence[Place], gathered: GatheredOnus
) -> tuple[list[Place], SnmpError | None]:
    """Find who is online now with one cheap walk, whose states are worth storing too, with why the others are not."""
    keys = reader.definition.guards(_state_keys(reader.definition))
    walk = await reader.walk(keys)
    gathered.add_walk(keys, walk.rows)
    is_online = _online_places(gathered.table())
    return [place for place in places if pack_place(*place) in is_online], walk.failure


def _state_keys(definition: Definition) -> list[str]:
    """Return the state, and its cause: it is in the same row and cheap, unless the OLT has to ask the ONU."""
    cause = definition.columns.get(DOWN_CAUSE)
    has_cheap_cause = cause is not None and not cause.shares and cause.cost is not Cost.LIVE
    return [RUN_STATE, DOWN_CAUSE] if has_cheap_cause else [RUN_STATE]


def _online_places(table: OnuTable) -> frozenset[int]:
    for column in table.columns:
        if column.key == RUN_STATE and column.codes is not None and RunState.ONLINE in column.words:
            return frozenset(table.places[column.codes == column.words.index(RunState.ONLINE)].tolist())
    return frozenset()


async def _choose_answering(reader: Reader, keys: Sequence[str]) -> Sequence[str]:
    """Of a column and those that stand in for it keep the ones with rows: reading all asks every ONU twice."""
    definition = reader.definition
    stand_ins = {key: rule.fills for key, rule in definition.row_rules.items() if key in keys and rule.fills in keys}
    wanted = list(dict.fromkeys(stand_ins.values()))
    if not wanted:
        return keys
    silent = set(wanted) - set(await reader.find_answering(wanted))
    return [key for key in keys if key not in silent and (key not in stand_ins or stand_ins[key] in silent)]


async def _fetch_batch(reader: Reader, keys: Sequence[str], places: Sequence[Place]) -> BatchResult:
    polling = reader.definition.polling
    subject, limit = subject_of("get", keys), subject_of("limit of get", keys)
    columns = [reader.definition.column(key) for key in keys]
    options = BatchOptions(
        # As many values as a page of a walk brings: that size was measured on real OLTs, and it adapts.
        max_varbinds=polling.max_repetitions * min(len(keys), polling.max_varbinds),
        learned_onus_per_packet=reader.learned.get(subject) or reader.sizes.get(subject),
        failing_onus_per_packet=reader.learned.get(limit) or reader.sizes.get(limit),
        first_onus_per_packet=reader.first_size(keys),
        patience=reader.patience(keys),
        deadline=reader.deadline,
    )
    batch = await get_batched(reader.session, instances(columns, places), options)
    reader.learn(subject, batch.learned_onus_per_packet)
    reader.learn(limit, batch.failing_onus_per_packet)
    return batch


async def walk_tables(reader: Reader, keys: Sequence[str]) -> Part:
    """Walk columns; the rows of a broken walk are kept, each of them is true."""
    gathered, failure = GatheredOnus(reader.definition), None
    async for together, walk in reader.walk_each(keys):
        gathered.add_walk(together, walk.rows)
        failure = walk.failure
    table = gathered.table()
    counts = {"onus": len(table), **_count_misplaced(reader, gathered, len(table)), **table.rejects}
    return Part(counts, failure, Rows(table=table))


def _count_misplaced(reader: Reader, gathered: GatheredOnus, onus: int) -> dict[str, int]:
    """Count the rows without a place if they are most of a table: the family numbers ONUs in another way then."""
    if gathered.misplaced <= onus:
        return {}
    logger.warning("onus.rows_without_place olt=%s rows=%s onus=%s", reader.olt_id, gathered.misplaced, onus)
    return {MISPLACED_ROWS: gathered.misplaced}


async def discover(reader: Reader, keys: Sequence[str]) -> Part:
    """Walk the columns of identity; where these list no ONU, the columns that list their places."""
    listing = await _list_onus(reader, keys)
    if listing.onus or not listing.walk.complete:
        return await _found(reader, listing)
    unplaced = listing.unplaced
    others = [column for column in reader.definition.columns_of(Scope.ONU) if not column.shares]
    costs = list(Cost)
    others.sort(key=lambda column: (column.key != RUN_STATE, costs.index(column.cost)))
    for key in await reader.find_answering([column.key for column in others if column.key not in keys]):
        other = await _list_onus(reader, tuple(dict.fromkeys((*reader.definition.listing_columns, key))))
        if other.onus or not other.walk.complete:
            return await _found(reader, other)
        unplaced = max(unplaced, other.unplaced)
    return await _found_none(reader, unplaced)


@dataclass(frozen=True, slots=True)
class _Listing:
    """The ONUs that a walk of columns lists; where it lists none, how many of its rows may be ONUs nevertheless."""

    keys: Sequence[str]
    walk: WalkResult
    gathered: GatheredOnus
    onus: dict[Place, OnuIdentity]
    unplaced: int


async def _list_onus(reader: Reader, keys: Sequence[str]) -> _Listing:
    walk, definition = await reader.walk(keys), reader.definition
    gathered = GatheredOnus(definition)
    gathered.add_walk(keys, walk.rows)
    readings = gathered.table().readings()
    onus = {
        place: OnuIdentity(str(of.values.get(SERIAL) or "")[:MAX_SERIAL_LENGTH], str(of.values.get(MAC) or ""))
        for of in readings
        if is_storable(place := Place(*of.place)) and definition.is_listed(of.values)
    }
    unplaced = 0
    if not onus:
        # A row that the OLT calls otherwise is an interface of another kind.
        learned = [index for index in definition.indexes.values() if isinstance(index, LearnedIndex) and index.forms]
        others = set[Oid]().union(*(reader.naming.get(index.learned_from, ()) for index in learned))
        columns = zip(map(definition.column, keys), walk.rows, strict=True)
        # A standard table has rows of other interfaces too.
        listing = [
            sent for column, sent in columns if isinstance(column.index, LearnedIndex) or not is_standard(column)
        ]
        rows = max((sum(suffix not in others for suffix, _, _ in sent) for sent in listing), default=0)
        unplaced = max(rows - sum(definition.is_free(of.values) for of in readings), 0)
    return _Listing(keys, walk, gathered, onus, unplaced)


async def _found(reader: Reader, listing: _Listing) -> Part:
    """Hand on the ONUs that every column was read of; rows whose index cannot be true are counted and left out.

    A walk that broke off has still read the ports to their end that it left behind.
    """
    walk, reach = listing.walk, _Reach(reader.definition, listing.keys, listing.walk)
    found: dict[OnuPlace, OnuIdentity] = {place: who for place, who in listing.onus.items() if reach.covers(place)}
    ports = () if walk.complete else await reader.database.run(load_ports, reader.olt_id)
    counts = {"onus": len(found), "refused_rows": max(max(map(len, walk.rows)) - len(listing.onus), 0)}
    counts |= _count_misplaced(reader, listing.gathered, len(listing.onus))
    nameless = sum(clean_identity(each) == OnuIdentity() for each in found.values())
    if nameless and (reader.definition.has_column(SERIAL) or reader.definition.has_column(MAC)):
        counts["by_place"] = nameless
        logger.warning("discovery.onus_by_place olt=%s onus=%s of=%s", reader.olt_id, nameless, len(found))
    return Part(counts, walk.failure, Rows(walk=Walk(found, walk.complete, reach.complete_ports(ports))))


async def _found_none(reader: Reader, unplaced: int) -> Part:
    """Fail if something shows that there are ONUs. Those known stay as they are, unless the OLT itself counts none."""
    counted, is_whole = (0, False) if unplaced else await _count_on_ports(reader)
    known = await reader.database.run(count_present, reader.olt_id)
    evidence = find_evidence(unplaced=unplaced, counted=counted, known=known)
    nobody = Rows(walk=Walk({}, is_complete=True))
    if evidence is None:
        return Part({"onus": 0, "refused_rows": 0}, None, nobody)
    failure = OnusHidden(_REASONS[evidence.sign].format(evidence.onus))
    logger.warning("discovery.onus_hidden olt=%s: %s", reader.olt_id, failure)
    is_proven = evidence.sign is Sign.KNOWN and is_whole
    return Part({"onus": 0, evidence.sign: evidence.onus}, failure, nobody if is_proven else Rows())


async def _count_on_ports(reader: Reader) -> tuple[int, bool]:
    """Return how many ONUs the PON ports count, and whether those are all: some count online ones only."""
    for keys in PORT_COUNTS:
        offered = [key for key in keys if reader.definition.has_column(key)]
        if not offered:
            continue
        walk = await reader.walk(offered)
        if walk.failure:
            raise walk.failure
        columns = [reader.definition.column(key) for key in offered]
        values = [
            column.decode(tag, raw).value
            for column, rows in zip(columns, walk.rows, strict=True)
            for _, tag, raw in rows
        ]
        onus = sum(int(value) for value in values if isinstance(value, int | float))
        if onus:
            return onus, True
        if len(offered) == len(keys) and all(map(len, walk.rows)):
            return 0, True
    return 0, False


class _Reach:
    """How far a walk came with all of its columns; agents answer in the order of the index."""

    def __init__(self, definition: Definition, keys: Sequence[str], walk: WalkResult) -> None:
        indexes = (definition.column(key).index for key in keys)
        pairs = zip(indexes, walk.cursors, strict=True)
        self._unfinished = [(index, cursor.after) for index, cursor in pairs if not cursor.is_done]
        self._is_in_order = not isinstance(walk.failure, WalkLoop)

    def covers(self, place: Place) -> bool:
        """Return whether every column was read at this place."""
        return all(_is_past(index.encode, place, after) for index, after in self._unfinished)

    def complete_ports(self, ports: Iterable[Place]) -> frozenset[PortPlace]:
        """Return those of the ports that were read to their end; rows out of order say that of none."""
        if not self._is_in_order:
            return frozenset()
        passed = (p for p in ports if all(_is_past(index.encode_end, p, after) for index, after in self._unfinished))
        return frozenset(port[:3] for port in passed)


def _is_past(encode: Callable[[Place], Oid], place: Place, after: Oid) -> bool:
    try:
        return encode(place) <= after
    except ValueError:
        # A place that another definition has numbered.
        return False


STATE = (RUN_STATE, DOWN_CAUSE, "onu.last_up", "onu.last_down", "onu.distance")
LIGHT = (
    "onu.rx_power",
    "onu.tx_power",
    "onu.olt_rx_power",
    "onu.temperature",
    "onu.voltage",
    "onu.bias",
)
# Somebody waits, and so do the polls of the OLT.
BUDGET_SECONDS = 30.0


async def fetch_onu(reader: Reader, place: Place) -> Part:
    """Ask for the state of the ONU at a place, and for its light only if it is there to answer."""
    gathered = GatheredOnus(reader.definition)
    deadline = min(reader.deadline, asyncio.get_running_loop().time() + BUDGET_SECONDS)
    failure = await _fetch(reader, _offered(reader.definition, STATE), place, gathered, deadline)
    states = {reading.values.get(RUN_STATE) for reading in gathered.table().readings()} - {None}
    if failure is None and not states:
        failure = MissingObject("the OLT says nothing of this ONU")
    if failure is None and RunState.ONLINE in states:
        failure = await _fetch(reader, _offered(reader.definition, LIGHT), place, gathered, deadline)
    table = gathered.table()
    counts = {"onus": int(failure is None), **table.rejects}
    return Part(counts, failure, Rows(table=table, is_poll=False))


async def fetch_states(reader: Reader, hint: HintedRead) -> Part:
    """Read the states that a notification of the OLT hints at: of one ONU, of a port, or of all by a walk."""
    keys = reader.definition.companions(_state_keys(reader.definition))
    known = await reader.database.run(load_places, reader.olt_id)
    port = Place(hint.frame, hint.slot, hint.port)
    places = [place for place in known if place.pon == port and hint.onu in (None, place.onu)]
    is_askable = all(reader.definition.column(key).index.is_exact for key in keys)
    gathered = GatheredOnus(reader.definition)
    if hint.scope is ReadScope.STATES or not is_askable or not places:
        # A place that is not known may be one that the OLT numbers otherwise in its notifications.
        walk = await reader.walk(keys)
        gathered.add_walk(keys, walk.rows)
        failure = walk.failure
    else:
        batch = await _fetch_batch(reader, keys, places)
        gathered.add_batch(keys, places, batch)
        failure = batch.failure
    table = gathered.table()
    return Part({"onus": len(table), **table.rejects}, failure, Rows(table=table, is_poll=False), is_empty=not known)


def _offered(definition: Definition, keys: Sequence[str]) -> list[list[str]]:
    """Return which of the columns the family has, those that it asks the ONU for apart: they are waited for longer."""
    columns = [definition.columns[key] for key in keys if key in definition.columns]
    own = definition.companions(column.key for column in columns)
    live = [key for key in own if definition.column(key).cost is Cost.LIVE]
    return [keys for keys in ([key for key in own if key not in live], live) if keys]


async def _fetch(
    reader: Reader, groups: Sequence[Sequence[str]], place: Place, gathered: GatheredOnus, deadline: float
) -> SnmpError | None:
    """Get columns of one ONU, a packet for each group, until one fails."""
    for keys in groups:
        oids = [reader.definition.column(key).instance(place) for key in keys]
        options = BatchOptions(patience=reader.patience(keys), deadline=deadline)
        batch = await get_batched(reader.session, [oids], options)
        gathered.add_batch(keys, [place], batch)
        if failure := batch.failure or batch.failures.get(0):
            return failure
    return None


class CannotRead(ValueError):
    """A job that means nothing on this family; its text says what of it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The keys of columns about ONUs, waiting ONUs and the OLT itself, and the OIDs that no column stands for.

    `identity` is what a discovery walks, and empty for everything else.
    """

    identity: tuple[str, ...] = ()
    onus: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    olt: tuple[str, ...] = ()
    oids: tuple[Wanted, ...] = ()


def plan_reading(definition: Definition, request: CollectRequest) -> Plan:
    """Find out what to read; an OID of a column is read as that column. CannotRead if there is nothing to read.

    What is asked of a single ONU follows from its state.
    """
    if request.onu is not None or request.hint is not None:
        return Plan()
    # Of two columns of one OID the first is meant: it is about ONUs.
    by_oid = {column.oid: column for column in [*definition.columns.values()][::-1] if not column.shares}
    wanted = [_wanted(free) for free in request.oids]
    for key in request.columns:
        if not definition.has_column(key):
            raise CannotRead(f"{definition.key} has no column {key!r}")
    columns = [definition.column(key) for key in request.columns]
    columns += [by_oid[each.oid] for each in wanted if each.oid in by_oid]
    is_discovery = request.query_type is QueryType.DISCOVERY
    plan = Plan(
        identity=definition.companions(definition.identity_columns(request.columns)) if is_discovery else (),
        onus=definition.companions(_keys(columns, Scope.ONU)),
        waiting=_keys(columns, Scope.AUTOFIND),
        olt=_keys(columns, *(scope for scope in Scope if scope not in (Scope.ONU, Scope.AUTOFIND))),
        oids=tuple(each for each in wanted if each.oid not in by_oid),
    )
    if is_discovery and not plan.identity:
        raise CannotRead(f"{definition.key} has no column that tells ONUs apart")
    if not (columns or plan.oids or is_discovery):
        raise CannotRead("the job reads nothing")
    return plan


def _wanted(free: FreeOid) -> Wanted:
    try:
        return Wanted(parse_oid(free.oid), free.name, free.unit)
    except ValueError as error:
        raise CannotRead(f"{free.oid!r} is no OID") from error


def _keys(columns: list[Column], *scopes: Scope) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column.key for column in columns if column.index.scope in scopes))


@dataclass(frozen=True, slots=True)
class OltCollector:
    """Collects from any OLT whose vendor has a definition."""

    devices: Devices

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read what is asked; what the device does wrong is a Failure in the answer."""
        definition = load_definitions().get(request.vendor)
        if definition is None:
            return _failed(FailureKind.MISSING, f"no vendor definition {request.vendor!r}")
        try:
            # Before a session is opened: a job that means nothing here sends nothing.
            plan = plan_reading(definition, request)
            async with self.devices.open(request, definition, control) as reader:
                return reader.collected(await _read(reader, plan, request))
        except CannotRead as error:
            return _failed(FailureKind.MISSING, str(error))
        except EXPECTED as error:
            return Collected(failure=failure_of(error))


async def _read(reader: Reader, plan: Plan, request: CollectRequest) -> list[Part]:
    """Read part after part, until one of them fails or gives way."""
    parts: list[Part] = []
    try:
        async with aclosing(_parts(reader, plan, request)) as coming:
            async for part in coming:
                parts.append(part)
                if part.is_end:
                    break
    except TooMuchData as error:
        parts.append(Part({}, error.with_traceback(None)))
    return parts


async def _parts(reader: Reader, plan: Plan, request: CollectRequest) -> AsyncGenerator[Part, None]:
    """Choose how each thing is read: only ONUs are known beforehand, so only they can be asked for one by one."""
    if request.onu is not None:
        yield await fetch_onu(reader, Place(*request.onu))
    elif request.hint is not None:
        yield await fetch_states(reader, request.hint)
    elif plan.identity:
        yield await discover(reader, plan.identity)
    elif plan.onus and request.query_type is QueryType.GET:
        yield await fetch_onus(reader, plan.onus, cursor=request.cursor)
    elif plan.onus:
        yield await walk_tables(reader, plan.onus)
    if plan.waiting:
        yield await list_waiting(reader, plan.waiting)
    if plan.olt:
        yield await read_olt_values(reader, plan.olt)
    if plan.oids:
        yield await read_free_oids(reader, plan.oids)


def _failed(kind: FailureKind, message: str) -> Collected:
    return Collected(failure=Failure(kind, message))

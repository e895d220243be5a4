"""Reads known ONUs in shared packets, all wanted columns of an ONU side by side: the internal pollers of a run.

Columns that the OLT has to ask each ONU for are dear by the ONU, not by the column: they are read fused, of ONUs
that are online right now only, and one PON port after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from facho.onus.store import load_places, save_readings
from facho.polling.domain.onu_state import RunState
from facho.polling.snmp.batch import BatchOptions, BatchResult, get_batched
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_get.reading import Gathered, Part, Reader, gather_walk, subject_of

RUN_STATE, DOWN_CAUSE = "onu.run_state", "onu.last_down_cause"


async def fetch_onus(reader: Reader, keys: Sequence[str], *, cursor: Mapping[str, int] | None = None) -> Part:
    """Ask for the columns of every present ONU; live columns only of those that are online.

    A live pass may give way at the border of a PON port; `cursor` is the port at which it goes on.
    """
    gathered = Gathered()
    places, failure = await _places(reader, keys, gathered)
    stopped_at: Place | None = None
    asked = unreadable = 0
    batches = [] if failure else list(_batches(reader, keys, _from(places, cursor)))
    for number, batch_places in enumerate(batches):
        if number and await reader.control.should_yield():
            stopped_at = batch_places[0].pon
            break
        batch = await _fetch(reader, keys, batch_places)
        gather_batch(reader, keys, batch_places, batch, gathered)
        unreadable += len(batch.failures)
        failure = batch.failure
        if failure:
            stopped_at = batch_places[0].pon
            break
        asked += len(batch_places)

    def save(now: datetime) -> None:
        save_readings(reader.olt_id, gathered.readings(), now=now)

    counts = {"onus": asked, "unreadable": unreadable, **gathered.rejects}
    # The next slice or try goes on at the port where this one stopped.
    return Part(counts, failure, save, _cursor(stopped_at) or (cursor if failure else None))


def _from(places: Sequence[Place], cursor: Mapping[str, int] | None) -> Sequence[Place]:
    if cursor is None:
        return places
    first = Place(cursor["frame"], cursor["slot"], cursor["port"])
    return [place for place in places if place.pon >= first]


def _cursor(port: Place | None) -> dict[str, int] | None:
    return None if port is None else {"frame": port.frame, "slot": port.slot, "port": port.port}


async def _places(reader: Reader, keys: Sequence[str], gathered: Gathered) -> tuple[list[Place], SnmpError | None]:
    places = await reader.database.run(load_places, reader.olt_id)
    if reader.definition.cost_of(keys) is not Cost.LIVE or not places:
        return places, None
    return await _online(reader, places, gathered)


async def _online(reader: Reader, places: Sequence[Place], gathered: Gathered) -> tuple[list[Place], SnmpError | None]:
    """Find who is online now with one cheap walk, whose states are worth storing too, with why the others are not."""
    keys = _state_keys(reader.definition)
    walk = await reader.walk(keys)
    gather_walk(reader.definition, keys, walk, gathered)
    is_online = {found.place for found in gathered.readings() if found.values.get(RUN_STATE) is RunState.ONLINE}
    return [place for place in places if place in is_online], walk.failure


def _state_keys(definition: Definition) -> list[str]:
    """Return the columns of a state; its cause stands in the same row and costs hardly more, unless it is asked for."""
    causes = [column for key, column in definition.columns.items() if key == DOWN_CAUSE and not column.shares]
    return [RUN_STATE, *(column.key for column in causes if column.cost is not Cost.LIVE)]


def _batches(reader: Reader, keys: Sequence[str], places: Sequence[Place]) -> Iterator[list[Place]]:
    """Split live reads at the borders of PON ports; cheap ones are one batch."""
    if reader.definition.cost_of(keys) is Cost.LIVE:
        yield from (list(of_port) for _, of_port in groupby(places, key=lambda place: place.pon))
    elif places:
        yield list(places)


async def _fetch(reader: Reader, keys: Sequence[str], places: Sequence[Place]) -> BatchResult:
    polling = reader.definition.polling
    subject = subject_of("get", keys)
    columns = [reader.definition.column(key) for key in keys]
    options = BatchOptions(
        # As many values as a page of a walk brings: that size was measured on real OLTs, and it adapts.
        max_varbinds=polling.max_repetitions * min(len(keys), polling.max_varbinds),
        learned_onus_per_packet=reader.learned.get(subject) or reader.sizes.get(subject),
        patience=reader.patience(keys),
        deadline=reader.deadline,
    )
    batch = await get_batched(reader.session, [[column.instance(p) for column in columns] for p in places], options)
    reader.learn(subject, batch.learned_onus_per_packet)
    return batch


def gather_batch(
    reader: Reader, keys: Sequence[str], places: Sequence[Place], batch: BatchResult, gathered: Gathered
) -> None:
    """Decode what a batch brought of the ONUs at these places."""
    columns = [reader.definition.readings(key) for key in keys]
    oids = [format_oid(shared[0].oid) for shared in columns]
    for place, answer in zip(places, batch.answers, strict=True):
        for shared, oid, (_, tag, value) in zip(columns, oids, answer or (), strict=False):
            gathered.add(shared, oid, place, tag, value)

"""Reads known ONUs one by one in shared packets: all wanted columns of an ONU side by side."""

from collections.abc import Sequence
from datetime import datetime

from facho.onus.store import load_places, save_readings
from facho.polling.domain.collection import Collected
from facho.polling.snmp.errors import SnmpError
from facho.polling.vendors.column import Column
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_get.reading import Gathered, Reader


async def fetch_onus(reader: Reader, keys: Sequence[str]) -> Collected:
    """Ask for the columns of every present ONU; live columns only of those that are online."""
    is_live = reader.definition.cost_of(keys) is Cost.LIVE
    places = await reader.database.run(load_places, reader.olt_id, only_online=is_live)
    columns = [reader.definition.readings(key) for key in keys]
    gathered = Gathered()
    failure: SnmpError | None = None
    step = max(reader.definition.polling.max_varbinds // len(columns), 1)
    for start in range(0, len(places), step):
        try:
            await _fetch(reader, columns, places[start : start + step], gathered)
        except SnmpError as error:
            failure = error
            break

    def save(now: datetime) -> None:
        save_readings(reader.olt_id, gathered.readings(), now=now)

    return reader.collected({"onus": len(gathered.values), **gathered.rejects}, failure, save)


async def _fetch(
    reader: Reader, columns: Sequence[tuple[Column, ...]], places: Sequence[Place], gathered: Gathered
) -> None:
    wanted = [(shared, place) for place in places for shared in columns]
    varbinds = await reader.session.get(
        [shared[0].instance(place) for shared, place in wanted],
        patience=reader.patience(shared[0].key for shared in columns),
        deadline=reader.deadline,
    )
    for (shared, place), (_, tag, value) in zip(wanted, varbinds, strict=True):
        gathered.add(shared, place, tag, value)

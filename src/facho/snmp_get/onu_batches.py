"""Reads known ONUs in shared packets, all wanted columns of an ONU side by side: the internal pollers of a run."""

from collections.abc import Sequence
from datetime import datetime

from facho.onus.store import load_places, save_readings
from facho.polling.domain.collection import Collected
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.vendors.column import Column
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_get.reading import Gathered, Reader


async def fetch_onus(reader: Reader, keys: Sequence[str]) -> Collected:
    """Ask for the columns of every present ONU; live columns only of those that are online."""
    columns = [reader.definition.readings(key) for key in keys]
    places = await _places(reader, columns)
    batch = await get_batched(
        reader.session,
        [[shared[0].instance(place) for shared in columns] for place in places],
        BatchOptions(
            max_varbinds=reader.definition.polling.max_varbinds,
            patience=reader.patience(keys),
            deadline=reader.deadline,
        ),
    )
    gathered = Gathered()
    for place, answer in zip(places, batch.answers, strict=True):
        for shared, (_, tag, value) in zip(columns, answer or (), strict=False):
            gathered.add(shared, place, tag, value)

    def save(now: datetime) -> None:
        save_readings(reader.olt_id, gathered.readings(), now=now)

    counts = {"onus": len(gathered.values), "unreadable": len(batch.failures), **gathered.rejects}
    return reader.collected(counts, batch.failure, save)


async def _places(reader: Reader, columns: Sequence[tuple[Column, ...]]) -> list[Place]:
    if all(shared[0].index.scope is Scope.SCALAR for shared in columns):
        return [Place()]
    is_live = any(shared[0].cost is Cost.LIVE for shared in columns)
    return await reader.database.run(load_places, reader.olt_id, only_online=is_live)

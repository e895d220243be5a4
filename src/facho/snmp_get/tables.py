"""Reads columns by walking them side by side: cheap for what the OLT itself knows."""

from collections.abc import Sequence
from datetime import datetime

from facho.onus.store import save_readings
from facho.polling.domain.collection import Collected
from facho.polling.snmp.walk import walk_columns
from facho.snmp_get.reading import Gathered, Reader


async def walk_tables(reader: Reader, keys: Sequence[str]) -> Collected:
    """Walk all columns at once; the rows of a broken walk are kept, each of them is true."""
    columns = [reader.definition.readings(key) for key in keys]
    walk = await walk_columns(reader.session, [shared[0].oid for shared in columns], reader.walk_options(keys))
    gathered = Gathered()
    for shared, rows in zip(columns, walk.rows, strict=True):
        for suffix, tag, value in rows:
            place = shared[0].index.decode(suffix)
            if place is not None:
                gathered.add(shared, place, tag, value)

    def save(now: datetime) -> None:
        save_readings(reader.olt_id, gathered.readings(), now=now)

    return reader.collected({"onus": len(gathered.values), **gathered.rejects}, walk.failure, save)

"""Reads columns of ONUs by walking them side by side: cheap for what the OLT itself knows."""

from collections.abc import Sequence
from datetime import datetime

from facho.onus.store import save_readings
from facho.snmp_get.reading import Gathered, Part, Reader, gather_walk


async def walk_tables(reader: Reader, keys: Sequence[str]) -> Part:
    """Walk as many columns at once as the family takes; the rows of a broken walk are kept, each of them is true."""
    gathered, failure = Gathered(), None
    width = reader.definition.polling.max_varbinds
    for start in range(0, len(keys), width):
        together = keys[start : start + width]
        walk = await reader.walk(together)
        gather_walk(reader.definition, together, walk, gathered)
        if failure := walk.failure:
            break

    def save(now: datetime) -> None:
        save_readings(reader.olt_id, gathered.readings(), now=now)

    return Part({"onus": len(gathered.by_place), **gathered.rejects}, failure, save)

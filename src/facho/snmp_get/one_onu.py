"""Reads the state of one ONU and, while it is online, its light: what a person wants to know now."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from facho.onus.store import save_readings
from facho.polling.domain.onu_state import RunState
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.errors import MissingObject, SnmpError
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_get.onu_batches import DOWN_CAUSE, RUN_STATE, gather_batch
from facho.snmp_get.reading import Gathered, Part, Reader

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
    gathered = Gathered()
    deadline = min(reader.deadline, asyncio.get_running_loop().time() + BUDGET_SECONDS)
    failure = await _fetch(reader, _offered(reader.definition, STATE), place, gathered, deadline)
    state = gathered.by_place[place].values.get(RUN_STATE) if place in gathered.by_place else None
    if failure is None and state is None:
        failure = MissingObject("the OLT says nothing of this ONU")
    if failure is None and state is RunState.ONLINE:
        failure = await _fetch(reader, _offered(reader.definition, LIGHT), place, gathered, deadline)

    def save(now: datetime) -> None:
        save_readings(reader.olt_id, gathered.readings(), now=now, is_poll=False)

    return Part({"onus": int(failure is None), **gathered.rejects}, failure, save)


def _offered(definition: Definition, keys: Sequence[str]) -> list[list[str]]:
    """Return which of the columns the family has, those that it asks the ONU for apart: they are waited for longer."""
    columns = [definition.columns[key] for key in keys if key in definition.columns]
    own = dict.fromkeys(column.shares or column.key for column in columns)
    live = [key for key in own if definition.column(key).cost is Cost.LIVE]
    return [keys for keys in ([key for key in own if key not in live], live) if keys]


async def _fetch(
    reader: Reader, groups: Sequence[Sequence[str]], place: Place, gathered: Gathered, deadline: float
) -> SnmpError | None:
    """Get columns of one ONU, a packet for each group, until one fails."""
    for keys in groups:
        oids = [reader.definition.column(key).instance(place) for key in keys]
        options = BatchOptions(patience=reader.patience(keys), deadline=deadline)
        batch = await get_batched(reader.session, [oids], options)
        gather_batch(reader, keys, [place], batch, gathered)
        if failure := batch.failure or batch.failures.get(0):
            return failure
    return None

"""Lists the ONUs that an OLT has found and nobody has authorised yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from facho.hosts.waiting_onus import MAX_MODEL_LENGTH, MAX_NUMBER, MAX_SERIAL_LENGTH, Waiting, save_waiting
from facho.polling.snmp.oid import Oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import AUTOFIND_SERIAL
from facho.polling.vendors.values import Typed
from facho.snmp_get.reading import Part, Reader

SERIAL, MODEL = AUTOFIND_SERIAL, "autofind.model"
# Who has no serial is listed by its hardware address.
MAC = "autofind.mac"
# Where a family numbers the rows one after the other, these columns tell the port.
PORT_COLUMNS = {"slot": "autofind.slot", "port": "autofind.port"}

Row = Mapping[str, Typed | None]


async def list_waiting(reader: Reader, keys: Sequence[str]) -> Part:
    """Walk the table side by side; rows of nobody or with a place that cannot be true are counted."""
    table = _Table.of(reader.definition)
    wanted = [SERIAL, *table.port_columns.values(), *(key for key in keys if key == MODEL)]
    walk = await reader.walk(wanted)
    rows: dict[Oid, dict[str, Typed | None]] = {}
    for key, cells in zip(wanted, walk.rows, strict=True):
        columns = reader.definition.readings(key)
        for suffix, tag, raw in cells:
            row = rows.setdefault(suffix, {})
            row.update((column.key, column.decode(tag, raw).value) for column in columns)
    found = [waiting for suffix, row in rows.items() if (waiting := table.read(suffix, row))]

    def save(now: datetime) -> None:
        save_waiting(reader.olt_id, found, is_complete=walk.complete, now=now)

    return Part({"waiting_onus": len(found), "refused_rows": len(rows) - len(found)}, walk.failure, save)


@dataclass(frozen=True, slots=True)
class _Table:
    definition: Definition
    port_columns: Mapping[str, str]

    @classmethod
    def of(cls, definition: Definition) -> "_Table":
        return cls(definition, {name: key for name, key in PORT_COLUMNS.items() if definition.has_column(key)})

    def read(self, suffix: Oid, row: Row) -> Waiting | None:
        serial, port = row.get(SERIAL) or row.get(MAC), self._port(suffix, row)
        if port is None or not isinstance(serial, str) or not serial:
            return None
        model = str(row.get(MODEL) or "")
        return Waiting(*port[:3], serial[:MAX_SERIAL_LENGTH], model[:MAX_MODEL_LENGTH])

    def _port(self, suffix: Oid, row: Row) -> Place | None:
        place = self.definition.column(SERIAL).index.decode(suffix)
        told = {name: number for name, key in self.port_columns.items() if isinstance(number := row.get(key), int)}
        if place is None or len(told) < len(self.port_columns):
            return None
        port = place.pon._replace(**told)
        return port if all(0 <= number <= MAX_NUMBER for number in port) else None

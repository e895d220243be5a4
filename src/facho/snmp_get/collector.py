"""The collector: opens a session with the OLT, reads what the node asks for, and reports failures as outcomes."""

from dataclasses import dataclass

from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.task_type import QueryType
from facho.polling.vendors.loader import load_definitions
from facho.snmp_get.device import EXPECTED, Devices, failure_of
from facho.snmp_get.discovery import discover
from facho.snmp_get.onu_batches import fetch_onus
from facho.snmp_get.reading import Reader
from facho.snmp_get.tables import walk_tables

_STRATEGIES = {
    QueryType.DISCOVERY: discover,
    QueryType.WALK: walk_tables,
    QueryType.TABLE: walk_tables,
    QueryType.BULK: walk_tables,
}


@dataclass(frozen=True, slots=True)
class OltCollector:
    """Collects from any OLT whose vendor has a definition."""

    devices: Devices

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read what is asked; what the device does wrong is a Failure in the answer."""
        definition = load_definitions().get(request.vendor)
        if definition is None:
            return _failed(FailureKind.MISSING, f"no vendor definition {request.vendor!r}")
        unknown = [key for key in request.columns if not definition.has_column(key)]
        if unknown:
            return _failed(FailureKind.MISSING, f"{definition.key} has no column {unknown[0]!r}")
        try:
            async with self.devices.open(request, definition, control) as reader:
                return await _read(reader, request)
        except EXPECTED as error:
            return Collected(failure=failure_of(error))


async def _read(reader: Reader, request: CollectRequest) -> Collected:
    if request.query_type is QueryType.GET:
        return await fetch_onus(reader, request.columns, cursor=request.cursor)
    return await _STRATEGIES[request.query_type](reader, request.columns)


def _failed(kind: FailureKind, message: str) -> Collected:
    return Collected(failure=Failure(kind, message))

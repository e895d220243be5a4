"""The collector: opens a session with the OLT, reads what the node asks for, and reports failures as outcomes."""

import asyncio
from dataclasses import dataclass

from facho.hosts.learned import load_learned_sizes
from facho.hosts.secrets import UndecryptableSecret
from facho.hosts.store import load_target
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.task_type import QueryType
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.network import Network
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions
from facho.snmp_get.discovery import discover
from facho.snmp_get.onu_batches import fetch_onus
from facho.snmp_get.reading import Reader
from facho.snmp_get.tables import walk_tables

# No operation may hold an OLT for ever, whatever its agent does.
BUDGET_SECONDS = 900

_STRATEGIES = {
    QueryType.DISCOVERY: discover,
    QueryType.WALK: walk_tables,
    QueryType.TABLE: walk_tables,
    QueryType.BULK: walk_tables,
}


@dataclass(frozen=True, slots=True)
class OltCollector:
    """Collects from any OLT whose vendor has a definition."""

    network: Network
    database: DatabaseGateway
    max_timeout_seconds: float

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read what is asked; what the device does wrong is a Failure in the answer."""
        definition = load_definitions().get(request.vendor)
        if definition is None:
            return _failed(FailureKind.MISSING, f"no vendor definition {request.vendor!r}")
        unknown = [key for key in request.columns if not definition.has_column(key)]
        if unknown:
            return _failed(FailureKind.MISSING, f"{definition.key} has no column {unknown[0]!r}")
        try:
            return await self._read(request, definition, control)
        except SnmpError as error:
            return _failed(error.kind, str(error))
        except UndecryptableSecret as error:
            return _failed(FailureKind.AUTH, str(error))

    async def _read(self, request: CollectRequest, definition: Definition, control: RunControl) -> Collected:
        target, limits = await self.database.run(
            load_target, request, definition_in_flight=definition.polling.in_flight
        )
        learned = await self.database.run(load_learned_sizes, request.olt_id)
        deadline = asyncio.get_running_loop().time() + BUDGET_SECONDS
        session = self.network.open(target, control, limits)
        try:
            reader = Reader(
                request.olt_id,
                session,
                definition,
                self.database,
                control,
                deadline=deadline,
                max_timeout_seconds=self.max_timeout_seconds,
                sizes=learned,
            )
            if request.query_type is QueryType.GET:
                return await fetch_onus(reader, request.columns, cursor=request.cursor)
            return await _STRATEGIES[request.query_type](reader, request.columns)
        finally:
            await session.close()


def _failed(kind: FailureKind, message: str) -> Collected:
    return Collected(failure=Failure(kind, message))

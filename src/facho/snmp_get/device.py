"""Opens an OLT for reading: credentials, limits and learned sizes from the database, a session from the network."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from facho.hosts.learned import load_learned_sizes
from facho.hosts.secrets import UndecryptableSecret
from facho.hosts.store import load_target
from facho.polling.domain.collection import CollectRequest, Failure, RunControl
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.network import Network
from facho.polling.vendors.definition import Definition
from facho.snmp_get.reading import Reader

# No operation may hold an OLT for ever, whatever its agent does.
BUDGET_SECONDS = 900

# What ends an operation without being a defect of ours.
EXPECTED = (SnmpError, UndecryptableSecret)


@dataclass(frozen=True, slots=True)
class Devices:
    """The way to every OLT."""

    network: Network
    database: DatabaseGateway
    max_timeout_seconds: float

    @asynccontextmanager
    async def open(self, request: CollectRequest, definition: Definition, control: RunControl) -> AsyncIterator[Reader]:
        """Give a reader of the OLT at the claim's address, who knows what its rows are.

        Only where that has to be learned does a packet leave before the reader is asked something.
        """
        target, limits = await self.database.run(
            load_target, request, definition_in_flight=definition.polling.in_flight
        )
        learned = await self.database.run(load_learned_sizes, request.olt_id)
        session = self.network.open(target, control, limits)
        try:
            reader = Reader(
                request.olt_id,
                session,
                definition,
                self.database,
                control,
                deadline=asyncio.get_running_loop().time() + BUDGET_SECONDS,
                max_timeout_seconds=self.max_timeout_seconds,
                sizes=learned,
            )
            await reader.learn_rows()
            yield reader
        finally:
            await session.close()


def failure_of(error: Exception) -> Failure:
    """Put one of the expected errors into the words of a run."""
    kind = error.kind if isinstance(error, SnmpError) else FailureKind.AUTH
    return Failure(kind, str(error))

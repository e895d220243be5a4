"""Sessions of SNMP v3 over the shared socket: questions sealed by gufo-snmp, answers verified and read by us.

The library asks for one column at a time, so a page of several columns is several packets.
"""

from collections.abc import Sequence

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.ber import Oid, Tag, VarBind
from facho.polling.snmp.courier import Courier
from facho.polling.snmp.engine_link import EngineLink, Seal
from facho.polling.snmp.error_status import checked_varbinds
from facho.polling.snmp.errors import AgentError, UnexpectedAnswer
from facho.polling.snmp.known_engines import KnownEngines
from facho.polling.snmp.sealed_transport import SealedTransport
from facho.polling.snmp.session import NO_DEADLINE, Limits
from facho.polling.snmp.target import CHEAP, Patience, Target, UserCredential

# An agent may say that its engine is another, and then its clock; who goes on saying so is not worked with.
_FRESH_STARTS = 3


class UserSession:
    """One device, one user of it, one holder of the right to send to it."""

    def __init__(
        self,
        transport: SealedTransport,
        target: Target,
        credential: UserCredential,
        permit: SendPermit,
        limits: Limits,
        engines: KnownEngines,
    ) -> None:
        self.target = target
        self.limits = limits
        self._courier = Courier(transport, target, permit, limits)
        self.traffic = self._courier.traffic
        self.round_trips = self._courier.round_trips
        self._link = EngineLink(transport, self._courier, target, credential, engines)

    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return one varbind for each OID, in order; what is missing has an exception tag and no value."""
        wanted = list(dict.fromkeys(oids))
        if not wanted:
            return []
        varbinds = await self._ask(lambda sealer: sealer.seal_get(wanted), wanted, patience, deadline)
        if [varbind[0] for varbind in varbinds] != wanted:
            raise UnexpectedAnswer(f"{self.target.address} answered with other OIDs than asked")
        found = dict(zip(wanted, varbinds, strict=True))
        return [found[oid] for oid in oids]

    async def next_page(
        self, oids: Sequence[Oid], repetitions: int, *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return the successors of the OIDs, row by row, as many rows as every column gave."""
        rows = max(1, repetitions)
        columns: list[list[VarBind]] = []
        for oid in oids:
            column = await self._next_of_column(oid, rows, patience, deadline)
            if not column:
                return []
            columns.append(column)
            # What one column cannot give in a message need not be asked of the others.
            rows = len(column)
        return [column[row] for row in range(rows) for column in columns]

    async def close(self) -> None:
        """End what is under way; the shared socket stays."""
        self._courier.close()
        self._link.close()

    async def _next_of_column(self, oid: Oid, rows: int, patience: Patience, deadline: float) -> list[VarBind]:
        varbinds = await self._ask(lambda sealer: sealer.seal_get_bulk(oid, rows), [oid], patience, deadline)
        if len(varbinds) > rows:
            raise UnexpectedAnswer(f"{self.target.address} answered with more rows than asked")
        if varbinds and varbinds[-1][1] == Tag.END_OF_MIB_VIEW:
            # Others may have more to say: an end is an end in every further row.
            varbinds += varbinds[-1:] * (rows - len(varbinds))
        return varbinds

    async def _ask(self, seal: Seal, oids: Sequence[Oid], patience: Patience, deadline: float) -> list[VarBind]:
        async with self._courier.slots:
            for _ in range(_FRESH_STARTS):
                opened = await self._link.ask(seal, patience, deadline)
                if opened is not None:
                    self.traffic.varbinds += len(opened.pdu.varbinds)
                    return checked_varbinds(opened.pdu, oids, self.target.address)
        raise AgentError(f"{self.target.address} keeps saying that its engine or its clock is another")

"""A manager so small that it cannot hide anything: one socket, one request at a time unless reported otherwise."""

import asyncio
import socket
from itertools import count

from facho.polling.snmp.ber import Oid, Pdu, PduKind, SnmpMessage, Tag, VarBind, decode_message, encode_message
from facho.simulator.server import SimulatedOlt

REPLY_SECONDS = 5.0


class RawManager:
    """Sends requests to simulated OLTs over real UDP."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(("127.0.0.1", 0))
        self._ids = count(1)

    def close(self) -> None:
        self._socket.close()

    async def get(self, olt: SimulatedOlt, *oids: Oid, version: int = 1) -> Pdu:
        return await self.ask(olt, PduKind.GET, oids, version=version)

    async def get_next(self, olt: SimulatedOlt, *oids: Oid, version: int = 1) -> Pdu:
        return await self.ask(olt, PduKind.GET_NEXT, oids, version=version)

    async def get_bulk(self, olt: SimulatedOlt, *oids: Oid, non_repeaters: int = 0, repetitions: int = 10) -> Pdu:
        return await self.ask(olt, PduKind.GET_BULK, oids, fields=(non_repeaters, repetitions))

    async def ask(
        self,
        olt: SimulatedOlt,
        kind: PduKind,
        oids: tuple[Oid, ...],
        *,
        version: int = 1,
        fields: tuple[int, int] = (0, 0),
    ) -> Pdu:
        request_id = await self.send(olt, kind, oids, version=version, fields=fields)
        reply = await self.receive()
        assert reply.request_id == request_id
        return reply

    async def send(
        self,
        olt: SimulatedOlt,
        kind: PduKind,
        oids: tuple[Oid, ...],
        *,
        version: int = 1,
        fields: tuple[int, int] = (0, 0),
        community: str | None = None,
        request_id: int | None = None,
    ) -> int:
        request_id = next(self._ids) if request_id is None else request_id
        pdu = Pdu(kind, request_id, *fields, [(oid, Tag.NULL, None) for oid in oids])
        message = SnmpMessage(version, (community or olt.community).encode(), pdu)
        self.send_bytes(olt, encode_message(message))
        return request_id

    def send_bytes(self, olt: SimulatedOlt, data: bytes) -> None:
        self._socket.sendto(data, (olt.host, olt.port))

    async def receive(self) -> Pdu:
        return decode_message(await self.receive_bytes()).pdu

    async def receive_bytes(self) -> bytes:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._socket, 65_535), REPLY_SECONDS)

    async def walk(self, olt: SimulatedOlt, root: Oid, *, repetitions: int = 25) -> list[VarBind]:
        """Walk a subtree with GETBULK."""
        rows: list[VarBind] = []
        last = root
        while True:
            for row in (await self.get_bulk(olt, last, repetitions=repetitions)).varbinds:
                if row[0][: len(root)] != root or row[1] == Tag.END_OF_MIB_VIEW:
                    return rows
                rows.append(row)
            last = rows[-1][0]

"""A relay on the loopback that stands between us and a real agent, and loses, changes or redirects packets."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

Tamper = Callable[[int, bytes], Iterable[bytes]]


def faithful(_number: int, data: bytes) -> Iterable[bytes]:
    return [data]


class Relay(asyncio.DatagramProtocol):
    """Forwards what comes to `upstream`, and what `tamper` makes of the answers back; counts the questions."""

    def __init__(self, upstream: int, tamper: Tamper) -> None:
        self.upstream = upstream
        self.tamper = tamper
        self.questions: list[bytes] = []
        self.answers = 0
        self.port = 0
        self._client: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if addr[1] == self.upstream:
            self.answers += 1
            for changed in self.tamper(self.answers, data):
                self.transport.sendto(changed, self._client)
            return
        self.questions.append(data)
        self._client = addr
        self.transport.sendto(data, ("127.0.0.1", self.upstream))


@asynccontextmanager
async def relay(upstream: int, tamper: Tamper = faithful) -> AsyncIterator[Relay]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(
        lambda: Relay(upstream, tamper), local_addr=("127.0.0.1", 0)
    )
    try:
        yield protocol
    finally:
        transport.close()
        await asyncio.sleep(0)

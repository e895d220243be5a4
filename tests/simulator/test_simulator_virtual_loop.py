"""Hours pass at once on the virtual clock, and datagrams still arrive in order of their time."""

import asyncio
import socket
import time

from bench.virtual_loop import VirtualTimeLoop


def test_an_hour_passes_at_once() -> None:
    began_at = time.monotonic()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = runner.get_loop()
        before = loop.time()
        runner.run(asyncio.sleep(3_600))

        assert loop.time() - before == 3_600
    assert time.monotonic() - began_at < 5


def test_a_datagram_that_waits_comes_before_the_next_timer() -> None:
    async def receive() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.setblocking(False)
            udp.bind(("127.0.0.1", 0))
            loop.call_later(60, udp.sendto, b"after a minute", udp.getsockname())
            before = loop.time()
            data = await asyncio.wait_for(loop.sock_recv(udp, 100), 3_600)
            return data, loop.time() - before

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        data, waited = runner.run(receive())

    assert data == b"after a minute"
    assert 60 <= waited < 61

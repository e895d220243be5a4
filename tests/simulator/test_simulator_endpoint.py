"""A socket that hands over all that waits, and says clearly when it cannot be had."""

import asyncio
import socket

import pytest

from facho.simulator.agent import DATAGRAMS_PER_TURN, Address, Endpoint, PortTaken

Datagrams = list[tuple[bytes, Address]]


def send(endpoint: Endpoint, *payloads: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for payload in payloads:
            sender.sendto(payload, (endpoint.host, endpoint.port))


async def listen_once(endpoint: Endpoint) -> "asyncio.Future[Datagrams]":
    heard: asyncio.Future[Datagrams] = asyncio.get_running_loop().create_future()
    endpoint.listen(lambda datagrams: None if heard.done() else heard.set_result(datagrams))
    return heard


async def test_everything_that_waits_comes_at_once() -> None:
    endpoint = Endpoint("127.0.0.1", 0)
    heard = await listen_once(endpoint)

    send(endpoint, b"one", b"", b"three")

    assert [data for data, _ in await asyncio.wait_for(heard, 5)] == [b"one", b"", b"three"]
    endpoint.close()


async def test_a_flood_is_taken_in_turns() -> None:
    endpoint = Endpoint("127.0.0.1", 0)
    heard = await listen_once(endpoint)

    send(endpoint, *[b"x"] * (DATAGRAMS_PER_TURN + 10))

    assert len(await asyncio.wait_for(heard, 5)) == DATAGRAMS_PER_TURN
    endpoint.close()


async def test_what_cannot_be_sent_is_reported() -> None:
    endpoint = Endpoint("127.0.0.1", 0)

    assert endpoint.send(b"hello", ("127.0.0.1", endpoint.port))
    assert not endpoint.send(b"x" * 70_000, ("127.0.0.1", endpoint.port))
    endpoint.close()


async def test_an_address_that_is_not_ours_is_a_clear_error() -> None:
    with pytest.raises(PortTaken, match=r"192\.0\.2\.1"):
        Endpoint("192.0.2.1", 0)


async def test_an_endpoint_that_never_listened_can_be_closed() -> None:
    Endpoint("127.0.0.1", 0).close()

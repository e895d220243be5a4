"""Who waits for whom on the way to the database."""

import asyncio
from threading import Event

import pytest

from facho.infrastructure.gateway import ThreadGateway

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_short_call_waits_for_no_more_than_one_long_one() -> None:
    """A poller that has become free is not idle until the rows of all other runs are stored."""
    database, go_on, done = ThreadGateway(1), Event(), list[str]()

    def store_first() -> None:
        go_on.wait()
        done.append("first rows")

    calls = [
        asyncio.create_task(database.run_long(store_first)),
        asyncio.create_task(database.run_long(done.append, "second rows")),
        asyncio.create_task(database.run(done.append, "claim")),
    ]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*calls)
    await database.close()

    assert done == ["first rows", "claim", "second rows"]


async def test_a_long_call_that_fails_or_is_broken_off_keeps_no_other_from_its_turn() -> None:
    database, go_on = ThreadGateway(1), Event()
    calls = [
        asyncio.create_task(database.run_long(go_on.wait)),
        asyncio.create_task(database.run_long(int, "broken off")),
        asyncio.create_task(database.run_long(int, "no number")),
        asyncio.create_task(database.run_long(int, "7")),
    ]
    await asyncio.sleep(0)
    calls[1].cancel()
    go_on.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    await database.close()

    assert [type(each) for each in ended] == [bool, asyncio.CancelledError, ValueError, int]

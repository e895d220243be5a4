"""Who waits for whom on the way to the database."""

import asyncio
from threading import Event

import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from facho.infrastructure import gateway
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


async def test_a_database_that_could_not_be_opened_is_opened_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    database, connect, failures = ThreadGateway(), BaseDatabaseWrapper.connect, [OperationalError("not now")]

    def connect_later(wrapper: BaseDatabaseWrapper) -> None:
        if failures:
            raise failures.pop()
        connect(wrapper)

    monkeypatch.setattr(BaseDatabaseWrapper, "connect", connect_later)

    with pytest.raises(OperationalError, match="not now"):
        await database.run(sum, [1, 2])
    answer = await database.run(sum, [1, 2])
    await database.close()

    assert answer == 3


@pytest.mark.any_database
async def test_the_thread_that_stores_polls_keeps_more_pages_also_after_its_session_was_lost() -> None:
    def kept_kb() -> int:
        with connection.cursor() as cursor:
            [size] = cursor.execute("PRAGMA cache_size").fetchone()
        return int(-size)

    storing = ThreadGateway()
    other = storing.aside()

    sizes = [await storing.run(kept_kb), await storing.run(lambda: connection.close()), await storing.run(kept_kb)]
    elsewhere = await other.run(kept_kb)
    await other.close()
    await storing.close()

    assert (sizes, elsewhere) == ([gateway.STORING_CACHE_KB, None, gateway.STORING_CACHE_KB], 512)


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


async def test_who_gives_way_waits_for_calls_in_progress_and_no_longer_than_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gateway, "CALM_SECONDS", 60.0)
    database, go_on, done = ThreadGateway(2), Event(), list[str]()

    async def give_way() -> None:
        await database.calm()
        done.append("packet")

    await give_way()
    calls = [asyncio.create_task(database.run(go_on.wait)), asyncio.create_task(database.run(done.append, "call"))]
    await asyncio.sleep(0)
    waiting = asyncio.create_task(give_way())
    await calls[1]
    assert done == ["packet", "call"]

    go_on.set()
    await asyncio.gather(*calls, waiting)
    await database.close()

    assert done == ["packet", "call", "packet"]


async def test_a_call_that_takes_long_is_not_given_way_to_for_long() -> None:
    database, go_on = ThreadGateway(1), Event()
    call = asyncio.create_task(database.run(go_on.wait))
    await asyncio.sleep(0)

    await database.calm()

    assert not call.done()
    go_on.set()
    await call
    await database.close()

"""The key that mirrors a claim, on the run's Redis: for people and tools, it decides nothing."""

import asyncio

import pytest
from django.conf import settings

from facho.core.redis import open_hints
from facho.executions import store
from facho.executions.models import Origin
from facho.executions.run import Run
from facho.executions.store import ClaimRequest
from factories import NOW, make_olt
from servers.redis import RedisServer

pytestmark = pytest.mark.django_db


def running(olt_id: int) -> Run:
    [claimed] = store.claim([ClaimRequest(olt_id, "get_x", Origin.SCHEDULE)], owner="worker/test", now=NOW)
    run = store.take(claimed.execution_id, claimed.token, owner="worker/test", now=NOW)
    assert run is not None
    return run


def test_a_claim_has_a_key_of_its_host_for_a_minute_that_its_holder_alone_takes_away(redis_server: RedisServer) -> None:
    """S3-07, S3-13: `lock:snmp:host:<id>`, 60 s unless the setting says otherwise."""
    olt = make_olt()
    key = f"lock:snmp:host:{olt.id}"
    first = running(olt.id)
    store.interrupt([first.execution_id], reason="test", now=NOW)
    second = running(olt.id)
    redis = redis_server.client()
    redis.flushall()

    async def scene() -> list[tuple[bytes | None, int]]:
        async with open_hints(redis_server.url, lock_seconds=settings.FACHO_LEASE_SECONDS) as hints:
            seen = []
            for tell in (lambda: hints.held(second), lambda: hints.let_go(first), lambda: hints.let_go(second)):
                tell()
                await hints.flush()
                seen.append((await asyncio.to_thread(redis.get, key), await asyncio.to_thread(redis.pttl, key)))
            return seen

    held, kept, gone = asyncio.run(scene())

    assert held[0] == kept[0] == f"{second.execution_id}/{second.token}".encode()
    assert 30_000 < held[1] <= 60_000
    assert gone[0] is None

"""One Redis server for the tests of the distributed mode, and a Celery app that speaks to it."""

from collections.abc import Iterator
from pathlib import Path

import kombu.pools
import pytest

from facho.core.celery import FachoCelery, app
from servers.redis import RedisServer, private_redis


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server of the run's own, with the product's app turned to it."""
    with private_redis(Path(tmp_path_factory.mktemp("redis"))) as server:
        app.conf.broker_url = app.conf.result_backend = server.url
        yield server
        kombu.pools.reset()


@pytest.fixture
def celery_app(redis_server: RedisServer) -> Iterator[FachoCelery]:
    """The product's app on an empty Redis."""
    redis_server.client().flushall()
    yield app
    app.close_worker()

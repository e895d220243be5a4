"""One Redis server for the tests of the distributed mode, a Celery app that speaks to it, and real processes."""

import sys
from collections.abc import Iterator
from pathlib import Path

import kombu.pools
import pytest

from facho.core.celery import FachoCelery, app
from servers.cluster import Cluster, cluster_on_test_database
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


@pytest.fixture
def cluster(redis_server: RedisServer, tmp_path: Path, transactional_db: None) -> Iterator[Cluster]:
    """The distributed product on the test's database, with no process yet."""
    with cluster_on_test_database(redis_server, tmp_path / "cluster", FACHO_LOG_LEVEL="INFO") as cluster:
        yield cluster
        sys.stdout.write(cluster.logs())

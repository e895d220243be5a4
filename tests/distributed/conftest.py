"""A Celery app that speaks to the run's Redis, and the distributed product as real processes."""

import sys
from collections.abc import Iterator
from pathlib import Path

import kombu.pools
import pytest

from facho.core.processes.celery_app import FachoCelery, app
from servers.cluster import Cluster, cluster_on_test_database
from servers.redis import RedisServer


@pytest.fixture(scope="session")
def app_on_redis(redis_server: RedisServer) -> Iterator[FachoCelery]:
    """The product's app, turned to the run's own Redis."""
    app.conf.broker_url = app.conf.result_backend = redis_server.url
    yield app
    kombu.pools.reset()


@pytest.fixture
def celery_app(app_on_redis: FachoCelery, redis_server: RedisServer) -> Iterator[FachoCelery]:
    """The product's app on an empty Redis."""
    redis_server.client().flushall()
    yield app_on_redis
    app_on_redis.close_worker()


@pytest.fixture
def cluster(redis_server: RedisServer, tmp_path: Path, transactional_db: None) -> Iterator[Cluster]:
    """The distributed product on the test's database, with no process yet."""
    with cluster_on_test_database(redis_server, tmp_path / "cluster", FACHO_LOG_LEVEL="INFO") as cluster:
        yield cluster
        sys.stdout.write(cluster.logs())

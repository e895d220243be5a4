"""A worker's connection to a Redis that went away, with messages in hand."""

from typing import Any

import pytest
from kombu import Connection

from facho.core.processes.celery_app import FachoCelery
from servers.redis import RedisServer


@pytest.mark.any_database
def test_a_channel_closes_without_the_redis_that_it_had_a_message_of(
    celery_app: FachoCelery, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A message that came and was not acknowledged yet is let go: the worker lives on, and the row brings it back."""
    with celery_app.connection_for_read(redis_server.url) as connection:
        channel = _hold_a_message(connection)
        # As a connection looks that was lost while a slot had it in hand: whoever asks Redis by it, fails.
        connection.transport.client = None

        channel.close()

        assert channel.closed
        assert caplog.messages == []


@pytest.mark.any_database
def test_redis_keeps_nothing_of_a_message_that_was_taken(celery_app: FachoCelery, redis_server: RedisServer) -> None:
    """What nobody acknowledged would come again an hour later."""
    with celery_app.connection_for_read(redis_server.url) as connection:
        _hold_a_message(connection)

        assert not redis_server.client().exists("unacked", "unacked_index")


def _hold_a_message(connection: Connection) -> Any:
    queue = connection.SimpleQueue("snmp_default")
    queue.put("a message")
    queue.get(timeout=10)
    return queue.channel

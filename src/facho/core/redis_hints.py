"""Hints between processes over Redis: wake-ups, and the claims as keys that people and tools can look at.

Everything here may be lost, at any time and for any length of time; it costs latency and nothing else.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress

from redis.asyncio import Redis
from redis.exceptions import RedisError

from facho.core.beside import beside
from facho.executions.run import Run

logger = logging.getLogger(__name__)

ENDED, CANCELLED = "facho:ended", "facho:cancelled"
LOCK_PREFIX = "lock:snmp:host:"
# A key is deleted by who wrote it alone: another run may hold the OLT by now.
DELETE_MINE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"
CONNECT_SECONDS = 3.0
LISTEN_SECONDS = 30.0
RECONNECT_SECONDS = 1.0
# More than all OLTs of a process begin or end in the time in which Redis is given up.
LONGEST_QUEUE = 10_000

FLUSH_SECONDS = 1.0

Command = tuple[str | int, ...]


class RedisHints:
    """Queues what there is to tell, and tells it from a task of its own."""

    def __init__(self, redis: "Redis", *, lock_seconds: float) -> None:
        self._redis = redis
        self._lock_ms = max(int(lock_seconds * 1000), 1)
        self._commands: asyncio.Queue[Command] = asyncio.Queue(LONGEST_QUEUE)
        self._is_away = False

    def held(self, run: Run) -> None:
        """Show the claim as a key that ends with the lease."""
        self._tell("SET", _lock(run), _holder(run), "PX", self._lock_ms)

    def let_go(self, run: Run) -> None:
        """Take the key away."""
        self._tell("EVAL", DELETE_MINE, 1, _lock(run), _holder(run))

    def ended(self) -> None:
        """Wake the scheduler that leads."""
        self._tell("PUBLISH", ENDED, "")

    def cancelled(self, execution_id: int) -> None:
        """Wake the worker that runs it."""
        self._tell("PUBLISH", CANCELLED, execution_id)

    async def send(self) -> None:
        """Send what is queued, for ever; what cannot be sent is dropped."""
        while True:
            commands = [await self._commands.get()]
            while not self._commands.empty():
                commands.append(self._commands.get_nowait())
            try:
                async with self._redis.pipeline(transaction=False) as pipeline:
                    for command in commands:
                        pipeline.execute_command(*command)
                    await pipeline.execute(raise_on_error=False)
                self._note()
            except (RedisError, OSError) as error:
                self._note(error)
            for _ in commands:
                self._commands.task_done()

    async def listen(self, *, on_ended: Callable[[], None], on_cancelled: Callable[[int], None]) -> None:
        """React until cancelled; a new connection counts as an end, since one may have been missed."""
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    await pubsub.subscribe(ENDED, CANCELLED)
                    self._note()
                    on_ended()
                    while True:
                        message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=LISTEN_SECONDS)
                        if message is None:
                            continue
                        if message["channel"] == ENDED.encode():
                            on_ended()
                        elif message["data"].isdigit():
                            on_cancelled(int(message["data"]))
            except (RedisError, OSError) as error:
                self._note(error)
                await asyncio.sleep(RECONNECT_SECONDS)

    async def flush(self) -> None:
        """Wait a moment for what is queued."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._commands.join()

    def _note(self, error: Exception | None = None) -> None:
        """Say once that Redis is away, and once that it is back."""
        if error is not None and not self._is_away:
            logger.warning("redis.away error=%s", type(error).__name__)
        elif error is None and self._is_away:
            logger.warning("redis.back")
        self._is_away = error is not None

    def _tell(self, *command: str | int) -> None:
        if not self._commands.full():
            self._commands.put_nowait(command)


@asynccontextmanager
async def open_hints(url: str, *, lock_seconds: float) -> AsyncIterator[RedisHints]:
    """Connect when there is something to tell, and let go of Redis in the end."""
    redis = Redis.from_url(url, socket_connect_timeout=CONNECT_SECONDS, socket_keepalive=True)
    hints = RedisHints(redis, lock_seconds=lock_seconds)
    async with aclosing(redis), beside(hints.send(), "sending hints"):
        try:
            yield hints
        finally:
            await hints.flush()


def _lock(run: Run) -> str:
    return f"{LOCK_PREFIX}{run.olt_id}"


def _holder(run: Run) -> str:
    return f"{run.execution_id}/{run.token}"

"""Asks a Redis server whether it is there, over a plain socket: no client library is needed to know that."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from urllib.parse import SplitResult, unquote, urlsplit

from redis.asyncio import Redis
from redis.exceptions import RedisError

from facho.executions.run import Run
from facho.executions.runner import Hints
from facho.infrastructure.gateway import background

DEFAULT_PORT = 6379
MAX_ANSWER_BYTES = 512
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


class RedisFailure(Exception):
    """No Redis answers there; the message holds neither user nor password."""


def ping(url: str, *, timeout_seconds: float) -> None:
    """Raise unless the server at the URL lets us in and says PONG."""
    try:
        parts = urlsplit(url)
        place = (parts.hostname or "localhost", parts.port or DEFAULT_PORT)
    except ValueError:
        # The parser's own words may repeat the password.
        raise RedisFailure("REDIS_URL cannot be read") from None
    try:
        with _connect(parts, place, timeout_seconds) as connection:
            if parts.password:
                names = [unquote(parts.username)] if parts.username else []
                _expect(connection, ["AUTH", *names, unquote(parts.password)], b"+OK")
            _expect(connection, ["PING"], b"+PONG")
    except OSError as error:
        raise RedisFailure(f"{place[0]}:{place[1]}: {error.strerror or error}") from error


def _connect(parts: SplitResult, place: tuple[str, int], timeout_seconds: float) -> socket.socket:
    plain = socket.create_connection(place, timeout_seconds)
    if parts.scheme != "rediss":
        return plain
    return ssl.create_default_context().wrap_socket(plain, server_hostname=place[0])


def _expect(connection: socket.socket, words: list[str], wanted: bytes) -> None:
    encoded = [word.encode() for word in words]
    parts = [b"*%d\r\n" % len(encoded), *(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)]
    connection.sendall(b"".join(parts))
    answer = b""
    while not answer.endswith(b"\r\n") and len(answer) < MAX_ANSWER_BYTES:
        block = connection.recv(MAX_ANSWER_BYTES)
        if not block:
            break
        answer += block
    if not answer.startswith(wanted):
        # The server's words may be anything when it is no Redis; its error code is enough.
        code = answer.split(b" ")[0].strip(b"-\r\n").decode("ascii", "replace")[:20]
        raise RedisFailure(f"Redis refused {words[0]}: {code if code.isalpha() else 'no Redis answers'}")


Command = tuple[str | int, ...]


class RedisHints(Hints):
    """Queues hints, and sends them from a task of its own."""

    def __init__(self, redis: "Redis", *, lock_seconds: float) -> None:
        self._redis = redis
        self._lock_ms = max(int(lock_seconds * 1000), 1)
        self._commands: asyncio.Queue[Command] = asyncio.Queue(LONGEST_QUEUE)
        self._is_away = False

    def held(self, run: Run) -> None:
        """Show the claim as a key that ends with the lease."""
        self._send_soon("SET", _lock(run), _holder(run), "PX", self._lock_ms)

    def let_go(self, run: Run) -> None:
        self._send_soon("EVAL", DELETE_MINE, 1, _lock(run), _holder(run))

    def ended(self) -> None:
        """Wake the scheduler that leads."""
        self._send_soon("PUBLISH", ENDED, "")

    def cancelled(self, execution_id: int) -> None:
        """Wake the worker that runs it."""
        self._send_soon("PUBLISH", CANCELLED, execution_id)

    async def send(self) -> None:
        """Send what is queued, until cancelled; what cannot be sent is dropped."""
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

    def _send_soon(self, *command: str | int) -> None:
        if not self._commands.full():
            self._commands.put_nowait(command)


@asynccontextmanager
async def open_hints(url: str, *, lock_seconds: float) -> AsyncIterator[RedisHints]:
    """Connect when there is something to send, and disconnect at the end."""
    redis = Redis.from_url(url, socket_connect_timeout=CONNECT_SECONDS, socket_keepalive=True)
    hints = RedisHints(redis, lock_seconds=lock_seconds)
    async with aclosing(redis), background(hints.send(), "sending hints"):
        try:
            yield hints
        finally:
            await hints.flush()


def _lock(run: Run) -> str:
    return f"{LOCK_PREFIX}{run.olt_id}"


def _holder(run: Run) -> str:
    return f"{run.execution_id}/{run.token}"

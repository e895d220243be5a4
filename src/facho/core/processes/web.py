"""The web process: serves pages and API on the socket that the parent has bound, behind a gate for strangers.

At the gate a connection costs no thread: a request gets one when it has arrived in full and its turn has come. What is
the same for everybody (`/livez`, static files, the description of the API, the page for customers) is answered on the
event loop.

uvicorn has a time-out for connections idle between two requests, but none for an endless head or for an answer that the
client does not read; at its limit it refuses new connections instead of closing such old ones. Both are bounded here.
"""

import asyncio
import gc
import gzip
import json
import logging
import os
import resource
import signal
import socket
import struct
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from http import HTTPStatus
from io import BytesIO
from itertools import chain
from types import FrameType
from typing import Any

import h11
import uvicorn
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.core.asgi import get_asgi_application
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import close_old_connections
from django.http import HttpResponse
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from uvicorn.protocols.http.h11_impl import H11Protocol
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]

from facho.api.shared.problems import CONTENT_TYPE, ApiProblem
from facho.api.shared.schema import DOCS_PATH, SCHEMA_PATH, is_built, is_described, schema
from facho.core.health import livez, seen
from facho.core.processes import supervisor
from facho.core.processes.leader_watch import watch_version, watching
from facho.core.security import HEADERS
from facho.core.urls import API_PREFIXES
from facho.core.wiring import new_owner
from facho.dashboard.status.views import STATUS_PATH, kept_status
from facho.executions.processes import describing, reporting
from facho.infrastructure.gateway import SystemClock, ThreadGateway, background
from facho.infrastructure.storage import open_storage

logger = logging.getLogger(__name__)

MOST_CONNECTIONS = 512
MOST_HEAD_BYTES = 32 * 1024
# How long a client may take to send a request head, and may stall while reading an answer.
HEAD_SECONDS = 10.0
STALLED_SECONDS = 20.0
# A chunk of a body costs the same whether it has one byte or many.
FREE_PIECES, LEAST_PIECE_BYTES = 64, 256
# Databases, logs and libraries; a connection, and the static file it may be sending.
OTHER_DESCRIPTORS, DESCRIPTORS_PER_CONNECTION = 128, 2
MANY_DESCRIPTORS = 0.8
RETRY_AFTER_SECONDS = 2

SWEEP_SECONDS = 1.0
REPORT_SECONDS = 60.0
# A mark in the state of a request, by which its connection knows that it is not being served.
REFUSED = "facho.refused"

_FULL = (
    f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\n"
    "Connection: close\r\nContent-Length: 0\r\n\r\n"
).encode()
_NO_LINGERING = struct.pack("ii", 1, 0)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Refusals(Counter[str]):
    """Counts what was refused: one line a minute stands for all of it, however much there is."""

    def report(self) -> None:
        if self:
            reasons = " ".join(f"{reason}={count}" for reason, count in sorted(self.items()))
            logger.warning("web.refused seconds=%.0f %s", REPORT_SECONDS, reasons)
        self.clear()


class PiecedConnection(h11.Connection):
    """Reads HTTP, but no body that comes in crumbs."""

    _pieces = _bytes = 0

    def next_event(self) -> Any:
        """Give the next event; a body in too many pieces is a fault of its sender."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > FREE_PIECES + self._bytes // LEAST_PIECE_BYTES:
                raise h11.RemoteProtocolError("the body comes in pieces that are too small")
        return event


class BoundedProtocol(H11Protocol):
    """One connection of uvicorn that knows whether it waits for its client, and for how long."""

    def __init__(self, connections: "Connections", **about: Any) -> None:
        super().__init__(**about)
        self.conn = PiecedConnection(h11.SERVER, MOST_HEAD_BYTES)
        self._connections = connections
        self._expecting_since = self._moved_at = self.loop.time()
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if not self._connections.admit(self):
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.leave(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._expecting_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, if an answer can still be given."""
        self._connections.refusals["malformed"] += 1
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.abort()

    @property
    def address(self) -> str:
        """The address of the other end, which may be a proxy."""
        return self.client[0] if self.client else ""

    @property
    def is_dispensable(self) -> bool:
        """Whether nothing is lost with it: the request has yet to arrive, or is refused."""
        return self._is_between or self.cycle.more_body or REFUSED in self.scope["state"]

    @property
    def is_sending(self) -> bool:
        """Whether the other end has not yet read what was written."""
        return self.transport.get_write_buffer_size() > 0

    def end_if_slow(self, now: float) -> None:
        """End the connection when its request, or its reading of the answer, has come to a stop."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._moved_at = unsent, now
        elif unsent and now - self._moved_at > STALLED_SECONDS:
            self._connections.refusals["unread"] += 1
            self.reset()
        if self._is_between and not unsent and now - self._expecting_since > HEAD_SECONDS:
            self._connections.refusals["slow_head"] += 1
            if self.conn.trailing_data[0]:
                self.transport.write(_TOO_SLOW)
            self.transport.close()

    def reset(self) -> None:
        """End it at once; the kernel would keep what is unsent until the other end has read it, or for minutes."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self.transport.abort()

    @property
    def _is_between(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


class Connections:
    """All connections. When full, a new one replaces the longest idle one of the address with the most."""

    def __init__(self, most: int, refusals: Refusals) -> None:
        self.refusals = refusals
        self._most = most
        # By address, the oldest first.
        self._by_address: dict[str, dict[BoundedProtocol, None]] = {}
        self._count = 0

    def admit(self, connection: BoundedProtocol) -> bool:
        if self._count >= self._most and not self._make_room():
            self.refusals["no_room"] += 1
            return False
        self._by_address.setdefault(connection.address, {})[connection] = None
        self._count += 1
        return True

    def leave(self, connection: BoundedProtocol) -> None:
        """Forget a connection; one that was not admitted is not known."""
        own = self._by_address.get(connection.address, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._by_address[connection.address]

    async def watch(self) -> None:
        """End what is too slow, once a second; log once a minute what was refused, and when descriptors run out."""
        loop = asyncio.get_running_loop()
        report_at = loop.time() + REPORT_SECONDS
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for connection in list(chain.from_iterable(self._by_address.values())):
                connection.end_if_slow(loop.time())
            if loop.time() >= report_at:
                report_at += REPORT_SECONDS
                self.refusals.report()
                used, limit = len(os.listdir("/dev/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
                if limit != resource.RLIM_INFINITY and used > limit * MANY_DESCRIPTORS:
                    logger.warning("web.descriptors used=%d limit=%d", used, limit)

    def _make_room(self) -> bool:
        """End one connection that waits for its other end; one that waits for us is left alone."""
        most = max(self._by_address.values(), key=len)
        dispensable = (each for each in most if each.is_dispensable)
        sending = (each for each in most if each.is_sending)
        victim = next(chain(dispensable, sending), None)
        if victim is None:
            return False
        self.refusals["displaced"] += 1
        self.leave(victim)
        victim.reset()
        return True


def most_connections() -> int:
    """Raise the limit of descriptors as far as this user may, and return how many connections fit below it."""
    limit = supervisor.raise_descriptor_limit()
    if limit == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, (limit - OTHER_DESCRIPTORS) // DESCRIPTORS_PER_CONNECTION))


# What one request may hold. Heads have a few kB, and the largest form of a stranger is the login.
MOST_ADDRESS_BYTES = 8 * 1024
MOST_BODY_BYTES = 64 * 1024
# An inventory of 1 MiB in its form. Django keeps bodies up to here in memory: none becomes a temporary file.
MOST_SIGNED_IN_BODY_BYTES = 2_621_440

# How long a visitor may take to send the body: so much longer than it takes at the lowest speed.
BODY_SECONDS = 10.0
SLOWEST_BYTES_PER_SECOND = 16 * 1024
# Seconds to keep reading a refused body: closing at once would reset the connection, and the answer would be lost.
LINGER_SECONDS = 2.0

# Requests in progress at once. Python runs one thread at a time: more of them would only slow each other down.
THREADS = 8
MOST_WAITING = 64
MOST_WAITING_OF_ONE_ADDRESS = 32
WAITING_SECONDS = 10.0
# An answer "come back later" is delayed, so that a client that retries at once does not ask often.
BUSY_ANSWER_SECONDS = 1.0
LARGE_BODIES = 4
PIECE_BYTES = 64 * 1024
COMPRESSED_TYPES = ("text/", "application/json", "image/svg+xml")

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class HttpRefusal(Exception):
    """A request that does not reach Django, and what it is answered."""

    def __init__(self, status: HTTPStatus, detail: Promise | str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class Gone(Exception):
    """The visitor went away before the request was served."""


class Threads:
    """A fixed number of threads, and a short line before them in which the addresses take turns."""

    def __init__(self) -> None:
        self._idle = [ThreadPoolExecutor(1, f"web-{number}") for number in range(THREADS)]
        # By address; the turn of the first one is next.
        self._line: dict[str, deque[asyncio.Future[ThreadPoolExecutor]]] = {}

    @asynccontextmanager
    async def one(self, address: str, goes_away: Receive) -> AsyncIterator[None]:
        """Give the block a thread, in which Django runs everything that is not asynchronous."""
        thread = self._idle.pop() if self._idle else await self._wait(address, goes_away)
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
        finally:
            # A request that was broken off may still run in its thread, and holds it until then.
            done = asyncio.get_running_loop().run_in_executor(thread, close_old_connections)
            done.add_done_callback(lambda _done: self._hand_on(thread))

    async def _wait(self, address: str, goes_away: Receive) -> ThreadPoolExecutor:
        own = len(self._line.get(address, ()))
        if own >= MOST_WAITING_OF_ONE_ADDRESS or sum(map(len, self._line.values())) >= MOST_WAITING:
            raise _busy()
        turn: asyncio.Future[ThreadPoolExecutor] = asyncio.get_running_loop().create_future()
        self._line.setdefault(address, deque()).append(turn)
        gone: asyncio.Future[Any] = asyncio.ensure_future(goes_away())
        try:
            await asyncio.wait([turn, gone], timeout=WAITING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._leave(address, turn)
            raise
        finally:
            is_gone = gone.done()
            gone.cancel()
        if turn.done() and not is_gone:
            return turn.result()
        self._leave(address, turn)
        raise Gone if is_gone else _busy()

    def _leave(self, address: str, turn: asyncio.Future[ThreadPoolExecutor]) -> None:
        if turn.done():
            self._hand_on(turn.result())
            return
        self._line[address].remove(turn)
        if not self._line[address]:
            del self._line[address]

    def _hand_on(self, thread: ThreadPoolExecutor) -> None:
        if not self._line:
            self._idle.append(thread)
            return
        address = next(iter(self._line))
        waiting = self._line.pop(address)
        waiting.popleft().set_result(thread)
        if waiting:
            self._line[address] = waiting


class Gate:
    """The ASGI application: refuses what is too large, too slow or too much, and hands the rest to Django."""

    def __init__(self, django: ASGIHandler) -> None:
        self.refusals = Refusals()
        self._django = django
        self._threads = Threads()
        self._files: Mapping[str, Any] = WhiteNoiseMiddleware().files
        # By path and version: what is the same for everybody is compressed once.
        self._compressed: dict[tuple[str, str], bytes] = {}
        self._large_bodies = asyncio.Semaphore(LARGE_BODIES)
        self._building = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(scope, receive, send)
        except HttpRefusal as refusal:
            self.refusals[refusal.status.name.lower()] += 1
            await _refuse(refusal, scope, receive, send)
        except Gone:
            self.refusals["gone"] += 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(scope["raw_path"]) + len(scope["query_string"]) > MOST_ADDRESS_BYTES:
            raise HttpRefusal(HTTPStatus.REQUEST_URI_TOO_LONG, gettext_lazy("This address is too long."))
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD_BYTES:
            text = gettext_lazy("The head of this request is too large.")
            raise HttpRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)
        path = scope["path"]
        if path == "/livez":
            await _send_response(livez(_bodiless(scope)), send)
        elif file := self._files.get(path):
            await self._send_file(path, file, _bodiless(scope).META, send)
        elif path == STATUS_PATH and (page := kept_status(_bodiless(scope))) is not None:
            await _send_response(page, send)
        elif path == SCHEMA_PATH:
            await self._answer_schema(scope, receive, send)
        elif path == DOCS_PATH and not is_described():
            async with self._building:
                await self._serve(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _answer_schema(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request build it, in a thread; those that come meanwhile wait without one."""
        request = _bodiless(scope)
        async with nullcontext() if is_built(request) else self._building:
            if not is_built(request):
                await self._serve(scope, receive, send)
                return
        answer = schema(request)
        if answer.status_code == HTTPStatus.OK and _takes_gzip(request.META):
            answer.content = self._compress((SCHEMA_PATH, answer["ETag"]), lambda: answer.content)
            answer["Content-Encoding"], answer["Vary"] = "gzip", "Accept, Accept-Encoding"
        await _send_response(answer, send)

    async def _send_file(self, path: str, file: Any, asked: Mapping[str, str], send: Send) -> None:
        """Send what WhiteNoise answers, compressed where the browser takes it and it helps."""
        answer = file.get_response(asked["REQUEST_METHOD"], asked)
        headers = dict(answer.headers)
        is_text = headers.get("Content-Type", "").startswith(COMPRESSED_TYPES)
        if not (is_text and answer.file and answer.status == HTTPStatus.OK and _takes_gzip(asked)):
            await _send_file(answer, send)
            return
        with answer.file as opened:
            content = memoryview(self._compress((path, headers["ETag"]), opened.read))
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        await send(_start(answer.status, headers, len(content)))
        await _send_pieces(_pieces_of(content), send)

    def _compress(self, version: tuple[str, str], read: Callable[[], bytes]) -> bytes:
        if version not in self._compressed:
            self._compressed[version] = gzip.compress(read(), mtime=0)
        return self._compressed[version]

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # What the head names, which the server has checked to be a number.
        length = next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
        is_large = length > MOST_BODY_BYTES and await self._is_signed_in(scope)
        most = MOST_SIGNED_IN_BODY_BYTES if is_large else MOST_BODY_BYTES
        if length > most:
            raise _too_large(most)
        async with self._large_bodies if is_large else nullcontext():
            body = await _read_body(receive, most)
            # The request is read in full: `receive` can now only report a disconnect.
            async with self._threads.one(_address_of(scope), receive):
                await self._django(scope, _replay(body, receive), send)

    async def _is_signed_in(self, scope: Scope) -> bool:
        """Ask the database, when there is a cookie to ask about."""
        request = _bodiless(scope)
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if not key:
            return False
        request.session = SessionStore(key)
        async with self._threads.one(_address_of(scope), _never):
            return await sync_to_async(lambda: get_user(request).is_authenticated)()


async def _read_body(receive: Receive, most: int) -> bytes:
    body, begun_at = bytearray(), asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(BODY_SECONDS) as deadline:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                body += message.get("body", b"")
                if len(body) > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    return bytes(body)
                deadline.reschedule(begun_at + BODY_SECONDS + len(body) / SLOWEST_BYTES_PER_SECOND)
    except TimeoutError:
        raise HttpRefusal(HTTPStatus.REQUEST_TIMEOUT, gettext_lazy("The request did not arrive in time.")) from None


async def _never() -> Message:
    """Stand for a visitor who does not go away: until its body is read, whether one did is not known."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give Django the body that was read, and then what follows it."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return unread.pop() if unread else await receive()

    return receive_again


def _too_large(most: int) -> HttpRefusal:
    detail = gettext_lazy("This request is larger than the %(kilobytes)s kB that are read.") % {
        "kilobytes": most // 1024
    }
    return HttpRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


def _busy() -> HttpRefusal:
    return HttpRefusal(HTTPStatus.SERVICE_UNAVAILABLE, gettext_lazy("Facho is busy. Try again in a few seconds."))


def _address_of(scope: Scope) -> str:
    """Return the visitor's address, or that of a proxy that names none."""
    return scope["client"][0] if scope.get("client") else ""


def _bodiless(scope: Scope) -> ASGIRequest:
    return ASGIRequest(scope, BytesIO())


async def _refuse(refusal: HttpRefusal, scope: Scope, receive: Receive, send: Send) -> None:
    with translation.override(settings.LANGUAGE_CODE):
        detail = str(refusal.detail)
    if scope["path"].startswith(API_PREFIXES):
        code = refusal.status.name.lower()
        response = HttpResponse(
            json.dumps(ApiProblem(code, refusal.status, detail).as_dict()), content_type=CONTENT_TYPE
        )
    else:
        response = HttpResponse(f"{detail}\n", content_type="text/plain; charset=utf-8")
    response.status_code = refusal.status
    scope["state"][REFUSED] = True
    if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
        await asyncio.sleep(BUSY_ANSWER_SECONDS)
    else:
        # Something of the request may not have been read.
        response["Connection"] = "close"
    await send(_start(response.status_code, response.items(), len(response.content)))
    await send({"type": "http.response.body", "body": response.content, "more_body": True})
    if refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (message := await receive())["type"] != "http.disconnect" and message.get("more_body"):
                    pass
    await send({"type": "http.response.body"})


async def _send_response(response: HttpResponse, send: Send) -> None:
    """Send a view's answer; a slow reader holds one piece of memory, and shares the rest with the others."""
    content = memoryview(response.content)
    await send(_start(response.status_code, response.items(), len(content)))
    await _send_pieces(_pieces_of(content), send)


def _pieces_of(content: memoryview) -> Iterable[memoryview]:
    return (content[first : first + PIECE_BYTES] for first in range(0, len(content), PIECE_BYTES))


def _takes_gzip(asked: Mapping[str, str]) -> bool:
    return "gzip" in asked.get("HTTP_ACCEPT_ENCODING", "")


async def _send_file(answer: Any, send: Send) -> None:
    await send(_start(answer.status, answer.headers))
    with answer.file or nullcontext() as file:
        await _send_pieces(iter(partial(file.read, PIECE_BYTES), b"") if file else (), send)


async def _send_pieces(pieces: Iterable[Any], send: Send) -> None:
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        # Sending does not wait while the network takes everything; this gives the others their turn.
        await asyncio.sleep(0)
    await send({"type": "http.response.body"})


def _start(status: int, headers: Any, length: int | None = None) -> Message:
    named = {**HEADERS, **dict(headers)}
    if length is not None:
        named["Content-Length"] = str(length)
    encoded = [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in named.items()]
    return {"type": "http.response.start", "status": int(status), "headers": encoded}


WEB = "web"
# A fifth of Python's own: the event loop waits so long for each thread that computes before it answers `/livez`.
SWITCH_SECONDS = 0.001
DATE_SECONDS = 1.0


def main(descriptor: str) -> None:
    """Run as a child of `facho run`; the argument is the number of the inherited socket."""
    supervisor.keep_few_statements(supervisor.WEB_STATEMENTS)
    asyncio.run(_serve(socket.socket(fileno=int(descriptor)), is_alone=True))


def serve(listening: socket.socket) -> None:
    """Answer on a bound socket until SIGINT or SIGTERM, as one of the processes of the distributed mode."""
    supervisor.share_arenas()
    supervisor.keep_few_statements(supervisor.WEB_STATEMENTS)
    asyncio.run(_serve(listening, is_alone=False))


class WebServer(uvicorn.Server):
    """Ends at once when a signal comes; uvicorn looks for one ten times a second, which costs an idle one the most."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ends = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Wake the loop, which may be waiting for the network."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._ends.set)

    async def main_loop(self) -> None:
        """Write the date that answers bear once a second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(DATE_SECONDS):
                    await self._ends.wait()


def build_application() -> Gate:
    """Return what the HTTP server calls; every address is loaded now, not by the first request."""
    return Gate(get_asgi_application())


async def _serve(listening: socket.socket, *, is_alone: bool) -> None:
    """Answer, and watch whether any process polls; in the distributed mode, report this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # What was loaded so far stays loaded: the garbage collector need not scan it while requests wait.
    gc.freeze()
    application = build_application()
    connections = Connections(most_connections(), application.refusals)
    clock, database = SystemClock(), ThreadGateway(threads=1, storage=open_storage())
    try:
        async with (
            nullcontext() if is_alone else reporting(database, describing(new_owner(WEB), clock)),
            # Of the embedded product its parent looks.
            nullcontext() if is_alone else background(watch_version(database), "version"),
            watching(database, clock, seen),
            background(connections.watch(), "connections"),
        ):
            config = uvicorn.Config(
                application,
                http=partial(BoundedProtocol, connections),  # type: ignore[arg-type]  # called like the class
                ws="none",
                lifespan="off",
                backlog=supervisor.BACKLOG,
                # By Django's settings, as in every other process.
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=3,
            )
            if not is_alone:
                # The socket listens already, and nothing that follows can fail.
                supervisor.notify_ready()
                # uvicorn raises SIGTERM once more when it has ended, and this process has yet to say that it is gone.
                signal.signal(signal.SIGTERM, lambda _number, _frame: None)
            await WebServer(config).serve(sockets=[listening])
    finally:
        await database.close()

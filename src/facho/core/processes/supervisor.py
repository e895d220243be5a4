"""Starts child processes, brings back one that died, and stops them all, whatever happens.

At the end: what a process that lives long takes of its machine, which is garbage, arenas, statements and descriptors.
"""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, NoReturn

from django.db import connection

from facho.core.env import split_bind

STDIN = 0
STARTER = "facho.core.processes"
# Connections that were made and not yet looked at; a burst of strangers must not hide others behind it.
BACKLOG = 512
# What the kernel keeps for a connection, either way, which has it from the socket that listens; it would be megabytes.
BUFFER_BYTES = 128 * 1024
STOP_SECONDS = 15.0
LOOK_SECONDS = 0.5
# A child that dies again and again is not restarted in a tight loop.
MIN_RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 30.0
STABLE_SECONDS = 60.0
# How often a child that is not wanted is thought of again.
WANTED_SECONDS = 5.0
CHECK_SECONDS = 10.0


def run_until_signal(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run on an event loop of its own; SIGINT and SIGTERM set the event that the work is given."""

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        await work(stop)

    asyncio.run(run())


def exit_with_parent() -> None:
    """Stop this process as SIGTERM would, once the pipe that the parent holds on our stdin closes."""

    def wait_for_end() -> None:
        # The bare descriptor: a buffered reader would hold a lock that the interpreter wants at its exit.
        while os.read(STDIN, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, name="parent", daemon=True).start()


def notify_ready() -> None:
    """Tell systemd that this service is ready, where a unit of the type `notify` started it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        # An abstract address begins with a zero byte, which systemd writes as `@`.
        channel.sendto(b"READY=1", "\0" + address[1:] if address.startswith("@") else address)


class CannotListen(Exception):
    """The address cannot be bound; the message says which and why."""


def listen(bind: str) -> socket.socket:
    """Return a listening socket on HOST:PORT; port 0 takes any free one."""
    host, port = split_bind(bind)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            listening.setsockopt(socket.SOL_SOCKET, buffer, BUFFER_BYTES)
        listening.bind(address)
        listening.listen(BACKLOG)
    except (OSError, ValueError) as error:
        raise CannotListen(f"{bind}: {getattr(error, 'strerror', None) or error}") from error
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@dataclass(slots=True)
class Child:
    """A module to run with this interpreter, and the process that runs it now."""

    module: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    inherited: Sequence[socket.socket | IO[str]] = ()
    # Its name in the log, where one module runs several times.
    name: str = ""
    reads_stdout: bool = False
    needs_django: bool = True
    # Asked now and then where a child runs only while somebody wants it.
    is_wanted: Callable[[], bool] | None = None
    process: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    patience: float = MIN_RESTART_SECONDS

    def start(self) -> None:
        """Start the process in a session of its own: Ctrl-C reaches the parent alone, which stops the others."""
        self.process = subprocess.Popen(  # noqa: S603 our own module, no shell
            [sys.executable, "-m", *([STARTER] if self.needs_django else []), self.module, *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if self.reads_stdout else None,
            env={**os.environ, **self.environment},
            pass_fds=[file.fileno() for file in self.inherited],
            start_new_session=True,
            text=True,
        )
        self.started_at = time.monotonic()

    @property
    def stdout(self) -> IO[str]:
        """What the child prints; only where `reads_stdout` was asked for."""
        assert self.process is not None  # noqa: S101 a child is read after its start
        assert self.process.stdout is not None  # noqa: S101
        return self.process.stdout

    @property
    def exit_status(self) -> int | None:
        return self.process.poll() if self.process else None


class Stopped(Exception):
    """SIGINT or SIGTERM arrived."""


def raise_on_signals() -> None:
    """Turn SIGINT and SIGTERM into an exception, so that `finally` blocks run."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


def supervise(
    children: Sequence[Child], *, on_exit: Callable[[Child, int], None], check: Callable[[], None] | None = None
) -> NoReturn:
    """Keep the children running until Stopped is raised; `on_exit` hears of each unexpected end.

    `check` is called every ten seconds, and ends it by an exception.
    """
    check_at = time.monotonic()
    while True:
        for child in children:
            _look_after(child, on_exit)
        if check and time.monotonic() >= check_at:
            check_at = time.monotonic() + CHECK_SECONDS
            check()
        time.sleep(LOOK_SECONDS)


def stop(children: Sequence[Child], *, seconds: float = STOP_SECONDS) -> None:
    """Ask all children to end, in reverse order of their start; kill those that do not within the time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    running = [child.process for child in reversed(children) if child.process and child.process.poll() is None]
    for process in running:
        process.terminate()
    give_up_at = time.monotonic() + seconds
    for process in running:
        try:
            process.wait(max(give_up_at - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _look_after(child: Child, on_exit: Callable[[Child, int], None]) -> None:
    now = time.monotonic()
    if child.process is None and child.is_wanted is not None:
        if now >= child.restart_at and child.is_wanted():
            child.restart_at = 0.0
            child.start()
        else:
            child.restart_at = child.restart_at if child.restart_at > now else now + WANTED_SECONDS
        return
    if child.restart_at:
        if now >= child.restart_at:
            child.restart_at = 0.0
            child.start()
        return
    status = child.exit_status
    if status is None:
        return
    if child.is_wanted is not None and status == 0:
        child.process = None
        return
    was_stable = now - child.started_at >= STABLE_SECONDS
    child.patience = MIN_RESTART_SECONDS if was_stable else min(child.patience * 2, MAX_RESTART_SECONDS)
    child.restart_at = now + child.patience
    on_exit(child, status)


# A poll of an OLT makes tens of thousands of objects, and nearly all of them die without a collector.
NEW_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS = 50_000, 20, 100

# Python lets a thread have the interpreter for ten times as long.
SWITCH_SECONDS = 0.0005

# Of malloc.h, for mallopt.
M_ARENA_MAX = -8
ARENAS = 2

# Enough for what one request asks more than once, and for what a tick and a run repeat.
WEB_STATEMENTS, ENGINE_STATEMENTS = 16, 48


def collect_seldom() -> None:
    """Leave out what the product itself is made of, and look seldom: by default this takes a tenth of a poll's CPU."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS)


def switch_often() -> None:
    """Let a thread that waits for the interpreter have it soon.

    Several statements follow between the end of a run and the next start, and behind each one its thread waits while
    another thread stores rows; with Python's own 5 ms a poller stood idle for half as long again.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def share_arenas() -> None:
    """Let all threads allocate from the same few arenas; call it before any is started.

    glibc gives each thread one of its own, up to eight for a core, and each keeps the most that its thread ever needed
    at once: an engine with its ten threads grew for hours, by another pass of another thread each time.
    """
    # Not every C library has it; those that do not have no such arenas.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)


def keep_few_statements(count: int) -> None:
    """Let each SQLite connection of this process remember few compiled statements.

    Python keeps 128. Of a web thread nearly each is new, by its filter, its page or its list of ids, so that eight
    threads kept growing for 2,000 requests, by 20 MB. An engine repeats a few dozen, others at the turn of an hour.
    """
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["cached_statements"] = count


def release_free_memory() -> None:
    """Return memory to the system that malloc keeps after a peak."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def raise_descriptor_limit() -> int:
    """Allow as many open files and sockets as this user may have, and return how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft

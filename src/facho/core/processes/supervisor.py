"""Starts child processes, brings back one that died, and stops them all, whatever happens."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, NoReturn

STOP_SECONDS = 15.0
LOOK_SECONDS = 0.5
# A child that dies again and again is not restarted in a tight loop.
MIN_RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 30.0
STABLE_SECONDS = 60.0


@dataclass(slots=True)
class Child:
    """A module to run with this interpreter, and the process that runs it now."""

    module: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    inherited: Sequence[socket.socket] = ()
    reads_stdout: bool = False
    process: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    patience: float = MIN_RESTART_SECONDS

    def start(self) -> None:
        """Start the process in a session of its own: Ctrl-C reaches the parent alone, which stops the others."""
        self.process = subprocess.Popen(  # noqa: S603 our own module, no shell
            [sys.executable, "-m", self.module, *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if self.reads_stdout else None,
            env={**os.environ, **self.environment},
            pass_fds=[sock.fileno() for sock in self.inherited],
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
        """None while it runs."""
        return self.process.poll() if self.process else None


class Stopped(Exception):
    """SIGINT or SIGTERM arrived."""


def raise_on_signals() -> None:
    """Turn SIGINT and SIGTERM into an exception, so that `finally` blocks run."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


def supervise(children: Sequence[Child], *, tell: Callable[[Child, int], None]) -> NoReturn:
    """Keep the children running until Stopped is raised; `tell` hears of each unexpected end."""
    while True:
        for child in children:
            _look_after(child, tell)
        time.sleep(LOOK_SECONDS)


def stop(children: Sequence[Child]) -> None:
    """Ask all children to end, in reverse order of their start; kill those that do not within the time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    running = [child.process for child in reversed(children) if child.process and child.process.poll() is None]
    for process in running:
        process.terminate()
    give_up_at = time.monotonic() + STOP_SECONDS
    for process in running:
        try:
            process.wait(max(give_up_at - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _look_after(child: Child, tell: Callable[[Child, int], None]) -> None:
    now = time.monotonic()
    if child.restart_at:
        if now >= child.restart_at:
            child.restart_at = 0.0
            child.start()
        return
    status = child.exit_status
    if status is None:
        return
    was_stable = now - child.started_at >= STABLE_SECONDS
    child.patience = MIN_RESTART_SECONDS if was_stable else min(child.patience * 2, MAX_RESTART_SECONDS)
    child.restart_at = now + child.patience
    tell(child, status)

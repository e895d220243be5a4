"""An engine in a process of its own, built by the product's wiring; without the lock file, since several shall meet."""

import asyncio
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from facho.polling.domain.lease import Shard
from servers.child import end_with_parent

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.05
LOG_LINES = 40


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """A forked engine that starts on a signal."""

    role: str
    pid: int
    log: Path
    begin: int

    def start(self) -> None:
        """Let it schedule and poll."""
        os.write(self.begin, b"b")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; one that is gone already gets none."""
        if not self.is_gone:
            os.kill(self.pid, number)

    @property
    def state(self) -> str:
        """The kernel's letter for what it does: R, S, D, T (stopped), Z (ended)."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "Z"

    @property
    def is_gone(self) -> bool:
        """Tell whether it has ended."""
        return self.state == "Z"

    def problems(self) -> list[str]:
        """Return the end of its log, without what goes as it should."""
        lines = [line for line in self.log.read_text().splitlines() if " INFO " not in line]
        return lines[-LOG_LINES:]

    def stop(self) -> None:
        """End it as a supervisor would: a polite wish, then force."""
        self.signal(signal.SIGTERM)
        if not wait_until(lambda: self.is_gone):
            self.signal(signal.SIGKILL)
        os.waitpid(self.pid, 0)


def fork_engine(
    role: str, folder: Path, *, equip: Callable[[], None] = lambda: None, shard: Shard | None = None
) -> EngineProcess:
    """Fork an engine; call it before this process opens connections or threads.

    With a shard it is the product's engine with all its chores, which takes over from others of its data folder.
    """
    begin, tell = os.pipe()
    log = folder / f"{role}-{os.getpid()}.log"
    pid = os.fork()
    if pid:
        os.close(begin)
        return EngineProcess(role, pid, log, tell)
    os.close(tell)
    end_with_parent()
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    # How a server names our connections.
    os.environ["PGAPPNAME"] = role
    equip()
    if os.read(begin, 1):
        asyncio.run(_poll(shard))
    os._exit(0)


async def _poll(shard: Shard | None) -> None:
    from facho.core.processes.engine import run_engine
    from facho.core.wiring import ENGINE, build_engine, open_parts

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    if shard is not None:
        await run_engine(stop, shard)
        return
    async with open_parts(ENGINE) as parts:
        engine = build_engine(parts)
        await engine.scheduler.scheduler_loop(stop)
        await engine.executor.drain(timeout_seconds=5)


def wait_until(is_true: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS) -> bool:
    """Look again and again until it is true or the time is over; returns whether it became true."""
    give_up_at = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() >= give_up_at:
            return False
        select.select([], [], [], LOOK_SECONDS)
    return True

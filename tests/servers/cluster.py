"""The distributed product as processes on the test run's own database: schedulers, workers, beat, and one Redis."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from servers.child import end_with_parent
from servers.redis import RedisServer

PATIENCE_SECONDS = 90.0
QUEUES = "snmp_default,snmp_retry,snmp_highprio"
# What a test may have set for itself, and a process of the product has to know too.
SHARED_SETTINGS = (
    "FACHO_LEASE_SECONDS",
    "FACHO_PACKET_TIMEOUT_SECONDS",
    "FACHO_POLLERS",
    "FACHO_YIELD_SECONDS",
    "FACHO_SUSPENDED_RETURN",
)


@dataclass(slots=True)
class Cluster:
    """Processes by name; each has its log in the folder."""

    redis: RedisServer
    folder: Path
    environ: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_scheduler(self, name: str = "scheduler") -> None:
        """Start `facho scheduler`."""
        self.start(name, "-m", "facho.core.cli.main", "scheduler")

    def start_worker(self, name: str = "worker", *, slots: int = 10, queues: str = QUEUES) -> None:
        """Start a Celery worker on these queues."""
        options = ["-Q", queues, "-c", str(slots), "-n", f"{name}@%h"]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        self.start(name, "-m", "celery", "-A", "facho.core", "--quiet", "worker", *options, *quiet)

    def start_beat(self, name: str = "beat") -> None:
        """Start beat with a schedule file of its own."""
        schedule = str(self.folder / f"{name}-schedule")
        self.start(name, "-m", "celery", "-A", "facho.core", "--quiet", "beat", "-s", schedule, "--pidfile=")

    def start(self, name: str, *arguments: str) -> None:
        """Start a Python process that ends with this one."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *arguments],
                env=self.environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=end_with_parent,
            )

    def log(self, name: str) -> str:
        """Return what a process said."""
        return (self.folder / f"{name}.log").read_text()

    def logs(self) -> str:
        """Return what all of them said, for a failing test."""
        return "\n".join(f"== {name}\n{self.log(name)[-4000:]}" for name in self.processes)

    def kill(self, name: str) -> None:
        """End a process without a word."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> int:
        """End a process as systemd would, and return its status."""
        process = self.processes.pop(name)
        process.terminate()
        return process.wait(PATIENCE_SECONDS)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal."""
        self.processes[name].send_signal(number)

    def stop_all(self) -> None:
        """End everything, by force what does not want to."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        for process in self.processes.values():
            try:
                process.wait(max(give_up_at - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def cluster_on_test_database(redis: RedisServer, folder: Path, **environ: str) -> Iterator[Cluster]:
    """Have an empty Redis and no process yet; whatever was started is stopped in the end."""
    redis.client().flushall()
    folder.mkdir(exist_ok=True)
    shared = {name: str(getattr(settings, name)) for name in SHARED_SETTINGS}
    database = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    own = {"FACHO_MODE": "distributed", "REDIS_URL": redis.url, "DATABASE_URL": database}
    cluster = Cluster(redis, folder, {**os.environ, **shared, **own, **environ})
    try:
        yield cluster
    finally:
        cluster.stop_all()


def wait_until(is_true: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> None:
    """Look again and again until it is so."""
    give_up_at = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < give_up_at, f"not in time: {what}"
        select.select([], [], [], 0.05)

"""Receivers of traps as processes on a real PostgreSQL: killed, doubled, and without their database for a while."""

import csv
import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from engine.hostile_fleet import FACHO, HEADER
from servers.child import free_port
from servers.cluster import Cluster, wait_until
from servers.postgresql import PostgresqlServer, private_server
from servers.product_folder import create_database
from servers.redis import RedisServer
from traps.test_trap_receiver import trap

pytestmark = [pytest.mark.slow, pytest.mark.any_database]

NAMES = ("first", "second")
# What is stored of traps: rows, different ones, copies that came besides, and how many count as heard.
SUMS = """SELECT COUNT(*), COUNT(DISTINCT onu_number), COALESCE(SUM(repeats), 0),
          (SELECT COALESCE(SUM(heard), 0) FROM traps_olttraps) FROM traps"""
WISHES = "SELECT frame, slot, port, is_whole FROM hint_reads"


@dataclass(frozen=True, slots=True)
class Receivers:
    """Two receivers of one OLT, and a socket at the address of that OLT."""

    cluster: Cluster
    server: PostgresqlServer
    database: str
    ports: dict[str, int]
    olt: socket.socket

    def start(self, name: str) -> None:
        heard = self._listening(name)
        self.cluster.environ["FACHO_TRAPS_BIND"] = f"127.0.0.1:{self.ports[name]}"
        self.cluster.start(name, "-m", "facho.core.cli.main", "traps", "run")
        wait_until(lambda: self._listening(name) > heard, f"{name} listens")

    def _listening(self, name: str) -> int:
        log = self.cluster.folder / f"{name}.log"
        return log.read_text().count("traps.listening") if log.exists() else 0

    def send(self, onus: range, *names: str) -> None:
        """Send a different trap for each ONU, the same to each receiver."""
        for onu in onus:
            for name in names:
                self.olt.sendto(trap(onu=onu, uptime=onu), ("127.0.0.1", self.ports[name]))

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(statement.encode()).fetchall()

    def wait_for(self, *sums: int) -> None:
        wait_until(lambda: self.rows(SUMS) == [sums], f"{sums}, not {self.rows(SUMS)}")


@contextmanager
def two_receivers(folder: Path, redis: RedisServer) -> Iterator[Receivers]:
    (folder / "cluster").mkdir()
    with (
        # Not below the folder of the test: the server runs as another user.
        TemporaryDirectory(prefix="facho-traps-") as open_folder,
        private_server(Path(open_folder)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as olt,
    ):
        olt.bind(("127.0.0.1", 0))
        database = create_database(server.url, "traps")
        own = {"FACHO_MODE": "distributed", "REDIS_URL": redis.url, "DATABASE_URL": database, "FACHO_LANGUAGE": "en"}
        cluster = Cluster(redis, folder / "cluster", {**os.environ, **own, "FACHO_LOG_LEVEL": "INFO"})
        inventory = folder / "olts.csv"
        with inventory.open("w", newline="") as file:
            row = ("OLT", "127.0.0.1", olt.getsockname()[1], "huawei_smartax", "2c", "public")
            csv.writer(file).writerows([HEADER, row])
        for words in (("olt", "import", str(inventory), "--no-jobs"), ("traps", "on")):
            subprocess.run([*FACHO, *words], env=cluster.environ, stdout=subprocess.DEVNULL, timeout=120, check=True)
        ports = {name: free_port(socket.SOCK_DGRAM) for name in NAMES}
        try:
            yield Receivers(cluster, server, database, ports, olt)
        finally:
            cluster.stop_all()


@pytest.mark.parametrize("away_seconds", [3, pytest.param(30, marks=pytest.mark.thorough)])
def test_copies_a_kill_and_a_database_that_is_away_double_nothing(
    tmp_path: Path, redis_server: RedisServer, away_seconds: float
) -> None:
    with two_receivers(tmp_path, redis_server) as receivers:
        for name in NAMES:
            receivers.start(name)

        receivers.send(range(20), *NAMES)
        receivers.wait_for(20, 20, 20, 20)

        receivers.send(range(20, 40), *NAMES)
        receivers.cluster.kill("first")
        wait_until(lambda: receivers.rows(SUMS)[0][0] == 40, "the other receiver stored what both had heard")
        receivers.start("first")
        receivers.send(range(20, 40), "first")
        wait_until(lambda: int(str(receivers.rows(SUMS)[0][2])) >= 40, "copies are counted")
        rows, different, _copies, heard = receivers.rows(SUMS)[0]
        assert (rows, different, heard) == (40, 40, 40)

        receivers.server.stop()
        receivers.send(range(40, 60), *NAMES)
        back_at = time.monotonic() + away_seconds
        while time.monotonic() < back_at:
            select.select([], [], [], 0.2)
        receivers.server.start()
        wait_until(lambda: receivers.rows(SUMS)[0][0] == 60, "what was heard meanwhile is stored")

        receivers.send(range(60, 70), *NAMES)
        wait_until(lambda: receivers.rows(SUMS)[0][0] == 70, "both go on")
        rows, different, _copies, heard = receivers.rows(SUMS)[0]
        assert (rows, different, heard) == (70, 70, 70)
        # No discovery has found the port, so all states are to be read.
        assert receivers.rows(WISHES) == [(0, 0, 0, True)]
        assert all(process.poll() is None for process in receivers.cluster.processes.values()), receivers.cluster.logs()


def test_receivers_may_share_a_port(tmp_path: Path, redis_server: RedisServer) -> None:
    with two_receivers(tmp_path, redis_server) as receivers:
        receivers.ports["second"] = receivers.ports["first"]
        for name in NAMES:
            receivers.start(name)

        for number in range(40):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind(("127.0.0.1", 0))
                sender.sendto(trap(onu=number, uptime=number), ("127.0.0.1", receivers.ports["first"]))

        wait_until(lambda: receivers.rows(SUMS) == [(40, 40, 0, 40)], "each is stored once")

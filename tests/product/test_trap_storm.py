"""A storm of notifications beside the polls of a real product: every slot is served, and the receiver stays small."""

import os
import select
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from random import Random

import pytest

from engine.hostile_fleet import Product, running_product, simulated
from servers.child import free_port
from servers.cluster import wait_until
from traps.test_trap_receiver import trap

pytestmark = [pytest.mark.slow, pytest.mark.any_database]

PER_SECOND = 10_000
TURN_SECONDS = 0.01
SLOT_SECONDS = 300
FLEET, SPEAKER, STRANGER = "127.0.0.2", "127.0.0.3", "127.0.0.9"
OLTS, ONUS = 8, 64
# It has some 100 MB when it starts; what it keeps of a storm is a few thousand traps.
MOST_MEGABYTES = 200
HEARD = "SELECT COALESCE(SUM(heard), 0), COALESCE(SUM(dropped), 0) FROM traps_trapreceiver"
COUNTED = """SELECT (SELECT SUM(heard) FROM traps_trapreceiver)
             + (SELECT COALESCE(SUM(count), 0) FROM trap_senders WHERE reason = 'buffer')"""
SERVED = """SELECT e.node_id, e.slot_at, e.status, (julianday(e.started_at) - julianday(e.slot_at)) * 86400.0
            FROM snmp_executions e WHERE e.origin = 'schedule' AND e.slot_at IS NOT NULL"""
SKIPPED = "SELECT COALESCE(SUM(slots_skipped), 0) FROM snmp_job_hosts"
READS = "SELECT COUNT(*) FROM snmp_executions WHERE origin = 'trap'"
REFUSED = "SELECT address, reason, count FROM trap_senders ORDER BY 1, 2"
WAITING = (
    "SELECT 1 FROM snmp_job_hosts WHERE run_requested_at IS NOT NULL"
    " UNION SELECT 1 FROM snmp_executions WHERE finished_at IS NULL"
)


@dataclass(slots=True)
class Storm:
    """Sends forged, doubled, malformed and real notifications, so many a second, from a thread of its own."""

    port: int
    sent: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def blow(self) -> None:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as olt,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
        ):
            for sender, address in ((olt, SPEAKER), (stranger, STRANGER)):
                sender.bind((address, 0))
                sender.connect(("127.0.0.1", self.port))
            turns, began = cycle(list(self._datagrams(olt, stranger))), time.monotonic()
            while not self._over.is_set():
                due = int((time.monotonic() - began) * PER_SECOND)
                for _ in range(due - self.sent):
                    sender, datagram = next(turns)
                    sender.send(datagram)
                self.sent = max(due, self.sent)
                select.select([], [], [], TURN_SECONDS)

    def _datagrams(self, olt: socket.socket, stranger: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
        rng = Random(19)  # noqa: S311 - seeded on purpose
        for number in range(2_000):
            real = trap(onu=number % ONUS, uptime=number)
            broken = bytearray(real)
            broken[rng.randrange(len(broken))] ^= 0xFF
            yield olt, real
            yield olt, real
            yield olt, trap(onu=number % ONUS, uptime=number, community=b"guess")
            yield olt, bytes(broken)
            yield olt, rng.randbytes(rng.randrange(1, 200))
            yield stranger, real

    @contextmanager
    def blowing(self) -> Iterator[None]:
        thread = threading.Thread(target=self.blow)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


def spread_slots(product: Product, seconds: float) -> set[tuple[int, str]]:
    """Put the next slot of every job into the coming seconds, five minutes before the one after; return them."""
    slots, file = set(), Path(product.environ["FACHO_DATA_DIR"]) / "facho.sqlite3"
    with closing(sqlite3.connect(file, timeout=60)) as database, database:
        nodes = database.execute("SELECT id FROM snmp_job_hosts WHERE NOT is_chain_node ORDER BY id").fetchall()
        first = int(time.time()) + 2
        for number, (node_id,) in enumerate(nodes):
            slot = first + int(number * max(seconds - 4, 1) / len(nodes))
            words = f"{datetime.fromtimestamp(slot, UTC):%Y-%m-%d %H:%M:%S}"
            database.execute(
                "UPDATE snmp_job_hosts SET interval_seconds = ?, offset_seconds = ?, next_run_at = ? WHERE id = ?",
                (SLOT_SECONDS, slot % SLOT_SECONDS, words, node_id),
            )
            slots.add((node_id, words))
    return slots


def served(product: Product) -> dict[tuple[int, str], tuple[str, float]]:
    return {(node, slot[:19]): (status, late) for node, slot, status, late in product.rows(SERVED)}


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.thorough)])
def test_a_storm_of_traps_loses_no_slot_and_costs_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None], seconds: int
) -> None:
    storm = Storm(free_port(socket.SOCK_DGRAM))
    monkeypatch.setenv("FACHO_TRAPS_BIND", f"127.0.0.1:{storm.port}")
    options = ("--vendor", "huawei_smartax", "--onus", str(ONUS))
    with (
        simulated(OLTS, *options, "--bind", f"{FLEET}:0") as fleet,
        simulated(1, *options, "--bind", f"{SPEAKER}:0") as [speaker],
    ):
        lines = [*fleet, speaker]
        olts = {f"OLT {number}": line for number, line in enumerate(lines)}
        with running_product(tmp_path, olts, pollers=4) as product:
            product.command("traps", "on")
            wait_until(lambda: bool(product.rows("SELECT 1 FROM traps_trapreceiver")), "the receiver")
            product.command("node", "run", "--all")
            known = "SELECT COUNT(*) FROM onus_onureading WHERE run_state <> 'unknown'"
            wait_until(lambda: product.rows(known)[0][0] == (OLTS + 1) * ONUS, "all ONUs are known", seconds=300)
            wait_until(lambda: not product.rows(WAITING), "quiet", seconds=300)
            receiver, skipped = product.child("processes.traps"), product.rows(SKIPPED)
            reads, cpu = product.rows(READS)[0][0], cpu_seconds(receiver)

            owed = spread_slots(product, seconds)
            with storm.blowing():
                give_up_at = time.monotonic() + seconds
                while time.monotonic() < give_up_at:
                    product.look()
            cpu = cpu_seconds(receiver) - cpu
            wait_until(lambda: owed <= served(product).keys(), "every slot has its run", seconds=300)
            wait_until(lambda: not product.rows(WAITING), "quiet again", seconds=300)
            # What was not heard was dropped by the kernel, and is counted too.
            wait_until(lambda: product.rows(COUNTED)[0][0] >= storm.sent, "all are counted", seconds=60)

            runs = served(product)
            late = sorted(runs[slot][1] for slot in owed)
            heard, dropped = product.rows(HEARD)[0]
            reasons = product.rows(REFUSED)
            reads = product.rows(READS)[0][0] - reads
            rows = product.rows("SELECT COUNT(*), COALESCE(SUM(repeats), 0) FROM traps")[0]
            places = product.rows("SELECT COUNT(*) FROM hint_reads")[0][0]
            megabytes = product.peak_mb("processes.traps")
            assert product.child("processes.traps") == receiver
            assert product.rows(SKIPPED) == skipped
    record_property("seconds, sent, heard, dropped", f"{seconds}, {storm.sent}, {heard}, {dropped}")
    record_property("not accepted", reasons)
    record_property("rows and copies of traps", rows)
    record_property("slots owed, served", f"{len(owed)}, {sum(runs[slot][0] == 'SUCCESS' for slot in owed)}")
    record_property("slots late, median and most, in seconds", f"{late[len(late) // 2]:.1f}, {late[-1]:.1f}")
    record_property("reads because of traps, places", f"{reads}, {places}")
    record_property("memory of the receiver, MB; its CPU, s", f"{megabytes:.0f}; {cpu:.1f}")
    assert {runs[slot][0] for slot in owed} == {"SUCCESS"}
    assert megabytes <= MOST_MEGABYTES
    assert {"unknown_sender", "community", "malformed", "rate"} <= {reason for _address, reason, _count in reasons}
    # One port of one OLT is spoken of, and by damage some others, which are read by one walk.
    assert reads <= places * (seconds / 10 + 2)

"""The storm: two schedulers, three workers, many OLTs under load, and in one run every fault that may come.

Run as a script with servers of its own; the order comes as JSON on stdin, the findings leave as JSON. It only brings
things about and notes what it saw; the claims are the test's.
"""

import codecs
import json
import os
import re
import select
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import redis

from servers.cluster import Cluster, wait_until
from servers.postgresql import PostgresqlServer, private_server
from servers.redis import RedisServer, private_redis
from slot_audit import audit_database, install_steps

LEASE_SECONDS = 5.0
# Longer than a simulated OLT waits for its turn on a busy machine: an answer given up leaves two questions under way.
PACKET_SECONDS = 2.0
INTERVAL_SECONDS = 10
POLLERS = 30
PAUSE_SECONDS = 4.0
# Longer than the lease: others have taken over when the process goes on.
STOPPED_SECONDS = LEASE_SECONDS + 3.0
SETTLE_SECONDS = 60.0
STARTED = "scheduler.started"
LAST_WORDS = 4000
# Notes who held which device from when to when, whoever wrote it.
TURNS = """
CREATE TABLE turns (number bigserial PRIMARY KEY, execution_id bigint, token bigint, owner text, port integer,
                    status text, at timestamptz);
CREATE FUNCTION note_turn() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO turns (execution_id, token, owner, port, status, at)
   VALUES (NEW.id, NEW.token, NEW.owner, NEW.port, NEW.status, clock_timestamp()); RETURN NEW; END $$;
CREATE TRIGGER note_insert AFTER INSERT ON snmp_executions FOR EACH ROW EXECUTE FUNCTION note_turn();
CREATE TRIGGER note_update AFTER UPDATE OF status ON snmp_executions FOR EACH ROW EXECUTE FUNCTION note_turn();
"""
PUSHED = re.compile(rb'"LPUSH" "(snmp_\w+|zabbix_scheduler)" "((?:[^"\\]|\\.)*)"')


def main() -> None:
    """Play the order of stdin."""
    order = json.load(sys.stdin)
    folder = Path(order["folder"])
    for name in ("postgresql-server", "redis", "cluster"):
        (folder / name).mkdir()
    with private_server(folder / "postgresql-server") as database, private_redis(folder / "redis") as broker:
        _enter_product(database, broker)
        cluster = Cluster(broker, folder / "cluster", dict(os.environ))
        found = _play(cluster, database, order)
    json.dump(found, sys.stdout)


def _enter_product(database: PostgresqlServer, broker: RedisServer) -> None:
    """Make this process one of the distributed product, on an empty database."""
    with psycopg.connect(f"{database.url.rpartition('/')[0]}/postgres", autocommit=True) as server:
        server.execute("CREATE DATABASE facho")
    os.environ |= {
        "FACHO_MODE": "distributed",
        "DATABASE_URL": database.url,
        "REDIS_URL": broker.url,
        "FACHO_LEASE_SECONDS": str(LEASE_SECONDS),
        "FACHO_PACKET_TIMEOUT_SECONDS": str(PACKET_SECONDS),
        "FACHO_POLLERS": str(POLLERS),
        "FACHO_LOG_LEVEL": "INFO",
    }
    from facho.core import data_folder
    from facho.core.env import Mode, read_environment
    from facho.core.product import open_product

    data_folder.prepare(data_folder.DataFolder.of(read_environment(os.environ)), mode=Mode.EMBEDDED)
    open_product()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", interactive=False, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(TURNS)
    install_steps()


def _play(cluster: Cluster, database: PostgresqlServer, order: dict[str, Any]) -> dict[str, Any]:
    from crash.devices import simulated
    from facho.simulator.server import SimulatorConfig
    from facho.simulator.world import STILL

    config = SimulatorConfig(vendor="huawei_smartax", olts=order["olts"], onus=8, latency_ms=20, life=STILL)
    with simulated(config) as devices, every_message_twice(cluster.redis) as doubled:
        try:
            _add_olts(devices)
            _start(cluster)
            begun_at = time.time()
            wait_until(lambda: _served_since(begun_at) >= order["olts"], "every OLT once", seconds=120)
            takeovers = _strike(cluster, database)
            last_fault_at = time.time()
            served = _watch_served(last_fault_at, order["olts"])
            _let_it_end()
            ended = {
                name: f"{process.returncode}: {cluster.log(name)[-LAST_WORDS:]}"
                for name, process in cluster.processes.items()
                if process.poll() is not None
            }
        finally:
            cluster.stop_all()
        return {
            "takeover_seconds": takeovers,
            "served_again_seconds": served,
            "ended_by_themselves": ended,
            "doubled_messages": dict(doubled),
            "seconds_under_load": last_fault_at - begun_at,
            **_findings(devices),
        }


def _add_olts(devices: Any) -> None:
    """Give each OLT a master with a chain member, spread over the interval."""
    from django.utils import timezone

    from facho.polling.domain.execution_state import QueryType
    from facho.snmp_jobs.models import SnmpJob
    from facho.snmp_jobs.store import grid_of
    from factories import chain_to, make_job, make_node, make_olt

    discovery = make_job(query_type=QueryType.DISCOVERY, columns=())
    for olt in devices.olts:
        row = make_olt(port=olt.port, vendor=olt.vendor)
        node = make_node(row, discovery, next_run_at=None, interval_seconds=INTERVAL_SECONDS)
        node.offset_seconds = row.id % INTERVAL_SECONDS
        # On its grid from the first run on: slots are counted from there.
        node.next_run_at = grid_of(node).next_after(timezone.now())
        node.save(update_fields=["offset_seconds", "next_run_at"])
        chain_to(node)
    # A run that is not over by its next slot counts as a failure of its node; the storm alone must not suspend it.
    SnmpJob.objects.update(retry_delay_seconds=1, max_attempts=50)


def _start(cluster: Cluster) -> None:
    from facho.zabbix_pollers.models import LeaderLease

    workers = [f"worker-{number}" for number in range(3)]
    for name in workers:
        cluster.start_worker(name, slots=POLLERS // 2)
    # With so short a lease, what a scheduler claims is given up before a worker has started.
    wait_until(lambda: all("worker.started" in cluster.log(name) for name in workers), "the workers")
    cluster.start_scheduler("scheduler-0")
    wait_until(LeaderLease.objects.exists, "a leader")
    _start_scheduler(cluster, "scheduler-1")
    cluster.start_worker("small", slots=2, queues="zabbix_scheduler")
    for name in ("beat-0", "beat-1"):
        cluster.start_beat(name)


def _start_scheduler(cluster: Cluster, name: str) -> None:
    """Start a scheduler, and wait until it is there: who begins to watch the leader later, takes over later."""
    before = cluster.log(name).count(STARTED) if (cluster.folder / f"{name}.log").exists() else 0
    cluster.start_scheduler(name)
    wait_until(lambda: cluster.log(name).count(STARTED) > before, "a scheduler")


def _strike(cluster: Cluster, database: PostgresqlServer) -> dict[str, float]:
    """Bring all faults about, one after the other, and measure how long nobody led."""
    takeovers = {}
    leader = _leader_of(cluster)
    takeovers["leader killed"] = _until_another_leads(lambda: cluster.kill(leader))
    _start_scheduler(cluster, leader)
    _pass(PAUSE_SECONDS)
    cluster.kill("worker-0")
    _pass(PAUSE_SECONDS)
    cluster.start_worker("worker-0", slots=POLLERS // 2)
    cluster.signal("worker-1", signal.SIGSTOP)
    _pass(STOPPED_SECONDS)
    cluster.signal("worker-1", signal.SIGCONT)
    _pass(PAUSE_SECONDS)
    leader = _leader_of(cluster)
    takeovers["leader stopped"] = _until_another_leads(lambda: cluster.signal(leader, signal.SIGSTOP))
    _pass(STOPPED_SECONDS - LEASE_SECONDS)
    cluster.signal(leader, signal.SIGCONT)
    _pass(PAUSE_SECONDS)
    cluster.redis.client().flushall()
    _pass(PAUSE_SECONDS)
    cluster.redis.kill()
    _pass(PAUSE_SECONDS)
    cluster.redis.start()
    _pass(PAUSE_SECONDS)
    database.stop()
    database.start()
    _pass(PAUSE_SECONDS)
    cluster.kill("worker-2")
    cluster.start_worker("worker-2", slots=POLLERS // 2)
    return takeovers


def _until_another_leads(strike: Callable[[], None]) -> float:
    former = _leader()
    strike()
    began_at = time.monotonic()
    wait_until(lambda: _leader() not in ("", former), "a takeover", seconds=60)
    return time.monotonic() - began_at


def _leader_of(cluster: Cluster) -> str:
    """Name the scheduler process that leads; the small worker never does while one lives."""
    pid = int(_leader().split("/")[-2])
    return next(name for name, process in cluster.processes.items() if process.pid == pid)


def _leader() -> str:
    from facho.zabbix_pollers.models import LeaderLease

    return str(_again(lambda: LeaderLease.objects.values_list("owner", flat=True).first() or ""))


def _again(ask: Callable[[], Any]) -> Any:
    """Ask the database, once more when a restart has cut the connection."""
    from django.db import Error, connection

    try:
        return ask()
    except Error:
        connection.close()
        return ask()


def _pass(seconds: float) -> None:
    began_at = time.monotonic()
    wait_until(lambda: time.monotonic() - began_at >= seconds, "time passes")


def _served_since(moment: float) -> int:
    return len(_served(moment))


def _served(moment: float) -> dict[int, float]:
    """Return when each OLT had its first master that began and succeeded after the moment."""
    from facho.executions.models import Execution

    since = datetime.fromtimestamp(moment, UTC)
    rows = Execution.objects.filter(started_at__gte=since, status="SUCCESS", chain_position=0).order_by("-finished_at")
    return _again(
        lambda: {olt: end.timestamp() - moment for olt, end in rows.values_list("olt_id", "finished_at") if end}
    )


def _watch_served(moment: float, olts: int) -> list[float]:
    """Wait until every OLT was served again, and return after how long each was."""
    wait_until(lambda: _served_since(moment) >= olts, "every OLT again", seconds=SETTLE_SECONDS)
    return sorted(_served(moment).values())


def _let_it_end() -> None:
    """Disable every master, and let what was begun come to its end and be reported."""
    from django.utils import timezone

    from facho.executions.models import Execution
    from facho.snmp_jobs.models import WorkflowNode
    from facho.snmp_jobs.store import NodeChange, change_nodes

    def has_ended() -> bool:
        is_planned = WorkflowNode.objects.exclude(next_run_at=None).exists()
        return not is_planned and not Execution.objects.filter(finished_at=None).exists()

    masters = WorkflowNode.objects.filter(is_chain_node=False)
    change_nodes(masters, NodeChange(enabled=False), now=timezone.now())
    wait_until(has_ended, "the end", seconds=SETTLE_SECONDS)
    with suppress(AssertionError):
        wait_until(lambda: not audit_database().unaccounted, "the log", seconds=SETTLE_SECONDS / 2)


def _findings(devices: Any) -> dict[str, Any]:
    from crash.devices import judge
    from facho.executions.models import Execution, ExecutionAttempt
    from facho.onus.models import Onu

    rows = list(Execution.objects.all())
    held, histories = _load_turns()
    audit = audit_database()
    verdict = judge(devices.packets, held, answer_within=PACKET_SECONDS)
    ends = Counter(sum(status in ("SUCCESS", "FAILED", "INTERRUPTED", "SKIPPED") for status in h) for h in histories)
    successes = ExecutionAttempt.objects.filter(status="SUCCESS").values_list("execution_id", flat=True)
    return {
        "executions": len(rows),
        "states": dict(Counter(row.status for row in rows)),
        "errors": dict(Counter(f"{row.task_type.partition('_')[0]}: {row.error}" for row in rows if row.error)),
        "ends_per_execution": {str(count): number for count, number in ends.items()},
        "doubled_slots": [
            key
            for key, count in Counter((row.node_id, str(row.slot_at)) for row in rows if row.slot_at).items()
            if count > 1
        ],
        "owed_slots": audit.owed,
        "fates": dict(audit.fates),
        "unaccounted_slots": audit.unaccounted,
        "runs_without_slot": audit.without_slot,
        "doubled_successes": [pk for pk, count in Counter(successes).items() if count > 1],
        "doubled_onus": Onu.objects.filter(is_present=True).count() - 8 * len(devices.olts),
        "overlaps": verdict.overlaps[:5],
        "strays": verdict.strays[:5],
        "max_in_flight": devices.max_in_flight,
        "packets": len(devices.packets),
    }


def _load_turns() -> tuple[list[Any], list[list[str]]]:
    """Return who held which device when, and every state that each execution had."""
    from django.db import connection

    from crash.devices import Held

    with connection.cursor() as cursor:
        cursor.execute("SELECT execution_id, token, owner, port, status, at FROM turns ORDER BY number")
        events = cursor.fetchall()
    by_execution: dict[int, list[Any]] = {}
    for event in events:
        by_execution.setdefault(event[0], []).append(event)
    held = []
    for history in by_execution.values():
        for number, (execution_id, token, owner, port, status, at) in enumerate(history):
            if status == "RUNNING":
                until = history[number + 1][5].timestamp() if number + 1 < len(history) else None
                pid = int(owner.split("/")[-2]) if owner else 0
                held.append(Held(f"{execution_id}.{token}", port, pid, at.timestamp(), until))
    return held, [[event[4] for event in history] for history in by_execution.values()]


@contextmanager
def every_message_twice(server: RedisServer) -> Iterator[Counter[str]]:
    """Send each message once more, as it was, whenever someone sends one; counts them by queue."""
    known: set[bytes] = set()
    doubled: Counter[str] = Counter()
    client = redis.Redis(port=server.port)

    def listen() -> None:
        while True:
            try:
                for queue, message in _sent(server):
                    if message not in known:
                        known.add(message)
                        doubled[queue] += 1
                        client.lpush(queue, message)
            except (OSError, redis.RedisError):
                # The server is away: those who send have nothing to send it to either.
                select.select([], [], [], 0.2)

    Thread(target=listen, daemon=True).start()
    yield doubled


def _sent(server: RedisServer) -> Iterator[tuple[str, bytes]]:
    """Read along, and yield what anyone puts into a queue."""
    rest = b""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"MONITOR\r\n")
        while block := connection.recv(262_144):
            *lines, rest = (rest + block).split(b"\r\n")
            for line in lines:
                if found := PUSHED.search(line):
                    yield found[1].decode(), codecs.escape_decode(found[2])[0]


if __name__ == "__main__":
    main()

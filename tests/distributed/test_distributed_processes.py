"""The distributed product as real processes: a scheduler, workers, Redis and PostgreSQL."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Thread

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import Settings

from deploy.deploy_files import compose_command
from distributed.simulated_olts import LONG, QUICK, add, has_ended, is_running, simulated
from facho.core.product import BAD_CONFIGURATION
from facho.executions import store
from facho.executions.models import Execution, ExecutionAttempt, Origin, ProductProcess
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.zabbix_pollers.models import LeaderLease, Poller, PollerStatus
from factories import give_secrets
from servers.cluster import Cluster, wait_until
from servers.redis import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.postgresql]

# A claim that no worker takes is given up after one and a half of it, so workers are started first.
LEASE_SECONDS = 6.0


@pytest.fixture(autouse=True)
def _short_times(settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS, settings.FACHO_LEASE_SECONDS = 0.5, LEASE_SECONDS


def test_what_is_due_runs_in_a_worker_and_what_a_person_asks_for_runs_first(cluster: Cluster) -> None:
    with simulated(QUICK) as olts:
        [node] = add(olts)
        cluster.start_worker()
        cluster.start_scheduler()
        wait_until(has_ended, "the run")
        WorkflowNode.objects.filter(id=node.id).update(run_requested_at=timezone.now())
        wait_until(lambda: has_ended(2), "the run by hand")

    first, second = Execution.objects.order_by("id")
    assert (first.origin, second.origin) == (Origin.SCHEDULE, Origin.MANUAL)
    assert first.owner.startswith("worker/")
    assert olts[0].counters.max_in_flight == 1
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()


def test_a_try_that_failed_goes_to_the_queue_of_retries_after_its_delay(cluster: Cluster) -> None:
    """S3-15."""
    with simulated(QUICK) as olts:
        add(olts)
        SnmpJob.objects.update(retry_delay_seconds=1, max_attempts=2)
        Olt.objects.update(port=9)
        give_secrets(community="public")
        cluster.start_worker(queues="snmp_default")
        cluster.start_scheduler()
        wait_until(lambda: Execution.objects.filter(status=ExecutionState.PENDING, attempt=2).exists(), "a retry")
        wait_until(lambda: cluster.redis.client().llen("snmp_retry") == 1, "its message")


def test_the_claim_of_a_run_is_a_key_that_ends_with_it(cluster: Cluster) -> None:
    """S3-07, S3-13: `lock:snmp:host:<id>`, for a lease of 60 s unless the setting says otherwise."""
    with simulated(LONG) as olts:
        [node] = add(olts)
        key = f"lock:snmp:host:{node.workflow.olt_id}"
        cluster.start_worker()
        cluster.start_scheduler()
        wait_until(lambda: bool(cluster.redis.client().exists(key)), "the key")
        wait_until(is_running, "the run")
        seen = [cluster.redis.client().pttl(key) for _ in range(20)]
        wait_until(has_ended, "the end")
        wait_until(lambda: not cluster.redis.client().exists(key), "the key is gone")

    assert all(0 < milliseconds <= LEASE_SECONDS * 1000 for milliseconds in seen)


def test_a_worker_that_is_stopped_hands_back_what_does_not_finish(cluster: Cluster) -> None:
    with simulated(SimulatorConfig(vendor="huawei_smartax", onus=4_000, latency_ms=100, life=STILL)) as olts:
        add(olts)
        cluster.start_worker()
        cluster.start_scheduler()
        wait_until(is_running, "the run")

        assert cluster.stop("worker") == 0

        assert not is_running()
        assert Execution.objects.get().attempt == 1
        assert "Traceback" not in cluster.log("worker")


def test_a_cancelled_run_ends_within_five_seconds_in_another_process(cluster: Cluster, settings: Settings) -> None:
    cluster.environ["FACHO_LEASE_SECONDS"] = "60"
    with simulated(LONG) as olts:
        add(olts)
        cluster.start_worker()
        cluster.start_scheduler()
        wait_until(is_running, "the run")

        store.cancel(Execution.objects.get().id, now=timezone.now())

        wait_until(lambda: has_ended(1, ExecutionState.INTERRUPTED), "the end", seconds=5)


def test_a_killed_worker_costs_a_try_and_its_olt_is_served_by_another(cluster: Cluster) -> None:
    with simulated(LONG) as olts:
        add(olts)
        SnmpJob.objects.update(retry_delay_seconds=1)
        cluster.start_worker("first")
        cluster.start_scheduler()
        wait_until(is_running, "the run")
        cluster.kill("first")
        cluster.start_worker("second")
        wait_until(has_ended, "the second try")

    execution = Execution.objects.get()
    assert list(execution.attempts.order_by("number").values_list("status", flat=True)) == ["FAILED", "SUCCESS"]
    assert olts[0].counters.max_in_flight == 1


def test_a_killed_leader_is_followed_by_the_other_scheduler(cluster: Cluster) -> None:
    with simulated(QUICK) as olts:
        [node] = add(olts)
        cluster.start_worker()
        cluster.start_scheduler("first")
        wait_until(LeaderLease.objects.exists, "a leader")
        cluster.start_scheduler("second")
        wait_until(has_ended, "a run")
        wait_until(lambda: "scheduler.started" in cluster.log("second"), "the second scheduler")
        killed_at = timezone.now()
        former = LeaderLease.objects.get().owner

        cluster.kill("first")

        wait_until(lambda: LeaderLease.objects.get().owner != former, "the takeover", seconds=LEASE_SECONDS + 5)
        WorkflowNode.objects.filter(id=node.id).update(next_run_at=killed_at + timedelta(seconds=1))
        wait_until(lambda: has_ended(2), "another run")


def test_without_redis_everything_goes_on_and_with_it_again_too(cluster: Cluster) -> None:
    with simulated(QUICK) as olts:
        [node] = add(olts)
        cluster.start_worker()
        cluster.start_scheduler()
        wait_until(has_ended, "a run with Redis")
        cluster.redis.kill()
        try:
            WorkflowNode.objects.filter(id=node.id).update(run_requested_at=timezone.now())
            wait_until(lambda: has_ended(2), "a run without Redis")
        finally:
            cluster.redis.start()
        wait_until(lambda: "redis.back" in cluster.log("scheduler"), "the scheduler finds it again")
        WorkflowNode.objects.filter(id=node.id).update(run_requested_at=timezone.now())
        wait_until(lambda: has_ended(3), "a run with Redis again")
        assert cluster.processes["worker"].poll() is None


def test_flushing_redis_costs_a_moment_and_no_run(cluster: Cluster) -> None:
    """S3-07 without Redis' memory: the claim is the row."""
    # Long enough for a worker to start before the claim is given up.
    cluster.environ["FACHO_LEASE_SECONDS"] = "30"
    with simulated(QUICK) as olts:
        add(olts)
        cluster.start_scheduler()
        wait_until(lambda: cluster.redis.client().llen("snmp_default") == 1, "the message")
        cluster.redis.client().flushall()
        cluster.start_worker()
        wait_until(has_ended, "the run")

    assert Execution.objects.get().attempts.count() == 1


def test_no_message_and_no_key_holds_a_credential(cluster: Cluster) -> None:
    """Everything that any process says to Redis is read along."""
    canary = "canary-9b1e"
    with simulated(QUICK) as olts, everything_said_to(cluster.redis) as heard:
        add(olts)
        give_secrets(community=canary)
        cluster.start_worker()
        # On a busy machine it starts later than the scheduler waits for a worker.
        wait_until(lambda: "worker.started" in cluster.log("worker"), "a worker")
        cluster.start_scheduler()
        cluster.start_beat()
        wait_until(ExecutionAttempt.objects.filter(status=ExecutionState.FAILED).exists, "a failed try")
        wait_until(lambda: b"zabbix_scheduler_loop_task" in heard, f"a message of beat: {cluster.log('beat')}")

    assert b"execute_one" in heard
    assert canary.encode() not in heard


@contextmanager
def everything_said_to(server: RedisServer) -> Iterator[bytearray]:
    """Read along what all clients say, as bytes."""
    heard = bytearray()

    def listen(connection: socket.socket) -> None:
        connection.sendall(b"MONITOR\r\n")
        while block := connection.recv(65_536):
            heard.extend(block)

    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        listener = Thread(target=listen, args=[connection], daemon=True)
        listener.start()
        try:
            yield heard
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            listener.join()


NO_REDIS = {"REDIS_URL": "redis://127.0.0.1:1/0"}, "Redis does not answer"


@pytest.mark.parametrize(
    ("what", "broken", "said", "status"),
    [
        ("scheduler", {"FACHO_MODE": "embedded"}, "FACHO_MODE", BAD_CONFIGURATION),
        ("scheduler", {"REDIS_URL": ""}, "REDIS_URL", BAD_CONFIGURATION),
        ("scheduler", {"DATABASE_URL": ""}, "DATABASE_URL", BAD_CONFIGURATION),
        ("scheduler", {"DATABASE_URL": "postgresql://facho:hunter2@127.0.0.1:1/facho"}, "database refused", 1),
        ("scheduler", *NO_REDIS, 1),
        ("web", *NO_REDIS, 1),
        ("worker", *NO_REDIS, 1),
        ("beat", *NO_REDIS, 1),
    ],
)
def test_what_cannot_work_does_not_start(
    cluster: Cluster, what: str, broken: dict[str, str], said: str, status: int
) -> None:
    """78 says that another start will not help, 1 that it may."""
    command = ["-m", "facho.core.cli.main", what]
    if what in ("worker", "beat"):
        command = ["-m", "celery", "-A", "facho.core", what]

    ended = subprocess.run(
        [sys.executable, *command], env={**cluster.environ, **broken}, capture_output=True, text=True, timeout=60
    )

    assert ended.returncode == status
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout


# In the order in which they start; the last carries out what beat sends.
PARTS = ("web", "scheduler", "traps", "worker", "beat", "beat-worker")
REPORTING = ["beat", "scheduler", "traps", "web", "worker", "worker"]
MODULES = {"celery": "celery", "facho": "facho.core.cli.main"}


@pytest.fixture
def deployed(cluster: Cluster) -> Cluster:
    """All parts as compose starts them, with JSON in their logs."""
    cluster.environ |= {"FACHO_LOG_FORMAT": "json", "FACHO_BIND": "127.0.0.1:0", "FACHO_TRAPS_BIND": "127.0.0.1:0"}
    for part in PARTS:
        if part == "beat-worker":
            wait_until(lambda: bool(cluster.redis.client().llen("zabbix_scheduler")), "a message of beat")
        cluster.start(part, *arguments_of(part))
    owners = ProductProcess.objects.values_list("owner", flat=True)
    wait_until(lambda: sorted(owner.partition("/")[0] for owner in owners.all()) == REPORTING, "all reports")
    return cluster


def arguments_of(part: str) -> list[str]:
    program, *arguments = compose_command(part)
    return ["-m", MODULES[program], *arguments]


@pytest.mark.thorough
def test_every_line_that_a_part_prints_is_json_where_its_log_is(deployed: Cluster) -> None:
    statuses = {part: deployed.stop(part) for part in PARTS}

    assert statuses == dict.fromkeys(PARTS, 0)
    printed = {part: deployed.log(part).splitlines() for part in PARTS}
    assert {part for part, lines in printed.items() if lines} >= {"web", "scheduler", "worker", "beat-worker"}
    assert [line for lines in printed.values() for line in lines if not is_object(line)] == []


def is_object(line: str) -> bool:
    with suppress(ValueError):
        return isinstance(json.loads(line), dict)
    return False


@pytest.mark.thorough
def test_every_part_ends_when_the_database_becomes_newer_and_does_not_start_again(deployed: Cluster) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("hosts", "0999_from_the_future")
    try:
        # Ten seconds between two looks, eight that runs may take to finish.
        wait_until(
            lambda: all(each.poll() is not None for each in deployed.processes.values()), "their end", seconds=30
        )
        again = {part: start_in_vain(deployed, part) for part in PARTS}
    finally:
        recorder.record_unapplied("hosts", "0999_from_the_future")

    assert {part: process.returncode for part, process in deployed.processes.items()} == dict.fromkeys(PARTS, 0)
    assert [part for part in PARTS if "database.newer" not in deployed.log(part)] == []
    assert again == dict.fromkeys(PARTS, BAD_CONFIGURATION)


def start_in_vain(cluster: Cluster, part: str) -> int:
    command = [sys.executable, *arguments_of(part)]
    ended = subprocess.run(command, env=cluster.environ, cwd=cluster.folder, capture_output=True, text=True, timeout=60)
    assert "0999_from_the_future" in ended.stderr
    assert [line for line in (ended.stdout + ended.stderr).splitlines() if not is_object(line)] == []
    return ended.returncode

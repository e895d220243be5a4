"""The Celery app: its queues, routes and periods, and what each message does when it arrives."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from queue import Empty

import pytest
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from api.rows import make_onu
from facho.core.processes.celery_app import FachoCelery
from facho.execution_coordinator.models import CoordinatorLog, EventType, OltState
from facho.execution_coordinator.tasks import (
    check_quota_violations_task,
    cleanup_old_coordinator_logs_task,
    coordinator_loop_task,
)
from facho.executions import store as executions
from facho.executions.models import Execution, Origin
from facho.executions.onu_reads import request_read
from facho.executions.store import ClaimRequest
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.zabbix_pollers.store import renew_leadership
from facho.zabbix_pollers.tasks import execute_one, get_poller_task, zabbix_scheduler_loop_task
from factories import give_secrets, make_job, make_node, make_olt

BEAT = {
    "zabbix-scheduler": ("zabbix_pollers.tasks.zabbix_scheduler_loop_task", 1.0, {}),
    "coordinator-loop": ("execution_coordinator.tasks.coordinator_loop_task", 5.0, {}),
    "check-quota-violations": ("execution_coordinator.tasks.check_quota_violations_task", 3600.0, {}),
    "cleanup-coordinator-logs": (
        "execution_coordinator.tasks.cleanup_old_coordinator_logs_task",
        86_400.0,
        {"days_old": 7},
    ),
}


def reported_by(script: str, **environ: str) -> str:
    """Return what the app of a process with this environment says of itself."""
    command = [sys.executable, "-c", f"from facho.core.celery import app; {script}"]
    return subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_redis_url_is_broker_and_result_backend() -> None:
    """S3-22."""
    url = "redis://127.0.0.1:1234/5"

    assert reported_by("print(app.conf.broker_url, app.conf.result_backend)", REDIS_URL=url) == f"{url} {url}"


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        ("snmp_jobs.tasks.execute_one", "snmp_default"),
        ("snmp_jobs.tasks.execute_one_retry", "snmp_retry"),
        ("snmp_get.tasks.get_poller_task", "snmp_highprio"),
        ("zabbix_pollers.tasks.zabbix_scheduler_loop_task", "zabbix_scheduler"),
        *((task, "zabbix_scheduler") for task, _, _ in BEAT.values()),
    ],
)
def test_every_message_has_its_queue(celery_app: FachoCelery, task: str, queue: str) -> None:
    """S0-37, S3-23: registered by its name, and found in its queue."""
    celery_app.loader.import_default_modules()
    assert task in celery_app.tasks

    celery_app.send_task(task)

    with celery_app.connection_for_read() as connection:
        assert connection.SimpleQueue(queue).qsize() == 1


def test_a_task_without_a_route_goes_to_the_default_queue(celery_app: FachoCelery) -> None:
    """S3-23."""
    celery_app.send_task("nobody.knows.this")

    with celery_app.connection_for_read() as connection:
        assert connection.SimpleQueue("snmp_default").qsize() == 1
    assert set(celery_app.amqp.queues) == {"snmp_default", "snmp_retry", "snmp_highprio", "zabbix_scheduler"}


def test_beat_has_the_entries_of_the_specification(celery_app: FachoCelery) -> None:
    """S0-38, S1-22: the tick expires after half a second."""
    schedule = celery_app.conf.beat_schedule

    assert {
        name: (entry["task"], entry["schedule"], entry.get("kwargs", {})) for name, entry in schedule.items()
    } == BEAT
    assert schedule["zabbix-scheduler"]["options"] == {"expires": 0.5}


def test_beat_has_other_periods_when_the_settings_say_so() -> None:
    """S1-22."""
    periods = {"FACHO_COORDINATOR_SECONDS": "7", "FACHO_BEAT_QUOTAS_SECONDS": "60"}
    reported = reported_by("print(*(entry['schedule'] for entry in app.conf.beat_schedule.values()))", **periods)

    assert reported == "1.0 7.0 60.0 86400.0"


def test_both_modes_keep_the_log_for_as_long_as_the_setting_says() -> None:
    """S1-18, S1-22: beat passes the days on, and the leader deletes by the same."""
    script = """
import django
django.setup()
from facho.execution_coordinator.retention import RETENTIONS
[kept] = [each.days for each in RETENTIONS if each.model.endswith('.CoordinatorLog')]
print(kept, app.conf.beat_schedule['cleanup-coordinator-logs']['kwargs'])
"""

    assert reported_by(script, FACHO_COORDINATOR_LOG_DAYS="3") == "3 {'days_old': 3}"


def claim_discovery(port: int) -> int:
    """Claim a simulated OLT as the scheduler does, and return the execution."""
    node = make_node(make_olt(port=port), make_job(query_type=QueryType.DISCOVERY, columns=()))
    wish = ClaimRequest(node.workflow.olt_id, "discovery", Origin.SCHEDULE, node.id)
    [claimed] = executions.claim([wish], owner="scheduler", now=timezone.now())
    connections.close_all()
    return claimed.execution_id


def want_read(simulation: Simulation) -> None:
    """Want the first ONU of a simulated OLT to be read now."""
    [simulated] = simulation.olts
    reported = next(iter(simulated.world.onus))
    olt = make_olt(port=simulated.port, vendor=simulated.vendor)
    give_secrets([olt], community=simulated.community)
    place = reported.place
    onu = make_onu(olt, (place.frame, place.slot, place.port, place.onu), serial=reported.serial)
    request_read(onu.id, now=timezone.now())
    connections.close_all()


def received(app: FachoCelery, queue: str) -> list[tuple[str, int]]:
    """Take the messages of a queue, at least one: its task, and the execution that it names."""
    messages = []
    with app.connection_for_read() as connection, suppress(Empty):
        waiting = connection.SimpleQueue(queue)
        messages.append(waiting.get(timeout=10))
        while True:
            messages.append(waiting.get_nowait())
    return [(message.headers["task"], message.payload[0][0]) for message in messages]


@pytest.fixture
def live_leader() -> None:
    """A scheduler process that renewed its lease a moment ago."""
    renew_leadership("scheduler/elsewhere/1/abcd", now=timezone.now())


@pytest.mark.django_db(transaction=True)
class TestOnTheDatabase:
    """What arrives is carried out as the row says, or by who leads, or not at all."""

    def test_a_tick_without_a_leader_starts_what_is_due_and_sends_one_message(self, celery_app: FachoCelery) -> None:
        """S3-05."""
        make_node(next_run_at=timezone.now())

        assert zabbix_scheduler_loop_task() == 1

        execution = Execution.objects.get()
        with celery_app.connection_for_read() as connection:
            message = connection.SimpleQueue("snmp_default").get(timeout=10)
        assert message.headers["task"] == "snmp_jobs.tasks.execute_one"
        assert message.payload[:2] == [[execution.id], {}]

    def test_the_read_of_one_onu_is_a_get_of_its_own_and_goes_first(self, celery_app: FachoCelery) -> None:
        """S3-23: sent to the high-priority queue as get_poller_task, which reads the ONU from its OLT."""

        async def scene() -> None:
            config = SimulatorConfig(vendor="huawei_smartax", onus=4, life=STILL, offline_share=0.0)
            async with Simulation.start(config) as simulation:
                await asyncio.to_thread(want_read, simulation)
                assert await asyncio.to_thread(zabbix_scheduler_loop_task) == 1
                [(task, execution_id)] = await asyncio.to_thread(received, celery_app, "snmp_highprio")
                assert task == "snmp_get.tasks.get_poller_task"
                await asyncio.to_thread(get_poller_task, execution_id)

        asyncio.run(scene())

        execution = Execution.objects.get()
        assert (execution.task_type, execution.status) == ("onu_read", ExecutionState.SUCCESS)
        assert Onu.objects.get().reading.run_state == "online"

    @pytest.mark.usefixtures("celery_app")
    def test_a_message_delivered_twice_is_carried_out_once(self) -> None:
        async def scene() -> Simulation:
            async with Simulation.start(SimulatorConfig(vendor="huawei_smartax", onus=4, life=STILL)) as simulation:
                execution_id = await asyncio.to_thread(claim_discovery, simulation.olts[0].port)
                await asyncio.gather(*(asyncio.to_thread(execute_one, execution_id) for _ in range(2)))
                await asyncio.to_thread(execute_one, execution_id)
                return simulation

        simulation = asyncio.run(scene())

        execution = Execution.objects.get()
        assert (execution.status, execution.attempts.count()) == (ExecutionState.SUCCESS, 1)
        assert Onu.objects.count() == 4
        assert simulation.olts[0].counters.max_in_flight == 1

    @pytest.mark.usefixtures("celery_app")
    def test_what_a_command_claimed_is_left_to_the_command(self) -> None:
        wish = ClaimRequest(olt_id=make_olt().id, task_type="probe", origin=Origin.PROBE)
        [claimed] = executions.claim([wish], owner="cli/here/1/abcd", now=timezone.now())

        execute_one(claimed.execution_id)

        assert Execution.objects.get().status == ExecutionState.PENDING

    @pytest.mark.usefixtures("celery_app", "live_leader")
    def test_with_a_leader_alive_no_message_does_its_work(self) -> None:
        make_node(next_run_at=timezone.now())

        assert zabbix_scheduler_loop_task() == 0
        assert coordinator_loop_task() is False
        assert check_quota_violations_task() is False
        assert not Execution.objects.exists()
        assert not OltState.objects.exists()

    @pytest.mark.usefixtures("celery_app")
    def test_the_coordinators_message_looks_at_everything_and_starts_nothing(self) -> None:
        """S0-39."""
        make_node(next_run_at=timezone.now())

        assert coordinator_loop_task() is True
        assert check_quota_violations_task() is True
        assert OltState.objects.count() == 1
        assert not Execution.objects.exists()

    def test_log_lines_older_than_a_week_are_deleted(self) -> None:
        """S1-18: the daily entry of beat passes days_old=7."""
        now = timezone.now()
        for days in (6, 8, 30):
            CoordinatorLog.objects.create(
                event_type=EventType.TASK_ADDED, level="INFO", message=str(days), timestamp=now - timedelta(days=days)
            )

        assert cleanup_old_coordinator_logs_task(days_old=7) == 2
        assert cleanup_old_coordinator_logs_task(days_old=7) == 0
        assert [line.message for line in CoordinatorLog.objects.all()] == ["6"]

    def test_without_days_the_setting_says_which_lines_go(self, settings: Settings) -> None:
        settings.FACHO_COORDINATOR_LOG_DAYS = 3
        for days in (2, 4):
            at = timezone.now() - timedelta(days=days)
            CoordinatorLog.objects.create(event_type="OLT_BACK", message="", timestamp=at)

        assert cleanup_old_coordinator_logs_task() == 1
        assert CoordinatorLog.objects.filter(timestamp__gt=timezone.now() - timedelta(days=3)).count() == 1

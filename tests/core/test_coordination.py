"""The specification's scenarios end to end: the real engine with its coordinator against simulated OLTs."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from facho.accounts.roles import Role, give_role
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest, claim
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ACTIVE, ExecutionState
from facho.polling.domain.schedule import hour_of
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.models import Poller, PollerStatus
from factories import make_olt
from servers.modes import Polling, in_database

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# What the specification gives the coordinator to notice, and as long again to act on a loaded machine.
PATIENCE_SECONDS = 50
# What a command claimed, no worker takes.
NOBODY = "cli/nobody"


@pytest.fixture(autouse=True)
def _short_timeouts(settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.2


Until = Callable[[Callable[[], bool]], Awaitable[None]]
Scene = Callable[[Simulation, Until], Awaitable[None]]


def play(
    config: SimulatorConfig, scene: Scene, polling: Polling, *, before: Callable[[], None] = lambda: None
) -> Simulation:
    """Run a scene while the product polls simulated OLTs, each with its vendor's jobs; `before` anybody polls."""

    async def run() -> Simulation:
        async with Simulation.start(config) as simulation:
            for simulated in simulation.olts:
                await in_database(partial(add_olt, simulated.port, simulated.vendor))

            async def until(is_so: Callable[[], bool]) -> None:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while not await in_database(is_so):
                        await polling.look()

            await in_database(before)
            async with polling:
                await scene(simulation, until)
            return simulation

    return asyncio.run(run())


def add_olt(port: int, vendor: str) -> None:
    apply_ready_made_jobs(make_olt(port=port, vendor=vendor), now=timezone.now())


def events() -> set[str]:
    return set(CoordinatorLog.objects.values_list("event_type", flat=True))


def by_shell(node: WorkflowNode) -> None:
    WorkflowNode.objects.filter(id=node.id).update(enabled=False)


def by_admin(node: WorkflowNode) -> None:
    page = f"/admin/snmp_jobs/workflownode/{node.id}/change/"
    form = {"interval_seconds": node.interval_seconds, "priority": node.priority, "_save": "1"}
    assert client().post(page, form).status_code == 302


def by_api(node: WorkflowNode) -> None:
    answer = client().patch(f"/api/v1/nodes/{node.id}/", {"enabled": False}, content_type="application/json")
    assert answer.status_code == 200


WAYS = (by_shell, by_admin, by_api)


def client() -> Client:
    user, _ = User.objects.get_or_create(username="person")
    give_role(user, Role.ADMIN)
    logged_in = Client()
    logged_in.force_login(user)
    return logged_in


def test_a_task_that_a_person_disables_is_gone_within_seconds(polling: Polling, settings: Settings) -> None:
    """S1-06, S1-24, D19: scenario 1, from the shell, the admin and the API alike, each on an OLT of its own."""
    assert settings.FACHO_COORDINATOR_SECONDS <= 5
    trackers = QuotaTracker.objects.filter(task_type="discovery")

    async def scene(_simulation: Simulation, until: Until) -> None:
        await until(is_not_the_end_of_an_hour)
        await in_database(discover_every_ten_seconds)
        await until(lambda: trackers.count() == len(WAYS))
        for node in await in_database(discoveries):
            await until(partial(claim_for_nobody, node))
        await in_database(disable_each_by_another_way)
        await until(lambda: trackers.filter(status="ADJUSTED").count() == len(WAYS))

    play(SimulatorConfig(vendor="huawei_smartax", olts=len(WAYS), onus=8, life=STILL), scene, polling)

    nodes = discoveries()
    claims = Execution.objects.filter(owner=NOBODY)
    assert list(claims.values_list("status", flat=True)) == [ExecutionState.INTERRUPTED] * len(WAYS)
    assert {node.next_run_at for node in nodes} == {None}
    assert all(tracker.quota_required == tracker.quota_completed for tracker in trackers)
    disabled = {node.id for node in nodes}
    assert disabled.isdisjoint(due.node_id for due in load_due_nodes(timezone.now() + timedelta(days=1)))
    assert "TASK_REMOVED" in events()
    planned = {run["node_id"] for plan in ExecutionPlan.objects.filter(status="ACTIVE") for run in plan.plan_data}
    assert planned
    assert disabled.isdisjoint(planned)


def is_not_the_end_of_an_hour() -> bool:
    """Tell whether the scene fits into the present hour, with slots to spare."""
    return hour_of(timezone.now()) == hour_of(timezone.now() + timedelta(seconds=40))


def discover_every_ten_seconds() -> None:
    soon = timezone.now() + timedelta(seconds=5)
    WorkflowNode.objects.filter(job__query_type="discovery").update(interval_seconds=10, next_run_at=soon)


def discoveries() -> list[WorkflowNode]:
    return list(
        WorkflowNode.objects.select_related("job", "workflow").filter(job__query_type="discovery").order_by("id")
    )


def discovery() -> WorkflowNode:
    [node] = discoveries()
    return node


def claim_for_nobody(node: WorkflowNode) -> bool:
    """Leave a claim of the task that no worker takes, as soon as the OLT is free."""
    wish = ClaimRequest(node.workflow.olt_id, "discovery", Origin.MANUAL, node.id)
    return bool(claim([wish], owner=NOBODY, now=timezone.now()))


def disable_each_by_another_way() -> None:
    for disable, node in zip(WAYS, discoveries(), strict=True):
        disable(node)


def test_two_of_four_discoveries_are_a_violation_that_people_see(polling: Polling) -> None:
    """S1-25: scenario 2, for the hour that has just ended."""
    hour = hour_of(timezone.now()).start - timedelta(hours=1)

    def half_an_hour() -> None:
        node = discovery()
        olt = node.workflow.olt
        WorkflowNode.objects.filter(is_chain_node=True).delete()
        WorkflowNode.objects.filter(id=node.id).update(
            interval_seconds=900, offset_seconds=0, next_run_at=hour + timedelta(minutes=30)
        )
        for minute in (0, 15):
            Execution.objects.create(
                olt=olt,
                node=node,
                task_type="discovery",
                status=ExecutionState.SUCCESS,
                slot_at=hour + timedelta(minutes=minute),
                address=olt.address,
                port=olt.port,
                token=0,
                created_at=hour,
                finished_at=hour + timedelta(minutes=minute + 1),
            )

    async def scene(_simulation: Simulation, until: Until) -> None:
        await until(QuotaViolation.objects.filter(period_start=hour).exists)

    # Everything is counted at the first look, and then once a minute.
    play(SimulatorConfig(vendor="huawei_smartax", onus=8, life=STILL), scene, polling, before=half_an_hour)

    violation = QuotaViolation.objects.get(period_start=hour)
    [task] = [task for task in violation.report["tasks"] if task["task_type"] == "discovery"]
    assert (violation.severity, task["completed"], task["required"]) == ("HIGH", 2, 4)
    assert CoordinatorLog.objects.filter(event_type="QUOTA_VIOLATION", level="CRITICAL").exists()
    page = client().get("/admin/execution_coordinator/quotaviolation/").content.decode()
    assert violation.olt.name in page


def test_a_disabled_olt_is_left_alone_within_seconds(polling: Polling) -> None:
    """S1-26: scenario 3; its run stops before the next packet, whatever waits ends."""
    packets: list[int] = []

    async def scene(simulation: Simulation, until: Until) -> None:
        await until(is_not_the_end_of_an_hour)
        await in_database(discover_every_ten_seconds)
        await in_database(
            lambda: WorkflowNode.objects.filter(is_chain_node=False).update(run_requested_at=timezone.now())
        )
        await until(QuotaTracker.objects.exists)
        await until(lambda: Execution.objects.filter(status=ExecutionState.RUNNING, node__isnull=False).exists())
        await in_database(lambda: Olt.objects.update(enabled=False))
        await until(lambda: QuotaTracker.objects.filter(status="INTERRUPTED").exists())
        await until(lambda: not Execution.objects.filter(finished_at__isnull=True).exists())
        packets.append(simulation.olts[0].counters.requests)

    simulation = play(SimulatorConfig(vendor="huawei_smartax", onus=400, latency_ms=60, life=STILL), scene, polling)

    assert [simulation.olts[0].counters.requests] == packets

    assert Execution.objects.filter(status=ExecutionState.INTERRUPTED).exists()
    assert not Execution.objects.filter(status__in=ACTIVE).exists()
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()
    assert not load_due_nodes(timezone.now() + timedelta(days=1))
    assert set(QuotaTracker.objects.values_list("status", flat=True)) == {"INTERRUPTED"}
    assert "OLT_DISABLED" in events()

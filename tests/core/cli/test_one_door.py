"""The same change of a node means the same schedule, whichever door it comes through (decisions D2 and D12, S4-08)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any

import pytest
from cli_runner import Command
from django.db import transaction
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from api.rows import make_user
from core.test_admin_operations import JOB
from facho.accounts.roles import Role
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.polling.domain.schedule import EPOCH, FIRST_RUN_DELAY_SECONDS, MAX_SPREAD_SECONDS
from facho.snmp_jobs.models import Cadence, SnmpJob, WorkflowNode
from facho.snmp_jobs.store import grid_of
from factories import NOW, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db

INTERVALS = (7, 30, 60, 300, 420, 900, 1_800, 3_600, 7_200, 86_400)
HOURS = (None, (time(22), time(5)), (time(11), time(13)))
random_examples = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

Door = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Setup:
    """A node as it is before the change; it is due after so many seconds, or has been for as long."""

    interval_seconds: int
    enabled: bool
    due_seconds: int
    cadence: str
    hours: tuple[time, time] | None
    is_olt_enabled: bool


setups = st.builds(
    Setup,
    interval_seconds=st.sampled_from(INTERVALS),
    enabled=st.booleans(),
    due_seconds=st.one_of(st.integers(-7_200, 0), st.integers(1, 90_000)),
    cadence=st.sampled_from(Cadence.values),
    hours=st.sampled_from(HOURS),
    is_olt_enabled=st.sampled_from((True, True, True, False)),
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "interval_seconds": st.sampled_from(INTERVALS),
        "enabled": st.booleans(),
        "priority": st.integers(0, 100),
    },
)


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every door open at the same moment."""
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)


@contextmanager
def forgotten() -> Iterator[None]:
    """Undo what happens inside: the next door finds the same rows, with the same ids."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def api(db: None) -> APIClient:
    """A program that may do everything."""
    client = APIClient(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN))
    return client


def build(setup: Setup) -> WorkflowNode:
    """Make the node; what is on a grid stands on it, and what is disabled has no time."""
    hours = setup.hours if setup.cadence == Cadence.FIXED_RATE else None
    job, due_at = make_job(), NOW + timedelta(seconds=min(setup.due_seconds, setup.interval_seconds))
    opens, closes = hours or (None, None)
    SnmpJob.objects.filter(id=job.id).update(
        cadence=setup.cadence, hours_from=opens, hours_to=closes, ignores_safe_interval=True
    )
    node = make_node(make_olt(enabled=setup.is_olt_enabled), job, interval_seconds=setup.interval_seconds)
    offset = int((due_at - EPOCH).total_seconds()) % setup.interval_seconds
    has_time = setup.enabled and setup.is_olt_enabled
    WorkflowNode.objects.filter(id=node.id).update(
        enabled=setup.enabled, offset_seconds=offset, next_run_at=due_at if has_time else None
    )
    node = WorkflowNode.objects.select_related("job").get(id=node.id)
    if hours and has_time and due_at > NOW:
        WorkflowNode.objects.filter(id=node.id).update(next_run_at=grid_of(node).next_after(NOW))
    return WorkflowNode.objects.select_related("job", "workflow__olt").get(id=node.id)


def in_the_admin(client: Client, node: WorkflowNode, change: dict[str, Any]) -> None:
    after = {name: change.get(name, getattr(node, name)) for name in ("enabled", "interval_seconds", "priority")}
    posted = {"interval_seconds": str(after["interval_seconds"]), "priority": str(after["priority"])}
    answer = client.post(
        reverse("admin:snmp_jobs_workflownode_change", args=[node.pk]),
        posted | ({"enabled": "on"} if after["enabled"] else {}),
    )
    assert answer.status_code == 302, answer.content.decode()


def over_the_api(client: APIClient, node: WorkflowNode, change: dict[str, Any]) -> None:
    answer = client.patch(f"/api/v1/nodes/{node.pk}/", change, format="json")
    assert answer.status_code == 200, answer.content


def on_the_command_line(facho: Command, node: WorkflowNode, change: dict[str, Any]) -> None:
    options = [
        *(["--interval", str(change["interval_seconds"])] if "interval_seconds" in change else []),
        *(["--priority", str(change["priority"])] if "priority" in change else []),
        *(["--enable" if change["enabled"] else "--disable"] if "enabled" in change else []),
    ]
    outcome = facho("node", "change", str(node.pk), *options)
    assert outcome.status == 0, outcome.err


def by_action(client: Client, model: str, row_id: int, action: str) -> None:
    place = reverse(f"admin:snmp_jobs_{model}_changelist")
    assert client.post(place, {"action": action, "_selected_action": [row_id]}).status_code == 302


def row_after(node: WorkflowNode, door: Door) -> tuple[Any, ...]:
    """Return what a door, and the coordinator who looks afterwards, leave in the row and of its slots."""
    names = ("enabled", "interval_seconds", "priority", "offset_seconds", "next_run_at", "slots_skipped")
    with forgotten():
        coordinator = ExecutionCoordinator()
        coordinator.run_pass(NOW)
        door()
        left = WorkflowNode.objects.values_list(*names).get(id=node.id)
        skipped = list(node.skipped_slots.order_by("slot_at").values_list("slot_at", "reason"))
        coordinator.run_pass(NOW + timedelta(seconds=5))
        assert WorkflowNode.objects.values_list(*names).get(id=node.id) == left
        return *left, skipped


@random_examples
@given(setup=setups, change=changes.filter(bool))
def test_every_door_leaves_the_same_row(
    administrator: Client, api: APIClient, facho: Command, setup: Setup, change: dict[str, Any]
) -> None:
    """D2, D12, S4-08: admin, API and command line, and the admin's actions where they can say the same."""
    with forgotten():
        node = build(setup)
        doors: dict[str, Door] = {
            "admin": partial(in_the_admin, administrator, node, change),
            "API": partial(over_the_api, api, node, change),
            "command line": partial(on_the_command_line, facho, node, change),
        }
        if set(change) == {"enabled"}:
            action = "enable" if change["enabled"] else "disable"
            doors["action on nodes"] = partial(by_action, administrator, "workflownode", node.pk, action)
            doors["action on jobs"] = partial(by_action, administrator, "snmpjob", node.job_id, action)

        rows = {name: row_after(node, door) for name, door in doors.items()}

        assert len(set(map(str, rows.values()))) == 1, rows


@random_examples
@given(setup=setups, interval=st.sampled_from(INTERVALS))
def test_a_longer_interval_brings_no_read_forward_and_a_shorter_one_waits_no_longer_than_itself(
    api: APIClient, setup: Setup, interval: int
) -> None:
    """D2: what is planned stays planned; what is due stays due; and the new grid goes through the next run."""
    with forgotten():
        before = build(setup)
        assume(before.next_run_at is not None and interval != before.interval_seconds)

        over_the_api(api, before, {"interval_seconds": interval})

        after = WorkflowNode.objects.select_related("job").get(id=before.id)
        assert before.next_run_at
        assert after.next_run_at
        if interval > before.interval_seconds:
            assert after.next_run_at >= before.next_run_at
        if before.next_run_at > NOW and not setup.hours:
            assert NOW < after.next_run_at <= max(before.next_run_at, NOW + timedelta(seconds=interval))
            assert after.next_run_at <= before.next_run_at or interval > before.interval_seconds
            last_slot = before.next_run_at - timedelta(seconds=before.interval_seconds)
            assert after.next_run_at - last_slot >= timedelta(seconds=min(interval, before.interval_seconds) - 1)
        if setup.cadence == Cadence.FIXED_RATE and after.next_run_at > NOW and not setup.hours:
            slot_after = grid_of(after).next_after(after.next_run_at)
            assert slot_after - after.next_run_at == timedelta(seconds=interval)


@pytest.mark.parametrize(
    ("before", "after", "due_seconds", "next_seconds"),
    [
        (1_800, 3_600, 1_200, 1_200),
        (3_600, 300, 3_000, 300 - 600 % 300),
        (3_600, 1_800, 3_000, 1_200),
        (3_600, 1_800, 900, 900),
        (300, 600, -20, -20),
        (3_600, 300, -1_000, -100),
    ],
    ids=["longer", "long overdue by the new one", "counted from the last slot", "soon enough", "due", "due for long"],
)
def test_where_a_changed_node_goes_on(
    api: APIClient, before: int, after: int, due_seconds: int, next_seconds: int
) -> None:
    node = build(Setup(before, True, due_seconds, Cadence.FIXED_RATE, None, True))

    over_the_api(api, node, {"interval_seconds": after})

    node.refresh_from_db()
    assert node.next_run_at == NOW + timedelta(seconds=next_seconds)


def test_an_enabled_node_runs_after_a_minute_and_its_spread(api: APIClient) -> None:
    """S4-08, D12: its time is there at once, not when the coordinator looks."""
    node = build(Setup(3_600, False, 0, Cadence.FIXED_RATE, None, True))

    over_the_api(api, node, {"enabled": True})

    node.refresh_from_db()
    assert node.next_run_at
    waits = (node.next_run_at - NOW).total_seconds()
    assert FIRST_RUN_DELAY_SECONDS <= waits < FIRST_RUN_DELAY_SECONDS + MAX_SPREAD_SECONDS


def test_many_nodes_that_are_made_faster_stay_spread(administrator: Client, api: APIClient) -> None:
    """Never a burst: a hundred nodes whose slots are seconds apart do not meet in one second."""
    olt = make_olt()
    nodes = [make_node(olt, next_run_at=NOW + timedelta(seconds=3_000 + n), interval_seconds=3_600) for n in range(60)]

    for node in nodes:
        over_the_api(api, node, {"interval_seconds": 300})

    assert len(set(WorkflowNode.objects.values_list("next_run_at", flat=True))) == len(nodes)


def test_an_unsafe_interval_is_refused_by_every_door(administrator: Client, api: APIClient, facho: Command) -> None:
    node = make_node(job=make_job(columns=("onu.rx_power",)), interval_seconds=86_400)
    fault = "must not be read more often than every"

    answers = [
        administrator.post(
            reverse("admin:snmp_jobs_workflownode_change", args=[node.pk]),
            {"enabled": "on", "interval_seconds": "10", "priority": "50"},
        ).content.decode(),
        api.patch(f"/api/v1/nodes/{node.pk}/", {"interval_seconds": 10}, format="json").content.decode(),
        facho("node", "change", str(node.pk), "--interval", "10").err,
    ]

    assert [fault in answer for answer in answers] == [True] * 3
    assert WorkflowNode.objects.get().interval_seconds == 86_400


def test_a_node_of_a_disabled_olt_begins_when_the_olt_does(api: APIClient) -> None:
    """D12: a job that was prepared on a disabled OLT does not start with it, but a minute later."""
    node = build(Setup(300, False, 0, Cadence.FIXED_RATE, None, False))
    coordinator = ExecutionCoordinator()
    over_the_api(api, node, {"enabled": True})
    coordinator.run_pass(NOW)
    node.refresh_from_db()
    assert node.next_run_at is None

    olt = node.workflow.olt
    type(olt).objects.update(enabled=True)
    later = NOW + timedelta(hours=2)
    coordinator.run_pass(later)

    node.refresh_from_db()
    assert node.next_run_at
    assert node.next_run_at > later


@random_examples
@given(
    setup=setups,
    cadence=st.sampled_from(Cadence.values),
    hours=st.sampled_from(HOURS),
)
def test_a_job_that_is_changed_moves_its_nodes_alike(
    administrator: Client, api: APIClient, setup: Setup, cadence: str, hours: tuple[time, time] | None
) -> None:
    """Cadence and hours are the job's: the admin's form and the API move its nodes alike, and nothing due is lost."""
    with forgotten():
        node = build(setup)
        opens, closes = (hours if cadence == Cadence.FIXED_RATE else None) or (None, None)
        job = node.job
        form = JOB | {
            "name": job.name,
            "slug": job.slug,
            "vendor": job.vendor,
            "interval_seconds": str(job.interval_seconds),
            "ignores_safe_interval": "on",
            "cadence": cadence,
            "hours_from": str(opens or ""),
            "hours_to": str(closes or ""),
            "oids-TOTAL_FORMS": "1",
            "oids-INITIAL_FORMS": "1",
            "oids-0-id": str(job.oids.get().pk),
            "oids-0-position": "0",
            "oids-0-column_key": "onu.description",
        }
        wish = {"cadence": cadence, "hours_from": opens, "hours_to": closes}
        place = reverse("admin:snmp_jobs_snmpjob_change", args=[job.pk])

        def in_admin() -> None:
            assert administrator.post(place, form).status_code == 302

        def over_api() -> None:
            assert api.patch(f"/api/v1/jobs/{job.pk}/", wish, format="json").status_code == 200

        rows = [row_after(node, door) for door in (in_admin, over_api)]

        assert rows[0] == rows[1]
        next_run_at: datetime | None = rows[0][4]
        if node.next_run_at and node.next_run_at <= NOW and not opens and not setup.hours:
            is_fresh = NOW - node.next_run_at < timedelta(seconds=node.interval_seconds)
            assert (next_run_at == node.next_run_at) or not is_fresh

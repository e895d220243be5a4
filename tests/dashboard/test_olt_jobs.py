"""A job on an OLT's page: interval, hours and attempts, the cost of a change before it is saved, and its reach."""

from datetime import time, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from api.rows import make_execution, make_node, make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.execution_coordinator.feasibility import NodeWish, load_feasibility
from facho.hosts.models import Olt, OltGroup
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode

pytestmark = pytest.mark.django_db


def visitor(role: Role = Role.ADMIN, *groups: OltGroup) -> Client:
    user, client = make_user(role), Client(headers={"accept-language": "en"})
    if groups:
        Profile.objects.create(user=user).olt_groups.set(groups)
    client.force_login(user)
    return client


def share(node: WorkflowNode, olt: Olt, **fields: object) -> WorkflowNode:
    """Give another OLT the same job."""
    workflow = Workflow.objects.get_or_create(olt=olt)[0]
    return WorkflowNode.objects.create(workflow=workflow, job=node.job, interval_seconds=300, **fields)


def address(node: WorkflowNode) -> str:
    return f"/olts/{node.workflow.olt_id}/jobs/{node.id}/"


def filled(**changes: object) -> dict[str, object]:
    shown = {"enabled": "on", "interval_seconds": "5m", "max_attempts": 3, "retry_delay_seconds": "2m", "reach": "this"}
    return {**shown, **changes}


def lasting(node: WorkflowNode, seconds: int) -> WorkflowNode:
    """Let the last run of a node have lasted so long."""
    now = timezone.now()
    make_execution(node, ExecutionState.SUCCESS, at=now - timedelta(seconds=seconds), duration_ms=seconds * 1000)
    WorkflowNode.objects.filter(id=node.id).update(last_run_at=now)
    return node


def test_the_page_of_an_olt_leads_operators_to_each_job() -> None:
    node = make_node()
    page = f"/olts/{node.workflow.olt_id}/"

    assert f'href="{address(node)}"' in visitor(Role.OPERATOR).get(page).content.decode()
    assert address(node) not in visitor(Role.VIEWER).get(page).content.decode()
    assert visitor(Role.VIEWER).get(address(node)).status_code == 403
    assert visitor(Role.VIEWER).get(f"{address(node)}cost/").status_code == 403


def test_an_interval_is_changed_on_this_olt_alone() -> None:
    node = make_node()
    other = share(node, make_olt())

    answer = visitor(Role.OPERATOR).post(address(node), {"enabled": "on", "interval_seconds": "10m"})

    assert answer.status_code == 302
    assert WorkflowNode.objects.get(id=node.id).interval_seconds == 600
    assert WorkflowNode.objects.get(id=other.id).interval_seconds == 300
    assert "interval_seconds: 300 → 600" in LogEntry.objects.get().change_message
    visitor(Role.OPERATOR).post(address(node), {"interval_seconds": "10m"})
    assert not WorkflowNode.objects.get(id=node.id).enabled


def test_operators_and_limited_administrators_change_no_job_of_others() -> None:
    group = OltGroup.objects.create(name="mine")
    node = make_node(make_olt(group=group))
    other = share(node, make_olt())

    for client in (visitor(Role.OPERATOR), visitor(Role.ADMIN, group)):
        page = client.get(address(node)).content.decode()
        assert 'name="max_attempts"' not in page
        assert 'name="reach"' not in page
        client.post(address(node), filled(interval_seconds="15m", max_attempts=9, reach="all"))
    assert WorkflowNode.objects.get(id=other.id).interval_seconds == 300
    assert SnmpJob.objects.get().max_attempts == 3
    assert visitor(Role.ADMIN, group).get(address(other)).status_code == 404
    assert visitor().get(f"/olts/{node.workflow.olt_id}/jobs/{other.id}/").status_code == 404


def test_hours_for_only_this_olt_give_it_a_copy_of_the_job_with_its_chain() -> None:
    node = make_node(make_olt("Norte"), name="Read", slug="read")
    SnmpJobOid.objects.create(job=node.job, oid="1.3.6.1.2.1.1.3.0")
    member = make_node(master=node, name="Then", slug="then")
    SnmpJob.objects.filter(id=member.job_id).update(master_job=node.job)
    other = share(node, make_olt())

    page = visitor().get(address(node)).content.decode()
    assert "1 other OLT has the same job" in page
    answer = visitor().post(address(node), filled(hours_from="01:00", hours_to="05:00", max_attempts=2))

    assert answer.status_code == 302
    own = WorkflowNode.objects.select_related("job").get(id=node.id).job
    assert (own.hours_from, own.hours_to, own.max_attempts) == (time(1), time(5), 2)
    assert own.name == "Read · Norte"
    assert [read.oid for read in own.oids.all()] == ["1.3.6.1.2.1.1.3.0"]
    assert WorkflowNode.objects.get(id=member.id).job.master_job == own
    assert WorkflowNode.objects.get(id=other.id).job.hours_from is None


def test_a_refused_change_leaves_no_copy_behind_and_a_forgotten_copy_is_replaced() -> None:
    node = make_node(make_olt("Norte"), name="Read", slug="read")
    share(node, make_olt())
    SnmpJob.objects.create(name="left", slug=f"read-olt{node.workflow.olt_id}", query_type="get")

    page = visitor().post(address(node), filled(hours_from="01:00")).content.decode()
    assert "Set both hours, or neither." in page
    assert "<h1>Read <span" in page
    assert "1 other OLT has the same job" in page
    assert set(SnmpJob.objects.values_list("name", flat=True)) == {"Read", "left"}

    visitor().post(address(node), filled(max_attempts=5))
    assert set(SnmpJob.objects.values_list("name", flat=True)) == {"Read", "Read · Norte"}


def test_for_all_the_job_and_every_interval_change() -> None:
    node = make_node()
    other = share(node, make_olt())

    visitor().post(address(node), filled(interval_seconds="15m", max_attempts=5, reach="all"))

    assert set(WorkflowNode.objects.values_list("interval_seconds", flat=True)) == {900}
    job = SnmpJob.objects.get()
    assert (job.interval_seconds, job.max_attempts) == (900, 5)
    assert WorkflowNode.objects.get(id=other.id).job_id == job.id


def test_a_job_of_its_own_is_not_given_twice() -> None:
    olt = make_olt(vendor="huawei_smartax")
    apply_ready_made_jobs(olt, now=timezone.now())
    node = WorkflowNode.objects.filter(is_chain_node=False, job__query_type="get").first()
    assert node is not None
    share(node, make_olt())
    before = WorkflowNode.objects.filter(workflow__olt=olt).count()
    every = f"{node.interval_seconds}"
    answer = visitor().post(address(node), filled(interval_seconds=every, max_attempts=7))
    assert answer.status_code == 302

    assert apply_ready_made_jobs(olt, now=timezone.now()) == 0
    assert WorkflowNode.objects.filter(workflow__olt=olt).count() == before


def test_the_cost_of_a_change_is_shown_before_it_is_saved_and_nothing_is_written() -> None:
    olt = make_olt("eL norte")
    node = lasting(make_node(olt, name="Read"), 60)
    client = visitor()

    now = client.get(f"{address(node)}cost/?enabled=on&interval_seconds=5m").content.decode()
    often = client.get(f"{address(node)}cost/?enabled=on&interval_seconds=30s").content.decode()
    off = client.get(f"{address(node)}cost/?interval_seconds=5m").content.decode()

    assert "12.0 min of SNMP per hour now, 12.0 min then" in now
    assert "120.0 min then" in often
    assert "This does not fit into the hour." in often
    assert "eL norte needs 120 min" in often
    assert "0.0 min then" in off
    assert WorkflowNode.objects.get(id=node.id).interval_seconds == 300
    wrong = client.get(f"{address(node)}cost/?enabled=on&interval_seconds=often").content.decode()
    assert "Enter seconds, or a number with s, m, h or d" in wrong


def test_the_cost_of_all_names_the_olts_that_would_have_too_much() -> None:
    node = lasting(make_node(make_olt("one")), 60)
    lasting(share(node, make_olt("two")), 60)

    page = visitor().get(
        f"{address(node)}cost/?{'&'.join(f'{k}={v}' for k, v in filled(interval_seconds='30s', reach='all').items())}"
    )

    assert "It also changes 1 other OLT." in page.content.decode()
    assert "<bdi>two</bdi>" in page.content.decode()


def test_a_node_that_is_disabled_is_judged_as_if_it_ran() -> None:
    node = lasting(make_node(), 60)
    WorkflowNode.objects.filter(id=node.id).update(enabled=False)
    olt_id = node.workflow.olt_id

    assert load_feasibility([olt_id])[olt_id].judged.minutes_per_hour == 0
    wished = load_feasibility([olt_id], {node.id: NodeWish(300, enabled=True)})
    assert wished[olt_id].judged.minutes_per_hour == pytest.approx(12)


def test_an_interval_that_hurts_is_refused_next_to_its_field_and_stays_typed() -> None:
    olt = make_olt(vendor="huawei_smartax")
    node = make_node(olt)
    SnmpJobOid.objects.create(job=node.job, column_key="onu.rx_power")

    page = visitor().post(address(node), filled(interval_seconds="20s")).content.decode()

    assert 'class="field wrong" id="field-interval_seconds"' in page
    assert 'value="20s"' in page
    assert "must not be read more often" in page
    page = visitor().post(address(node), filled(interval_seconds="1h", hours_from="03:00")).content.decode()
    assert "Set both hours, or neither." in page
    assert WorkflowNode.objects.get(id=node.id).interval_seconds == 300


def test_work_that_does_not_fit_stands_on_the_page_of_the_olt_until_it_fits() -> None:
    olt = make_olt("eL norte")
    node = lasting(make_node(olt, name="Read", interval_seconds=60), 90)
    client = visitor(Role.VIEWER)

    page = client.get(f"/olts/{olt.id}/").content.decode()
    assert f'hx-get="/olts/{olt.id}/feasibility/" hx-trigger="load' in page
    part = client.get(f"/olts/{olt.id}/feasibility/").content.decode()
    assert "More work than fits into the hour." in part
    assert "eL norte needs 90 min of SNMP per hour." in part

    WorkflowNode.objects.filter(id=node.id).update(interval_seconds=3600)
    assert "olt-feasibility" not in client.get(f"/olts/{olt.id}/feasibility/").content.decode()


def test_a_warning_names_ready_made_jobs_in_the_language_of_the_reader() -> None:
    olt = make_olt("eL norte")
    lasting(make_node(olt, name="Read states", interval_seconds=60), 90)

    part = visitor().get(f"/olts/{olt.id}/feasibility/", headers={"accept-language": "es"}).content.decode()

    assert "Leer estados cada 5 min en vez de 60 s" in part or "Leer estados cada 5 min en vez de 1 min" in part

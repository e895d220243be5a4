"""Jobs in the admin: their chains, putting them on OLTs, switching them on and off, running them now."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from api.rows import make_execution
from facho.hosts.models import Brand, Olt, OltGroup
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
from factories import chain_to, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db


def change_page(job: SnmpJob) -> str:
    return reverse("admin:snmp_jobs_snmpjob_change", args=[job.pk])


def inputs_of(page: str) -> dict[str, str]:
    """Return what a browser would post from a form as it stands."""
    inputs = dict(re.findall(r'<input type="(?:text|number|hidden)" name="([\w-]+)"(?: value="([^"]*)")?', page))
    for name, options in re.findall(r'<select name="([\w-]+)".*?>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        inputs[name] = chosen[1] if chosen else ""
    return {name: text for name, text in inputs.items() if "__prefix__" not in name}


def save(client: Client, job: SnmpJob, **changes: str) -> Any:
    page = client.get(change_page(job)).content.decode()
    fields = {name.replace("__", "-"): text for name, text in changes.items()}
    return client.post(change_page(job), inputs_of(page) | fields)


def act(client: Client, action: str, *rows: Model, narrowed: str = "") -> str:
    model = type(rows[0])._meta
    chosen = {"action": action, "_selected_action": [row.pk for row in rows]}
    answer = client.post(reverse(f"admin:{model.app_label}_{model.model_name}_changelist") + narrowed, chosen)
    return str(list(get_messages(answer.wsgi_request))[-1])


def chain_of(node: WorkflowNode) -> list[str]:
    return [member.job.name for member in node.chain_nodes.order_by("priority", "id")]


def test_a_job_joins_a_chain_and_its_nodes_follow(administrator: Client) -> None:
    master, alone = make_node(), make_node()
    member = make_node(master.workflow.olt, make_job())
    elsewhere = make_node(alone.workflow.olt, member.job)

    answer = save(administrator, master.job, chain_jobs__0__member=str(member.job.pk), chain_jobs__0__priority="20")

    assert answer.status_code == 302, inputs_of(answer.content.decode())
    member.refresh_from_db()
    elsewhere.refresh_from_db()
    assert (member.is_chain_node, member.master_node, member.next_run_at) == (True, master, None)
    assert (elsewhere.is_chain_node, elsewhere.next_run_at is None) == (False, False)


def test_the_order_of_a_chain_is_the_order_of_its_nodes(administrator: Client) -> None:
    master = make_node()
    first, second = chain_to(master), chain_to(master)
    SnmpJob.objects.filter(pk__in=[first.job_id, second.job_id]).update(master_job=master.job)

    save(administrator, master.job, chain_jobs__0__priority="60", chain_jobs__1__priority="10")

    assert chain_of(master) == [second.job.name, first.job.name]


def test_a_job_that_is_taken_out_of_its_chain_runs_by_itself(administrator: Client) -> None:
    master = make_node()
    member = chain_to(master)
    SnmpJob.objects.filter(pk=member.job_id).update(master_job=master.job)

    save(administrator, master.job, chain_jobs__0__leaves="on")

    member.refresh_from_db()
    assert SnmpJob.objects.get(pk=member.job_id).master_job is None
    assert (member.is_chain_node, member.master_node) == (False, None)
    assert member.next_run_at is not None
    assert member.next_run_at > timezone.now()


def test_a_chain_has_no_chain_and_waits_for_no_onu(administrator: Client) -> None:
    master = make_job()
    chained = make_job()
    SnmpJob.objects.filter(pk=chained.pk).update(master_job=master)
    live = make_job(columns=("onu.rx_power",))

    of_chain = administrator.post(change_page(make_job()), {"master_job": str(chained.pk)})
    with_chain = save(administrator, master, master_job=str(make_job().pk))
    waiting = save(administrator, master, chain_jobs__1__member=str(live.pk), chain_jobs__1__priority="5")

    assert b"Select a valid choice" in of_chain.content
    assert b"take them out of its chain first" in with_chain.content
    assert b"put it in a job of its own" in waiting.content


def test_a_master_is_offered_with_its_vendor_and_only_where_it_fits(administrator: Client) -> None:
    vendors = ("huawei_smartax", "zte_c300", "")
    masters = [
        SnmpJob.objects.create(name="Discover", slug=f"discover-{vendor}", vendor=vendor, query_type="get")
        for vendor in vendors
    ]
    member = make_job()

    def offered(place: str) -> dict[str, str]:
        page = administrator.get(place).content.decode()
        found = re.search(r'<select name="master_job".*?</select>', page, re.DOTALL)
        return dict(re.findall(r'value="(\d+)">(Discover[^<]*)<', found[0] if found else ""))

    titles = ["Discover (huawei_smartax)", "Discover (zte_c300)", "Discover"]
    each = {str(job.pk): title for job, title in zip(masters, titles, strict=True)}
    assert offered(reverse("admin:snmp_jobs_snmpjob_add")) == each
    assert offered(change_page(member)) == {pk: title for pk, title in each.items() if "zte" not in title}


def apply_page(client: Client, *jobs: SnmpJob, **inputs: Any) -> str:
    place = f"{reverse('admin:snmp_jobs_snmpjob_apply')}?jobs={','.join(str(job.pk) for job in jobs)}"
    return client.post(place, inputs).content.decode() if inputs else client.get(place).content.decode()


def confirm(client: Client, page: str, *jobs: SnmpJob) -> str:
    shown = re.search(r'name="shown" value="(\w+)"', page)
    chosen = re.search(r'name="chosen" value="([\d,]+)"', page)
    assert shown, page
    assert chosen, page
    return apply_page(client, *jobs, shown=shown[1], chosen=chosen[1])


def test_a_job_is_made_with_all_its_parts_and_put_on_olts(administrator: Client) -> None:
    """S3-01"""
    brand, olt = Brand.objects.create(name="Huawei"), make_olt()
    inputs = {
        "name": "Texts",
        "slug": "get_texts",
        "vendor": "huawei_smartax",
        "brand": brand.pk,
        "query_type": "get",
        "interval_seconds": "10m",
        "cadence": "fixed_rate",
        "priority": "40",
        "max_attempts": "4",
        "retry_delay_seconds": "90",
        "chain_condition": "always",
        "oids-TOTAL_FORMS": "2",
        "oids-INITIAL_FORMS": "0",
        "oids-0-position": "0",
        "oids-0-column_key": "onu.description",
        "oids-1-position": "1",
        "oids-1-oid": "1.3.6.1.4.1.99999.1",
    }

    chosen = administrator.post(reverse("admin:snmp_jobs_snmpjob_add"), inputs, follow=True).content.decode()
    job = SnmpJob.objects.get()
    confirm(administrator, apply_page(administrator, job, olts=[str(olt.pk)]), job)

    assert "Choose the OLTs that it runs on." in chosen
    assert (job.brand, job.query_type, job.interval_seconds) == (brand, "get", 600)
    assert (job.max_attempts, job.retry_delay_seconds) == (4, 90)
    assert [str(oid) for oid in job.oids.all()] == ["onu.description", "1.3.6.1.4.1.99999.1"]
    assert WorkflowNode.objects.get().workflow.olt == olt


def test_jobs_are_put_on_olts_as_it_was_shown(administrator: Client) -> None:
    job, member = make_job(), make_job()
    SnmpJob.objects.filter(pk=member.pk).update(master_job=job)
    olt, has_it, stranger = make_olt(), make_olt(), make_olt(vendor="zte_c300_c320")
    make_node(has_it, job)

    choosing = apply_page(administrator, job)
    page = apply_page(administrator, job, everything="on")
    nothing_yet = WorkflowNode.objects.count()
    confirm(administrator, page, job)

    assert olt.name in choosing
    assert stranger.name not in choosing
    assert nothing_yet == 1
    assert "Add 3 nodes" in page
    assert not Workflow.objects.filter(olt=stranger).exists()
    master = WorkflowNode.objects.get(workflow__olt=olt, job=job)
    assert chain_of(master) == [member.name]
    assert master.next_run_at is not None
    assert master.next_run_at > timezone.now()
    assert WorkflowNode.objects.filter(workflow__olt=has_it).count() == 2


def test_the_page_tells_what_it_costs_and_whether_it_fits(administrator: Client) -> None:
    known = make_node(interval_seconds=300)
    make_execution(known, ExecutionState.SUCCESS, duration_ms=240_000)
    WorkflowNode.objects.filter(pk=known.pk).update(last_run_at=timezone.now())
    other, heavy = make_olt(), make_node(interval_seconds=300)
    make_execution(heavy, ExecutionState.SUCCESS, duration_ms=120_000)
    WorkflowNode.objects.filter(pk=heavy.pk).update(last_run_at=timezone.now())
    make_node(other, heavy.job, interval_seconds=300)

    page = apply_page(administrator, known.job, olts=[str(other.pk)])

    assert re.search(r"24[.,]0 → <strong>72[.,]0 min</strong>", page)
    assert "too much" in page
    assert WorkflowNode.objects.filter(workflow__olt=other).count() == 1


def test_nothing_is_added_when_something_changed_meanwhile(administrator: Client) -> None:
    job, olt = make_job(), make_olt()
    page = apply_page(administrator, job, everything="on")
    make_node(olt, job)

    answer = confirm(administrator, page, job)

    assert "Nothing was added" in answer
    assert WorkflowNode.objects.count() == 1


def test_who_adds_the_same_node_at_the_same_moment_is_reported(administrator: Client) -> None:
    job, olt = make_job(), make_olt()
    page = apply_page(administrator, job, everything="on")

    with connection.execute_wrapper(_meanwhile(lambda: make_node(olt, job))):
        answer = confirm(administrator, page, job)

    assert "Nothing was added" in answer
    assert not LogEntry.objects.exists()


def test_a_chain_whose_master_is_deleted_at_the_same_moment_is_not_added(administrator: Client) -> None:
    member, master = make_job(), make_node()
    SnmpJob.objects.filter(pk=member.pk).update(master_job=master.job)
    page = apply_page(administrator, member, everything="on")

    with connection.execute_wrapper(_meanwhile(WorkflowNode.objects.all().delete)):
        answer = confirm(administrator, page, member)

    assert "Nothing was added" in answer


def _meanwhile(change: Callable[[], object]) -> Callable[..., Any]:
    """Let somebody else act each time when a plan was made and is about to be carried out."""

    def execute_after(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("INSERT") and f'"{Workflow._meta.db_table}"' in sql:
            answer = execute(sql, params, many, context)
            change()
            return answer
        return execute(sql, params, many, context)

    return execute_after


def test_an_olt_that_would_be_asked_too_often_gets_no_node(administrator: Client) -> None:
    job = make_job(columns=("onu.rx_power",))
    SnmpJob.objects.filter(pk=job.pk).update(interval_seconds=60)
    make_olt()

    page = apply_page(administrator, job, everything="on")

    assert "must not be read more often" in page
    assert 'name="shown"' not in page


def test_olts_are_chosen_by_group(administrator: Client) -> None:
    job, olt, _other = make_job(), make_olt(), make_olt()
    group = OltGroup.objects.create(name="Norte")
    Olt.objects.filter(pk=olt.pk).update(group=group)

    page = apply_page(administrator, job, groups=[str(group.pk)])

    assert f'name="chosen" value="{olt.pk}"' in page


def test_applying_costs_the_same_for_many_olts(
    administrator: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    job = make_job(query_type=QueryType.WALK)
    for _ in range(30):
        make_olt()

    with django_assert_max_num_queries(40):
        apply_page(administrator, job, everything="on")


def test_nodes_jobs_and_olts_are_switched_off_and_on(administrator: Client) -> None:
    node = make_node()
    olt = node.workflow.olt

    message = [
        act(administrator, action, row) for row in (node, node.job, olt) for action in ("disable", "enable", "enable")
    ]

    assert message == [
        "1 node was disabled.",
        "1 node was enabled.",
        "0 nodes were enabled.",
        "1 node was disabled.",
        "1 node was enabled.",
        "0 nodes were enabled.",
        "1 OLT was disabled.",
        "1 OLT was enabled.",
        "0 OLTs were enabled.",
    ]
    assert LogEntry.objects.filter(change_message="Disabled.").count() == 3


@pytest.mark.parametrize("action", ["enable", "disable"])
def test_switching_in_a_narrowed_list_is_written_down(administrator: Client, action: str) -> None:
    """The node leaves the list by being switched, and the line of who did it stays."""
    node = make_node()
    WorkflowNode.objects.filter(pk=node.pk).update(enabled=action == "disable")

    act(administrator, action, node, narrowed=f"?enabled__exact={int(action == 'disable')}")

    assert LogEntry.objects.filter(object_id=str(node.pk), content_type__model="workflownode").count() == 1


def test_jobs_and_olts_are_run_now_without_what_is_off(administrator: Client) -> None:
    node, off = make_node(), make_node(enabled=False)
    chain_to(node)

    assert act(administrator, "run_now", node.job, off.job) == "1 node will run now."
    assert act(administrator, "run_now", node.workflow.olt, off.workflow.olt) == "1 node will run now."
    assert list(WorkflowNode.objects.exclude(run_requested_at=None)) == [node]


def test_an_input_for_a_secret_says_whether_one_is_stored(administrator: Client) -> None:
    olt = make_olt()

    page = administrator.get(reverse("admin:hosts_olt_change", args=[olt.pk])).content.decode()

    assert re.search(r'name="new_community"[^>]*placeholder="stored"', page)
    assert re.search(r'name="new_v3_auth_key"[^>]*placeholder="none stored"', page)

"""The admin's forms refuse what would hurt an OLT, say why, and let an operator allow it."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from facho.core.cli.demo_data import DemoOlt, save_olts
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.snmp_jobs.safety import check_job, check_node, reads_of
from factories import NOW, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db

JOB = {
    "name": "Light",
    "slug": "light",
    "vendor": "huawei_smartax",
    "query_type": "get",
    "interval_seconds": "300",
    "cadence": "fixed_rate",
    "priority": "50",
    "max_attempts": "3",
    "retry_delay_seconds": "120",
    "chain_condition": "always",
}


def oids(*rows: dict[str, str], stored: int = 0) -> dict[str, str]:
    """Build the inputs of the rows below a job."""
    inputs = {"oids-TOTAL_FORMS": str(len(rows)), "oids-INITIAL_FORMS": str(stored)}
    inputs |= {"chain_jobs-TOTAL_FORMS": "0", "chain_jobs-INITIAL_FORMS": "0"}
    for number, row in enumerate(rows):
        inputs |= {f"oids-{number}-position": str(number)}
        inputs |= {f"oids-{number}-{name}": value for name, value in row.items()}
    return inputs


def add_job(administrator: Client, *columns: str, **changes: str) -> Any:
    rows = oids(*({"column_key": column} for column in columns))
    return administrator.post(reverse("admin:snmp_jobs_snmpjob_add"), JOB | rows | changes)


def change_node(administrator: Client, node: WorkflowNode, **changes: str) -> Any:
    inputs = {"enabled": "on", "interval_seconds": "1800", "priority": "50", **changes}
    return administrator.post(reverse("admin:snmp_jobs_workflownode_change", args=[node.pk]), inputs)


def test_a_job_that_polls_too_often_is_refused_with_the_reason(administrator: Client) -> None:
    page = add_job(administrator, "onu.run_state", "onu.rx_power").content.decode()

    assert "onu.rx_power must not be read more often than every 1800 s" in page
    assert not SnmpJob.objects.exists()


def test_a_job_that_polls_seldom_enough_is_saved(administrator: Client) -> None:
    assert add_job(administrator, "onu.rx_power", interval_seconds="1800").status_code == 302
    assert list(SnmpJobOid.objects.values_list("column_key", flat=True)) == ["onu.rx_power"]


def test_a_job_that_polls_too_often_knowingly_is_saved(administrator: Client) -> None:
    assert add_job(administrator, "onu.rx_power", ignores_safe_interval="on").status_code == 302
    assert SnmpJob.objects.get().ignores_safe_interval


def test_a_live_job_in_a_chain_is_refused_with_the_reason(administrator: Client) -> None:
    master = make_job()

    page = add_job(administrator, "onu.rx_power", interval_seconds="3600", master_job=str(master.pk)).content.decode()

    assert "onu.rx_power is queried from each ONU" in page
    assert SnmpJob.objects.count() == 1


def test_a_wrong_row_that_is_deleted_hides_no_other(administrator: Client) -> None:
    job = make_job(columns=("onu.run_state",))
    [row] = job.oids.all()
    stored = {"id": str(row.pk), "job": str(job.pk), "column_key": "", "oid": "", "position": "x", "DELETE": "on"}
    rows = oids(stored, {"column_key": "onu.rx_power"}, stored=1)

    answer = administrator.post(reverse("admin:snmp_jobs_snmpjob_change", args=[job.pk]), JOB | rows)

    assert b"onu.rx_power must not be read more often" in answer.content
    assert [row.column_key for row in job.oids.all()] == ["onu.run_state"]


def test_a_job_with_a_wrong_row_is_reported_about_the_row(administrator: Client) -> None:
    rows = oids({"column_key": "onu.rx_power", "position": "x"})

    page = administrator.post(reverse("admin:snmp_jobs_snmpjob_add"), JOB | rows).content.decode()

    assert "Enter a whole number." in page
    assert not SnmpJob.objects.exists()


def test_a_column_that_is_taken_out_does_not_count(administrator: Client) -> None:
    job = make_job(columns=("onu.rx_power", "onu.run_state"))
    light, state = job.oids.all()
    rows = oids(
        {"id": str(light.pk), "job": str(job.pk), "column_key": "onu.rx_power", "DELETE": "on"},
        {"id": str(state.pk), "job": str(job.pk), "column_key": "onu.run_state"},
        stored=2,
    )

    answer = administrator.post(reverse("admin:snmp_jobs_snmpjob_change", args=[job.pk]), JOB | rows)

    assert answer.status_code == 302
    assert [row.column_key for row in job.oids.all()] == ["onu.run_state"]


def test_a_node_that_polls_too_often_is_refused_beside_its_interval(administrator: Client) -> None:
    node = make_node(job=make_job(columns=("onu.rx_power",)), interval_seconds=1800)

    page = change_node(administrator, node, interval_seconds="1799").content.decode()

    assert "onu.rx_power must not be read more often than every 1800 s" in page
    node.refresh_from_db()
    assert node.interval_seconds == 1800


def test_a_node_of_a_job_that_may_poll_more_often_is_saved(administrator: Client) -> None:
    node = make_node(job=make_job(columns=("onu.rx_power",)), interval_seconds=1800)
    SnmpJob.objects.update(ignores_safe_interval=True)

    assert change_node(administrator, node, interval_seconds="60").status_code == 302


def test_a_node_that_polls_too_often_can_always_be_disabled(administrator: Client) -> None:
    node = make_node(job=make_job(columns=("onu.rx_power",)), interval_seconds=60)

    assert change_node(administrator, node, interval_seconds="60").status_code == 200
    assert change_node(administrator, node, interval_seconds="60", enabled="").status_code == 302


def test_a_new_node_is_checked_too(administrator: Client) -> None:
    workflow = make_node(make_olt()).workflow
    inputs = {"workflow": workflow.pk, "job": make_job(columns=("onu.rx_power",)).pk, "enabled": "on", "priority": 50}
    add = reverse("admin:snmp_jobs_workflownode_add")

    assert administrator.post(add, inputs | {"interval_seconds": 60}).status_code == 200
    assert administrator.post(add, inputs | {"interval_seconds": 1800}).status_code == 302


def test_the_demo_polls_as_an_installation_would() -> None:
    families = [key for key, definition in load_definitions().items() if definition.onu_indexes]
    save_olts([DemoOlt(key, "127.0.0.1", port, key, "public") for port, key in enumerate(families, 20_000)], now=NOW)

    for node in WorkflowNode.objects.all():
        check_node(node)
    for job in SnmpJob.objects.all():
        check_job(job, reads_of(job))
    assert not SnmpJob.objects.filter(ignores_safe_interval=True).exists()
    assert min(WorkflowNode.objects.values_list("interval_seconds", flat=True)) >= 300

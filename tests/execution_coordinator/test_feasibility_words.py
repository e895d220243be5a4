"""What operators are told about OLTs with more work than an hour holds, in the admin and by the API."""

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from remembered_runs import remember
from rest_framework.test import APIClient

from facho.execution_coordinator.feasibility import advise, load_feasibility
from facho.hosts.models import Olt
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from factories import chain_to, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db


def busy_olt() -> tuple[Olt, WorkflowNode, WorkflowNode]:
    """An OLT with 71 minutes of work: states for 285 s every 5 min, and optical power for 14 min every hour."""
    olt = make_olt()
    states, power = make_node(olt), make_node(olt, make_job(columns=()), interval_seconds=3_600)
    SnmpJob.objects.filter(id=states.job_id).update(name="Read states")
    SnmpJob.objects.filter(id=power.job_id).update(name="Read optical power")
    remember(states, 280)
    remember(chain_to(states), 5)
    remember(power, 840)
    return Olt.objects.get(id=olt.id), states, power


def test_more_work_than_an_hour_holds_is_told_with_what_to_relax() -> None:
    olt, _, _ = busy_olt()

    [told] = advise([olt.id])

    assert told == (
        f"{olt.name} needs 71 min of SNMP per hour."
        ' "Read optical power" takes 14 min at a time, longer than the interval of "Read states".'
        " What would make it fit: Read states every 15 min instead of 5 min saves 38 min."
    )


def test_work_that_fits_is_nothing_to_tell() -> None:
    node = make_node()
    remember(node, 10)

    assert advise([node.workflow.olt_id]) == []
    assert advise([]) == []


def test_too_few_pollers_for_all_olts_are_told(settings: LazySettings) -> None:
    settings.FACHO_POLLERS = 1
    nodes = [make_node() for _ in range(3)]
    for node in nodes:
        remember(node, 120)

    [told] = advise([nodes[0].workflow.olt_id])

    assert told.startswith("All OLTs together need 72 min of SNMP per hour, and 1 pollers have 60:")


def test_many_olts_are_told_in_few_lines() -> None:
    olts = [busy_olt()[0].id for _ in range(7)]

    told = advise(olts)

    assert len(told) == 6
    assert told[-1] == "And 2 more OLTs."


def test_saving_a_node_or_its_job_warns_in_the_admin(administrator: Client) -> None:
    olt, states, _ = busy_olt()
    node_form = {"enabled": "on", "interval_seconds": "300", "priority": "50"}

    saved = administrator.post(reverse("admin:snmp_jobs_workflownode_change", args=[states.pk]), node_form)
    warned_of_node = [str(message) for message in get_messages(saved.wsgi_request)]
    job_form = {
        "name": "Read states",
        "slug": "estado",
        "query_type": "get",
        "interval_seconds": "300",
        "cadence": "fixed_rate",
        "priority": "50",
        "max_attempts": "3",
        "retry_delay_seconds": "120",
        "chain_condition": "always",
        "oids-TOTAL_FORMS": "0",
        "oids-INITIAL_FORMS": "0",
    }
    saved = administrator.post(reverse("admin:snmp_jobs_snmpjob_change", args=[states.job_id]), job_form)
    warned_of_job = [str(message) for message in get_messages(saved.wsgi_request)]

    for warned in (warned_of_node, warned_of_job):
        assert any(message.startswith(f"{olt.name} needs 71 min of SNMP per hour.") for message in warned)


def test_saving_a_disabled_node_warns_of_nothing(administrator: Client) -> None:
    _, states, _ = busy_olt()

    saved = administrator.post(
        reverse("admin:snmp_jobs_workflownode_change", args=[states.pk]), {"interval_seconds": "300", "priority": "50"}
    )

    assert not any("SNMP per hour" in str(message) for message in get_messages(saved.wsgi_request))


def test_the_api_tells_what_an_olt_needs(administrator: Client) -> None:
    olt, states, power = busy_olt()
    unknown = make_node(olt, make_job(columns=()))
    client = APIClient()
    client.force_authenticate(User.objects.get(is_superuser=True))

    body = client.get(f"/api/v1/olts/{olt.id}/feasibility/").json()

    assert (body["olt"], body["fits"], body["minutes_per_hour"]) == (olt.name, False, 71)
    assert [(node["node_id"], node["seconds"], node["minutes_per_hour"]) for node in body["nodes"]] == [
        (states.id, 285, 57),
        (power.id, 840, 14),
        (unknown.id, None, 0),
    ]
    assert {row["by_node_id"] for row in body["blocked"]} == {power.id}
    assert body["message"].startswith(f"{olt.name} needs 71 min of SNMP per hour.")
    assert client.get("/api/v1/olts/0/feasibility/").status_code == 404


def test_a_disabled_olt_needs_nothing() -> None:
    olt, _, _ = busy_olt()
    Olt.objects.update(enabled=False)

    assert load_feasibility([olt.id])[olt.id].judged.minutes_per_hour == 0

"""What operators are reported about OLTs with more work than an hour holds, in the admin and by the API."""

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from remembered_runs import remember
from rest_framework.test import APIClient

from facho.accounts.roles import Role, give_role
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
    SnmpJob.objects.filter(id=power.job_id).update(name="Leer potencia óptica")
    remember(states, 280)
    remember(chain_to(states), 5)
    remember(power, 840)
    return Olt.objects.get(id=olt.id), states, power


def test_more_work_than_an_hour_holds_is_reported_with_what_to_relax() -> None:
    olt, _, _ = busy_olt()

    [reported] = advise([olt.id])

    assert reported == (
        f"{olt.name} needs 71 min of SNMP per hour."
        ' "Read optical power" takes 14 min at a time, longer than the interval of "Read states".'
        " What would make it fit: Read states every 15 min instead of 5 min saves 38 min."
    )


def test_work_that_fits_is_nothing_to_tell() -> None:
    node = make_node()
    remember(node, 10)

    assert advise([node.workflow.olt_id]) == []
    assert advise([]) == []


def test_too_few_pollers_for_all_olts_are_reported(settings: LazySettings) -> None:
    settings.FACHO_POLLERS = 1
    nodes = [make_node() for _ in range(3)]
    for node in nodes:
        remember(node, 120)

    [reported] = advise([nodes[0].workflow.olt_id])

    assert reported.startswith("All OLTs together need 72 min of SNMP per hour, and 1 pollers have 60:")


def test_many_olts_are_reported_in_few_lines() -> None:
    olts = [busy_olt()[0].id for _ in range(7)]

    reported = advise(olts)

    assert len(reported) == 6
    assert reported[-1] == "And 2 more OLTs."


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


def test_the_page_of_the_olt_says_it_as_long_as_it_is_so(client: Client) -> None:
    olt, states, _ = busy_olt()
    viewer = User.objects.create_user("viewer")
    give_role(viewer, Role.VIEWER)
    client.force_login(viewer)
    address = f"/olts/{olt.id}/feasibility/"
    english = {"accept-language": "en"}

    page = client.get(f"/olts/{olt.id}/", headers=english).content.decode()
    warned = client.get(address, headers=english).content.decode()
    WorkflowNode.objects.filter(id=states.id).update(interval_seconds=3_600)
    calm = client.get(address, headers=english).content.decode()

    assert f'hx-get="{address}" hx-trigger="load, every 60s"' in page
    assert f"{olt.name} needs 71 min of SNMP per hour." in warned
    assert "banner" not in calm


def test_a_message_of_the_admin_leaves_names_as_they_are(administrator: Client) -> None:
    """Django writes the first letter of each message as a capital, and "olt-lab" is another name then."""
    olt, states, _ = busy_olt()
    Olt.objects.filter(id=olt.id).update(name="olt-lab")
    inputs = {"enabled": "on", "interval_seconds": "300", "priority": "51"}
    change = reverse("admin:snmp_jobs_workflownode_change", args=[states.id])

    saved = administrator.post(change, inputs, follow=True)

    page = saved.content.decode()
    assert ">olt-lab needs 71 min" in page
    assert "Olt-lab" not in page


def test_times_are_reported_without_artefacts_of_adding(administrator: Client) -> None:
    node = make_node()
    remember(node, 413.882)
    remember(chain_to(node), 0.1)
    remember(chain_to(node), 0.2)
    client = APIClient()
    client.force_authenticate(User.objects.get(is_superuser=True))

    reported = client.get(f"/api/v1/olts/{node.workflow.olt_id}/feasibility/").json()

    assert reported["nodes"][0]["seconds"] == 414.18
    assert reported["minutes_per_hour"] == round(reported["minutes_per_hour"], 2)

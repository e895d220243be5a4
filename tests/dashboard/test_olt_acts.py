"""Operating an OLT from its page: who may, what is done and written down, and what is answered."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from api.rows import make_node, make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import Olt, OltGroup, Pause
from facho.hosts.store import active_pauses, pause
from facho.snmp_jobs.models import WorkflowNode

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def visitor(role: Role, **options: bool) -> Client:
    client = Client(headers={"accept-language": "en"}, **options)
    client.force_login(make_user(role))
    return client


@pytest.fixture
def operator() -> Client:
    return visitor(Role.OPERATOR)


def page_of(client: Client, olt: Olt, part: str = "") -> str:
    return client.get(f"/olts/{olt.id}/{part}").content.decode()


def make_suspended(olt: Olt) -> WorkflowNode:
    now = timezone.now()
    return make_node(olt, suspended_at=now, suspend_reason="malformed", next_run_at=now - timedelta(minutes=1))


def written() -> list[tuple[str, int, str]]:
    rows = LogEntry.objects.order_by("id")
    return [(row.content_type.model, row.action_flag, row.change_message) for row in rows if row.content_type]


def test_each_node_has_the_button_that_fits_it(operator: Client) -> None:
    olt = make_olt()
    master, off, suspended = make_node(olt), make_node(olt, enabled=False), make_suspended(olt)
    member = make_node(master=master)

    for part in ("", "work/"):
        page = page_of(operator, olt, part)
        assert f'id="run-{master.id}"' in page
        assert f'id="resume-{suspended.id}"' in page
        assert [f'id="run-{node.id}"' in page for node in (off, suspended, member)] == [False] * 3


def test_who_only_looks_finds_no_button_and_is_refused() -> None:
    olt, viewer = make_olt(), visitor(Role.VIEWER)
    node, suspended = make_node(olt), make_suspended(olt)
    acts = ["pause/", "pause/end/", f"nodes/{node.id}/run/", f"nodes/{suspended.id}/resume/"]
    strict = visitor(Role.OPERATOR, enforce_csrf_checks=True)

    assert 'hx-post="/olts/' not in page_of(viewer, olt)
    assert [viewer.post(f"/olts/{olt.id}/{act}").status_code for act in acts] == [403] * 4
    refused = viewer.post(f"/olts/{olt.id}/pause/").content.decode()
    assert "It needs the role operator or admin, which an administrator can give you." in refused
    assert [strict.post(f"/olts/{olt.id}/{act}").status_code for act in acts] == [403] * 4
    assert not Pause.objects.exists()
    assert not written()


def test_an_olt_out_of_scope_and_a_node_of_another_are_not_there() -> None:
    user, olt = make_user(Role.OPERATOR), make_olt()
    mine = make_olt(group=OltGroup.objects.create(name="mine"))
    Profile.objects.create(user=user).olt_groups.add(mine.group)
    client, node = Client(), make_suspended(olt)
    client.force_login(user)

    for act in ("pause/", "pause/end/", f"nodes/{node.id}/run/", f"nodes/{node.id}/resume/"):
        assert client.post(f"/olts/{olt.id}/{act}").status_code == 404
    assert client.post(f"/olts/{mine.id}/nodes/{node.id}/run/").status_code == 404
    assert client.post(f"/olts/{mine.id}/nodes/{node.id}/resume/").status_code == 404
    assert not written()


def test_a_run_is_asked_for_and_the_page_says_when_it_comes(operator: Client) -> None:
    node = make_node(make_olt(), name="Light", next_run_at=timezone.now() + timedelta(hours=1))
    olt = node.workflow.olt

    answer = operator.post(f"/olts/{olt.id}/nodes/{node.id}/run/", headers=HTMX).content.decode()

    assert "Light: Queued: polling is stopped; it runs when the engine is started." in answer
    assert f'id="run-{node.id}"' in answer
    node.refresh_from_db()
    assert node.run_requested_at is not None
    assert written() == [("workflownode", 2, "run now")]


def test_a_member_of_a_chain_does_not_run_alone(operator: Client) -> None:
    olt = make_olt()
    member = make_node(master=make_node(olt))

    answer = operator.post(f"/olts/{olt.id}/nodes/{member.id}/run/", follow=True).content.decode()

    assert "Nodes of a chain run with their master." in answer
    assert not written()


def test_a_suspended_node_returns_to_its_schedule_once(operator: Client) -> None:
    olt = make_olt()
    node = make_suspended(olt)
    address = f"/olts/{olt.id}/nodes/{node.id}/resume/"

    assert "It runs at its next slot." in operator.post(address, headers=HTMX).content.decode()
    assert "This node is not suspended." in operator.post(address, headers=HTMX).content.decode()
    node.refresh_from_db()
    assert node.suspended_at is None
    assert written() == [("workflownode", 2, "resumed")]


def test_an_olt_is_paused_for_half_an_hour_and_not_twice(operator: Client) -> None:
    olt = make_olt()
    assert 'id="olt-pause"' in page_of(operator, olt)

    first = operator.post(f"/olts/{olt.id}/pause/", headers=HTMX).content.decode()
    second = operator.post(f"/olts/{olt.id}/pause/", headers=HTMX).content.decode()

    assert "Paused: nothing new starts; running executions finish." in first
    assert ('id="olt-pause-end"' in first, 'id="olt-pause"' in first) == (True, False)
    assert "This OLT is already paused." in second
    made = Pause.objects.get()
    assert (made.olt_id, made.ends_at - made.starts_at) == (olt.id, timedelta(minutes=30))
    assert written() == [("pause", 1, "")]


def test_the_pauses_of_an_olt_end_and_that_of_everything_goes_on(operator: Client) -> None:
    olt, begun_at = make_olt(), timezone.now() - timedelta(minutes=5)
    for place in (olt, olt, None):
        pause(place, minutes=60, note="", now=begun_at)

    answer = operator.post(f"/olts/{olt.id}/pause/end/", headers=HTMX).content.decode()

    assert "The pause has ended." in answer
    assert "Paused; the pause ends" in answer
    assert ('id="olt-pause-end"' in answer, 'id="olt-pause"' in answer) == (False, True)
    assert [held.olt for held in active_pauses(timezone.now())] == [None]
    assert written() == [("pause", 2, "ended")] * 2


def test_without_scripts_a_button_leads_back_to_the_page(operator: Client) -> None:
    olt = make_olt()

    answer = operator.post(f"/olts/{olt.id}/pause/", follow=True)

    assert answer.redirect_chain == [(f"/olts/{olt.id}/", 302)]
    assert "Paused: nothing new starts; running executions finish." in answer.content.decode()

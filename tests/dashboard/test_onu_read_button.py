"""Reading an ONU now from its page: who may, what is answered, and that the line goes on only while there is news."""

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_execution, make_leader, make_node, make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.executions.models import OnuRead
from facho.hosts.models import OltGroup
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import MAX_WAITING_PER_OLT

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true", "accept-language": "en"}


def visitor(role: Role, **options: bool) -> Client:
    client = Client(**options)
    client.force_login(make_user(role))
    return client


def test_the_button_is_there_for_operators_only() -> None:
    onu = make_onu(make_olt())

    assert 'id="read-now"' in visitor(Role.OPERATOR).get(f"/onus/{onu.id}/").content.decode()
    viewer = visitor(Role.VIEWER)
    assert 'id="read-now"' not in viewer.get(f"/onus/{onu.id}/").content.decode()
    assert viewer.post(f"/onus/{onu.id}/read/").status_code == 403
    assert visitor(Role.OPERATOR, enforce_csrf_checks=True).post(f"/onus/{onu.id}/read/").status_code == 403
    assert not OnuRead.objects.exists()


def test_a_wish_is_left_and_its_line_looks_again_until_it_is_over() -> None:
    onu, client = make_onu(make_olt()), visitor(Role.OPERATOR)
    make_leader()

    asked = client.post(f"/onus/{onu.id}/read/", headers=HTMX).content.decode()
    assert "Waiting: it starts at once when a poller is free." in asked
    assert 'hx-trigger="every 1s"' in asked

    run = make_execution(make_node(onu.olt), ExecutionState.SUCCESS, task_type="onu_read")
    OnuRead.objects.update(execution=run)
    over = client.get(f"/onus/{onu.id}/reading/", headers=HTMX).content.decode()
    assert "the values on this page are new" in over
    assert "every 1s" not in over


def test_an_onu_that_is_still_offline_has_no_new_values() -> None:
    onu, client = make_onu(make_olt(), run_state="offline", rx_power_cdbm=-1604), visitor(Role.OPERATOR)
    run = make_execution(make_node(onu.olt), ExecutionState.SUCCESS, task_type="onu_read")
    OnuRead.objects.create(onu=onu, requested_at=timezone.now(), execution=run)

    line = client.get(f"/onus/{onu.id}/reading/", headers=HTMX).content.decode()

    assert "the OLT says that it is offline, so there is no new light" in line
    assert "are new" not in line


def test_without_scripts_the_button_leads_back_to_the_page() -> None:
    onu = make_onu(make_olt())

    assert visitor(Role.OPERATOR).post(f"/onus/{onu.id}/read/").headers["Location"] == f"/onus/{onu.id}/"
    assert OnuRead.objects.filter(onu=onu).exists()


def test_what_cannot_be_read_is_refused_with_a_reason() -> None:
    olt, client = make_olt(), visitor(Role.OPERATOR)
    left = make_onu(olt, is_present=False, absent_since=timezone.now())
    crowd = [make_onu(olt, (0, 1, 0, number)) for number in range(1, MAX_WAITING_PER_OLT + 2)]

    assert "it cannot be read" in client.post(f"/onus/{left.id}/read/", headers=HTMX).content.decode()
    answers = [client.post(f"/onus/{onu.id}/read/", headers=HTMX).content.decode() for onu in crowd]
    assert ["Others are already waiting" in answer for answer in answers] == [False] * MAX_WAITING_PER_OLT + [True]


def test_an_onu_out_of_scope_cannot_be_read() -> None:
    user, onu = make_user(Role.OPERATOR), make_onu(make_olt())
    Profile.objects.create(user=user).olt_groups.add(OltGroup.objects.create(name="mine"))
    client = Client()
    client.force_login(user)

    assert client.post(f"/onus/{onu.id}/read/").status_code == 404
    assert client.get(f"/onus/{onu.id}/reading/").status_code == 404

"""Reading an ONU now over the API: the wish, its progress, and who may leave it."""

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_leader, make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.executions.models import OnuRead
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db

ENGLISH = {"accept-language": "en"}


def test_a_wish_is_accepted_and_its_progress_can_be_asked(operator: APIClient, viewer: APIClient) -> None:
    onu = make_onu(make_olt())
    make_leader()

    answer = operator.post(f"/api/v1/onus/{onu.id}/read/", headers=ENGLISH)
    progress = viewer.get(f"/api/v1/onus/{onu.id}/read/", headers=ENGLISH)

    assert (answer.status_code, progress.status_code) == (202, 200)
    assert answer.json() == progress.json()
    assert (answer.json()["stage"], answer.json()["execution_id"]) == ("waiting", None)
    assert answer.json()["message"] == "Waiting: it starts at once when a poller is free."


def test_viewers_strangers_and_other_groups_leave_no_wish(
    anonymous: APIClient, viewer: APIClient, operator: APIClient
) -> None:
    onu = make_onu(make_olt())
    elsewhere = APIClient()
    user = make_user(Role.OPERATOR)
    Profile.objects.create(user=user).olt_groups.add(OltGroup.objects.create(name="elsewhere"))
    elsewhere.force_login(user)
    path = f"/api/v1/onus/{onu.id}/read/"

    assert [client.post(path).status_code for client in (anonymous, viewer, elsewhere)] == [401, 403, 404]
    assert operator.post("/api/v1/onus/4711/read/").status_code == 404
    assert operator.get(path).status_code == 404
    assert not OnuRead.objects.exists()


def test_an_onu_that_left_is_a_conflict(operator: APIClient) -> None:
    onu = make_onu(make_olt(), is_present=False, absent_since=timezone.now())

    answer = operator.post(f"/api/v1/onus/{onu.id}/read/", headers=ENGLISH)

    assert answer.status_code == 409
    assert answer.json()["detail"] == "The ONU is no longer at its place, so it cannot be read."

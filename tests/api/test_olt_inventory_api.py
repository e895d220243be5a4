"""OLTs over the API: added with their jobs, reached otherwise, deleted; by admins, and without a secret coming back."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from rest_framework.test import APIClient

from api.rows import make_execution, make_node, make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import Olt, OltGroup
from facho.polling.domain.execution_state import ExecutionState

pytestmark = pytest.mark.django_db

CANARY = "canary-91c4"
NORTH: dict[str, Any] = {"name": "north", "host": "192.0.2.7", "vendor": "huawei", "community": CANARY}


def test_an_olt_is_added_with_its_jobs_and_its_secret_stays_inside(admin: APIClient) -> None:
    answer = admin.post("/api/v1/olts/", {**NORTH, "group": "Coast"}, format="json")

    olt = Olt.objects.get(name="north")
    assert answer.status_code == 201
    assert (olt.community.reveal(), olt.port, str(olt.group)) == (CANARY, 161, "Coast")
    assert (answer.json()["id"], answer.json()["vendor"]) == (olt.id, "huawei_smartax")
    assert olt.workflow.nodes.count() > 3
    assert CANARY not in answer.content.decode()
    assert CANARY not in str(LogEntry.objects.values_list("object_repr", "change_message"))


@pytest.mark.parametrize(("group", "code"), [("", 400), ("South", 400), ("north", 201)])
def test_who_sees_one_group_adds_to_that_one(group: str, code: int) -> None:
    north, _south = (OltGroup.objects.create(name=name) for name in ("North", "South"))
    user, client = make_user(Role.ADMIN), APIClient()
    Profile.objects.create(user=user).olt_groups.add(north)
    client.force_login(user)

    answer = client.post("/api/v1/olts/", {**NORTH, "group": group}, format="json")

    assert answer.status_code == code
    assert Olt.objects.filter(group=north).count() == Olt.objects.count() == (code == 201)


def test_a_refusal_does_not_name_an_olt_out_of_scope() -> None:
    north, user, client = OltGroup.objects.create(name="North"), make_user(Role.ADMIN), APIClient()
    Profile.objects.create(user=user).olt_groups.add(north)
    client.force_login(user)
    make_olt("Hidden", address=NORTH["host"])

    answer = client.post("/api/v1/olts/", {**NORTH, "group": "North"}, format="json", headers={"accept-language": "en"})

    assert (answer.status_code, answer.json()["detail"]) == (400, "Another OLT already has this address and port.")


def test_an_olt_may_be_added_without_jobs(admin: APIClient) -> None:
    assert admin.post("/api/v1/olts/", {**NORTH, "with_jobs": False}, format="json").status_code == 201
    assert not hasattr(Olt.objects.get(), "workflow")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"community": ""}, "community is missing"),
        ({"vendor": "nobody"}, 'vendor "nobody" is unknown'),
        ({"host": "no-such-host.invalid"}, "does not resolve"),
        ({"version": "9"}, 'SNMP version "9"'),
        ({"name": "taken"}, 'there already is an OLT named "taken"'),
        ({"host": "192.0.2.9"}, 'OLT "taken" already has address'),
    ],
)
def test_what_the_inventory_refuses_is_refused_with_its_sentence(
    admin: APIClient, changes: dict[str, Any], words: str
) -> None:
    make_olt("taken", host="192.0.2.9", address="192.0.2.9")

    answer = admin.post("/api/v1/olts/", {**NORTH, **changes}, format="json")

    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert CANARY not in answer.content.decode()
    assert Olt.objects.count() == 1


def test_an_olt_is_reached_otherwise_and_keeps_the_secret_it_has(admin: APIClient) -> None:
    olt = make_olt("north", host="192.0.2.7", address="192.0.2.7")

    answer = admin.put(f"/api/v1/olts/{olt.id}/connection/", {"host": "192.0.2.8", "port": 1161}, format="json")

    stored = Olt.objects.get()
    assert answer.status_code == 200
    assert (stored.address, stored.port, stored.community.reveal()) == ("192.0.2.8", 1161, "canary-7f3a")
    assert LogEntry.objects.get().change_message == "host, port"


def test_an_olt_is_deleted_unless_it_is_being_polled(admin: APIClient) -> None:
    node = make_node(make_olt("north"))
    run = make_execution(node, ExecutionState.RUNNING)
    olt_id = node.workflow.olt_id

    assert admin.delete(f"/api/v1/olts/{olt_id}/").status_code == 409

    run.delete()
    assert admin.delete(f"/api/v1/olts/{olt_id}/").status_code == 204
    assert not Olt.objects.exists()


def test_who_is_no_admin_changes_no_olt(operator: APIClient) -> None:
    olt = make_olt()

    statuses = [
        operator.post("/api/v1/olts/", NORTH, format="json").status_code,
        operator.put(f"/api/v1/olts/{olt.id}/connection/", {"host": "192.0.2.8"}, format="json").status_code,
        operator.delete(f"/api/v1/olts/{olt.id}/").status_code,
    ]

    assert statuses == [403, 403, 403]
    assert operator.patch(f"/api/v1/olts/{olt.id}/", {"enabled": False}, format="json").status_code == 200

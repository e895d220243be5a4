"""OLTs over the API: added with their jobs, reached otherwise, deleted; by admins, and without a secret coming back."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from rest_framework.test import APIClient

from api.rows import make_execution, make_node, make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.api import olts as api_olts
from facho.api.tokens import create_token
from facho.hosts import inventory
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
    shown = {name: answer.json()[name] for name in ("id", "vendor", "version", "group")}
    assert shown == {"id": olt.id, "vendor": "huawei_smartax", "version": "2c", "group": "Coast"}
    assert admin.get("/api/v1/olts/?group=coast").json()["count"] == 1
    assert admin.get("/api/v1/olts/?group=hills").json()["count"] == 0
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


def test_groups_whose_names_are_easily_mistaken_are_not() -> None:
    mine, _others, word = (OltGroup.objects.create(name=name) for name in ("north", "North", "None"))
    user, client = make_user(Role.ADMIN), APIClient()
    Profile.objects.create(user=user).olt_groups.add(mine, word)
    client.force_login(user)

    for host, group in (("192.0.2.7", "north"), ("192.0.2.8", "NORTH"), ("192.0.2.9", "none")):
        answer = client.post("/api/v1/olts/", {**NORTH, "name": host, "host": host, "group": group}, format="json")
        assert answer.status_code == 201

    assert (mine.olts.count(), word.olts.count()) == (2, 1)


def reported(answer: Any) -> list[tuple[str, str]]:
    return [(error["field"], error["detail"]) for error in answer.json()["errors"]]


def test_a_refusal_does_not_name_an_olt_out_of_scope() -> None:
    north, user, client = OltGroup.objects.create(name="North"), make_user(Role.ADMIN), APIClient()
    Profile.objects.create(user=user).olt_groups.add(north)
    client.force_login(user)
    make_olt("Hidden", address=NORTH["host"])
    wish = {**NORTH, "group": "North"}

    same_place = client.post("/api/v1/olts/", wish, format="json", headers={"accept-language": "en"})
    same_name = client.post(
        "/api/v1/olts/", {**wish, "name": "Hidden"}, format="json", headers={"accept-language": "en"}
    )

    assert (same_place.status_code, same_name.status_code) == (400, 400)
    assert reported(same_place) == [("host", "this address and port are taken")]
    assert reported(same_name) == [("name", "this name is taken")]


def test_an_olt_may_be_added_without_jobs(admin: APIClient) -> None:
    assert admin.post("/api/v1/olts/", {**NORTH, "with_jobs": False}, format="json").status_code == 201
    assert not hasattr(Olt.objects.get(), "workflow")


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"community": ""}, "community", "community is missing"),
        ({"vendor": "nobody"}, "vendor", 'vendor "nobody" is unknown'),
        ({"host": "no-such-host.invalid"}, "host", "does not resolve"),
        ({"version": "9"}, "version", 'SNMP version "9"'),
        ({"name": "taken"}, "name", 'there is already an OLT named "taken"'),
        ({"host": "192.0.2.9"}, "host", 'OLT "taken" already has address'),
    ],
)
def test_what_the_inventory_refuses_is_refused_with_its_sentence(
    admin: APIClient, changes: dict[str, Any], field: str, words: str
) -> None:
    make_olt("taken", host="192.0.2.9", address="192.0.2.9")

    answer = admin.post("/api/v1/olts/", {**NORTH, **changes}, format="json")

    assert answer.status_code == 400
    ((blamed, reason),) = reported(answer)
    assert blamed == field
    assert words in reason
    assert CANARY not in answer.content.decode()
    assert Olt.objects.count() == 1


def test_an_olt_is_reached_otherwise_and_the_trail_tells_from_where_to_where(admin: APIClient) -> None:
    olt = make_olt("north", host="192.0.2.7", address="192.0.2.7")
    body = {"host": "192.0.2.8", "port": 1161, "community": CANARY}

    answer = admin.put(f"/api/v1/olts/{olt.id}/connection/", body, format="json")

    stored = Olt.objects.get()
    assert answer.status_code == 200
    assert (stored.address, stored.port, stored.community.reveal()) == ("192.0.2.8", 1161, CANARY)
    assert (
        LogEntry.objects.get().change_message == "Host: 192.0.2.7 → 192.0.2.8, UDP port: 161 → 1161, Community: changed"
    )


def test_further_addresses_of_traps_are_written_read_and_emptied(admin: APIClient) -> None:
    olt = make_olt("north", host="192.0.2.7", address="192.0.2.7")
    place = f"/api/v1/olts/{olt.id}/connection/"

    answer = admin.put(place, {"host": "192.0.2.7", "trap_addresses": "192.0.2.8, 2001:db8::1"}, format="json")

    assert answer.json()["trap_addresses"] == "192.0.2.8, 2001:db8::1"
    assert Olt.objects.get().trap_sources == ["192.0.2.8", "2001:db8::1"]
    assert "192.0.2.8" in LogEntry.objects.get().change_message
    admin.put(place, {"host": "192.0.2.7"}, format="json")
    assert Olt.objects.get().trap_addresses
    refused = admin.put(place, {"host": "192.0.2.7", "trap_addresses": "olt.example.net"}, format="json")
    assert reported(refused) == [("trap_addresses", "olt.example.net is not an IP address.")]
    admin.put(place, {"host": "192.0.2.7", "trap_addresses": "none"}, format="json")
    assert Olt.objects.get().trap_addresses == ""


def test_a_stored_secret_stays_where_it_is_and_goes_nowhere_else(admin: APIClient) -> None:
    olt = make_olt("north", host="192.0.2.7", address="192.0.2.7")
    place = f"/api/v1/olts/{olt.id}/connection/"

    assert admin.put(place, {"host": "192.0.2.7", "version": "1"}, format="json").status_code == 200
    refused = admin.put(place, {"host": "192.0.2.8"}, format="json")

    ((blamed, reason),) = reported(refused)
    assert (refused.status_code, blamed) == (400, "community")
    assert "enter it again" in reason
    assert (Olt.objects.get().address, Olt.objects.get().snmp_version) == ("192.0.2.7", "1")


def test_how_an_olt_is_reached_and_who_said_so_are_written_together_or_not_at_all(
    admin: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    olt = make_olt("north", host="192.0.2.7", address="192.0.2.7")

    body = {"host": "192.0.2.7", "port": 1161, "community": CANARY}

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(api_olts, "record", fail)
    with pytest.raises(RuntimeError):
        admin.put(f"/api/v1/olts/{olt.id}/connection/", body, format="json")

    assert Olt.objects.get().port == 161


def test_an_olt_that_is_renamed_at_the_same_moment_gets_no_twin(
    admin: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    olt = make_olt("north")

    def look_up(hosts: set[str]) -> dict[str, str]:
        Olt.objects.update(name="south")
        return {host: host for host in hosts}

    monkeypatch.setattr(inventory, "resolve_all", look_up)
    body = {"host": "192.0.2.8", "community": CANARY}

    assert admin.put(f"/api/v1/olts/{olt.id}/connection/", body, format="json").status_code == 404
    assert [each.name for each in Olt.objects.all()] == ["south"]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("meet_in", ["resolve_all", "_save_groups"], ids=["before it is checked", "before it is saved"])
@pytest.mark.parametrize("changes", [{"host": "192.0.2.8"}, {"name": "south"}], ids=["same name", "same address"])
def test_of_two_that_come_at_once_one_is_added(
    monkeypatch: pytest.MonkeyPatch, meet_in: str, changes: dict[str, str]
) -> None:
    token, both = create_token(make_user(Role.ADMIN)), Barrier(2, timeout=30)
    original = getattr(inventory, meet_in)

    def meet(*arguments: Any) -> Any:
        both.wait()
        return original(*arguments)

    def post(body: dict[str, Any]) -> Any:
        try:
            client = APIClient(headers={"Authorization": f"Bearer {token}", "accept-language": "en"})
            return client.post("/api/v1/olts/", body, format="json")
        finally:
            connection.close()

    monkeypatch.setattr(inventory, meet_in, meet)
    with ThreadPoolExecutor(2) as threads:
        won, lost = sorted(threads.map(post, [NORTH, NORTH | changes]), key=lambda answer: answer.status_code)

    assert (won.status_code, lost.status_code) == (201, 400)
    assert lost.headers["Content-Type"] == "application/problem+json"
    assert Olt.objects.get().host == won.json()["host"]
    assert LogEntry.objects.count() == 1


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

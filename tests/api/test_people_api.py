"""Accounts, OLT groups and tokens over the API: for administrators of all OLTs, with every secret shown once."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import PASSWORD, make_olt, make_user
from facho.accounts.models import LinkedIdentity, Profile
from facho.accounts.roles import Role, role_of
from facho.accounts.scope import scope_of
from facho.alerts.models import AlertRule
from facho.api.models import ApiToken
from facho.api.tokens import create_token, verify_token
from facho.hosts.models import OltGroup

USERS, GROUPS, TOKENS = "/api/v1/users/", "/api/v1/olt-groups/", "/api/v1/tokens/"


def create(client: APIClient, address: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(address, body, format="json")
    assert answer.status_code == 201, answer.content
    # No proxy and no browser keeps what is shown once.
    if address != GROUPS:
        assert "no-store" in answer.headers["Cache-Control"]
    return dict(answer.json())


def reported(answer: Any) -> dict[str, str]:
    """Return the inputs at fault with what was said about them."""
    assert answer.status_code == 400, answer.content
    return {error["field"]: error["detail"] for error in answer.json()["errors"]}


def audit() -> list[tuple[str, str]]:
    return [(entry.object_repr, entry.get_change_message()) for entry in LogEntry.objects.order_by("id")]


def test_an_account_is_created_with_role_and_groups_and_its_link_works_once(admin: APIClient) -> None:
    north = OltGroup.objects.create(name="North")
    body = {"username": "vera", "email": "vera@example.net", "role": "operator", "olt_group_ids": [north.pk]}

    made = create(admin, USERS, body)

    vera = User.objects.get(username="vera")
    assert (role_of(vera), scope_of(vera).group_ids) == (Role.OPERATOR, frozenset({north.pk}))
    link = urlsplit(made.pop("link")).path
    assert made == {**body, "id": vera.pk, "is_active": True, "signs_on_elsewhere": False, "has_password": False} | {
        "last_login": None
    }
    assert admin.get(f"{USERS}{vera.pk}/").json() == made
    stranger = Client()
    stranger.post(link, {"new_password1": PASSWORD, "new_password2": PASSWORD})
    assert Client().login(username="vera", password=PASSWORD)
    assert Client().get(link).status_code == 410
    ((who, words), *_own_password) = audit()
    assert (who, "role: — → operator" in words, "OLT groups: — → North" in words) == ("vera", True, True)


def test_no_list_and_no_audit_entry_holds_a_secret(admin: APIClient) -> None:
    ana = make_user(Role.VIEWER, "ana")
    secrets = [
        create(admin, USERS, {"username": "vera", "role": "viewer"})["link"],
        admin.post(f"{USERS}{ana.pk}/link/").json()["link"],
        create(admin, TOKENS, {"user_id": ana.pk, "name": "Grafana"})["token"],
    ]

    shown = "".join(admin.get(address).content.decode() for address in (USERS, TOKENS)) + str(audit())
    assert [secret for secret in secrets if secret in shown] == []
    assert ana.password not in shown
    assert len(audit()) == 3


def test_role_groups_and_name_change_alone_or_together(admin: APIClient) -> None:
    north, south = (OltGroup.objects.create(name=name) for name in ("North", "South"))
    bob = make_user(Role.VIEWER, "bob")
    address = f"{USERS}{bob.pk}/"

    admin.patch(address, {"olt_group_ids": [north.pk, south.pk]}, format="json")
    changed = admin.patch(address, {"role": "operator"}, format="json").json()
    assert (changed["role"], changed["olt_group_ids"]) == ("operator", [north.pk, south.pk])
    changed = admin.patch(address, {"username": "robert", "is_active": False}, format="json").json()
    assert (changed["username"], changed["is_active"], changed["role"]) == ("robert", False, "operator")
    changed = admin.patch(address, {"olt_group_ids": []}, format="json").json()
    assert changed["olt_group_ids"] == []
    assert [words for _who, words in audit()][1] == "role: viewer → operator"


def test_a_disabled_account_and_its_tokens_are_let_in_nowhere(admin: APIClient) -> None:
    bob = make_user(Role.VIEWER, "bob")
    token = create_token(bob)

    admin.patch(f"{USERS}{bob.pk}/", {"is_active": False}, format="json")

    assert verify_token(token, now=timezone.now()) is None
    assert not Client().login(username="bob", password=PASSWORD)
    assert admin.post(f"{USERS}{bob.pk}/link/").status_code == 409


def test_the_last_administrator_stays_and_nobody_disables_themselves(admin: APIClient) -> None:
    own = f"{USERS}{User.objects.get().pk}/"

    assert set(reported(admin.patch(own, {"role": "viewer"}, format="json"))) == {"role"}
    assert set(reported(admin.patch(own, {"is_active": False}, format="json"))) == {"is_active"}
    make_user(Role.ADMIN, "second")
    assert set(reported(admin.patch(own, {"is_active": False}, format="json"))) == {"is_active"}
    assert admin.patch(own, {"role": "viewer"}, format="json").status_code == 200


def test_what_does_not_fit_is_named_and_nothing_is_stored(admin: APIClient) -> None:
    make_user(Role.VIEWER, "bob")
    wrong = {"username": "bob", "email": "no", "role": "king", "olt_group_ids": [77], "password": "x"}

    assert set(reported(admin.post(USERS, wrong, format="json"))) == {
        "username",
        "email",
        "role",
        "olt_group_ids",
        "password",
    }
    assert set(reported(admin.post(USERS, {}, format="json"))) == {"username", "role"}
    too_many = {"username": "eva", "role": "viewer", "olt_group_ids": list(range(1, 300))}
    assert set(reported(admin.post(USERS, too_many, format="json"))) == {"olt_group_ids"}
    assert User.objects.count() == 2


def test_who_signs_on_elsewhere_gets_no_password(admin: APIClient) -> None:
    eva = make_user(Role.VIEWER, "eva")
    LinkedIdentity.objects.create(user=eva, issuer="https://id.example.net", subject="1", signed_on_at=timezone.now())

    assert admin.get(f"{USERS}{eva.pk}/").json()["signs_on_elsewhere"] is True
    assert admin.post(f"{USERS}{eva.pk}/link/").status_code == 409


def test_the_list_is_narrowed_and_its_queries_do_not_grow(admin: APIClient) -> None:
    north = OltGroup.objects.create(name="North")
    with CaptureQueriesContext(connection) as few:
        admin.get(USERS)
    for number in range(8):
        Profile.objects.create(user=make_user(Role.OPERATOR, f"person-{number}")).olt_groups.add(north)
    with CaptureQueriesContext(connection) as many:
        rows = admin.get(f"{USERS}?role=operator&active=true&search=person").json()["results"]

    assert [row["username"] for row in rows] == [f"person-{number}" for number in range(8)]
    assert len(many) <= len(few) + 1


def test_a_group_is_created_renamed_counted_and_deleted(admin: APIClient) -> None:
    group = create(admin, GROUPS, {"name": "North"})
    make_olt(group=OltGroup.objects.get())
    address = f"{GROUPS}{group['id']}/"

    assert admin.patch(address, {"name": "Norte"}, format="json").json() == {**group, "name": "Norte", "olts": 1}
    assert reported(admin.post(GROUPS, {"name": "Norte"}, format="json"))
    assert admin.delete(address).status_code == 204
    assert admin.get(GROUPS).json()["count"] == 0
    assert [who for who, _words in audit()] == ["North", "Norte", "Norte"]


@pytest.mark.parametrize("what", ["person", "token", "rule"])
def test_a_group_that_limits_something_stays(admin: APIClient, what: str) -> None:
    group, bob = OltGroup.objects.create(name="North"), make_user(Role.VIEWER, "bob")
    if what == "person":
        Profile.objects.create(user=bob).olt_groups.add(group)
    elif what == "token":
        create_token(bob, olt_groups=[group])
    else:
        AlertRule.objects.create(name="of the north", kind="olt_unreachable", olt_group=group)

    assert admin.delete(f"{GROUPS}{group.pk}/").status_code == 409
    page = admin.post("/settings/groups/", {"group": group.pk, "delete": "1"}, follow=True).content.decode()
    assert "North is in use" in page
    assert OltGroup.objects.filter(name="North").exists()
    assert audit() == []


def test_a_token_is_shown_once_does_what_was_asked_and_is_revoked(admin: APIClient) -> None:
    north, bob = OltGroup.objects.create(name="North"), make_user(Role.OPERATOR, "bob")
    make_olt("seen", group=north), make_olt("elsewhere")
    body = {"user_id": bob.pk, "name": "billing", "role": "viewer", "days": 30, "olt_group_ids": [north.pk]}

    made = create(admin, TOKENS, body)

    program = APIClient(headers={"authorization": f"Bearer {made.pop('token')}"})
    assert [row["name"] for row in program.get("/api/v1/olts/").json()["results"]] == ["seen"]
    assert program.get(USERS).status_code == 403
    ends = ApiToken.objects.get().expires_at
    assert ends is not None
    assert 29 <= (ends - timezone.now()).days <= 30
    (row,) = admin.get(f"{TOKENS}?user={bob.pk}").json()["results"]
    assert row == made | {"last_used_at": row["last_used_at"]}
    assert admin.delete(f"{TOKENS}{made['id']}/").status_code == 204
    assert program.get("/api/v1/olts/").status_code == 401
    assert [who for who, _words in audit()] == ["bob · billing · viewer"] * 2


def test_no_token_may_do_more_than_its_owner(admin: APIClient) -> None:
    bob, idle = make_user(Role.VIEWER, "bob"), make_user(None, "idle")

    assert set(reported(admin.post(TOKENS, {"user_id": bob.pk, "role": "admin"}, format="json"))) == {"role"}
    assert set(reported(admin.post(TOKENS, {"user_id": idle.pk}, format="json"))) == {"role"}
    assert set(reported(admin.post(TOKENS, {"user_id": 999, "days": 0}, format="json"))) == {"user_id", "days"}
    assert ApiToken.objects.count() == 0


@pytest.mark.parametrize("address", [USERS, GROUPS, TOKENS])
def test_only_administrators_of_all_olts_read_or_write(viewer: APIClient, operator: APIClient, address: str) -> None:
    limited = make_user(Role.ADMIN, "limited")
    Profile.objects.create(user=limited).olt_groups.add(OltGroup.objects.create(name="North"))
    by_token = APIClient(headers={"authorization": f"Bearer {create_token(make_user(Role.ADMIN), role=Role.OPERATOR)}"})
    limited_client = APIClient()
    limited_client.force_login(limited)

    for client in (viewer, operator, limited_client, by_token):
        assert client.get(address).status_code == 403
        assert client.post(address, {"name": "x"}, format="json").status_code == 403
    assert APIClient().get(address).status_code == 401

"""The admin pages of people and of what they changed."""

from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db.models import ProtectedError
from django.test import Client

from api.rows import make_olt, make_user
from facho.accounts.audit import Action, console, record
from facho.accounts.models import Profile
from facho.accounts.roles import Role, people, role_of
from facho.accounts.scope import scope_of
from facho.alerts.models import AlertRule
from facho.api.tokens import create_token
from facho.hosts.models import Olt, OltGroup

pytestmark = pytest.mark.django_db

PASSWORD = "correct-horse-9"
PROFILE = {
    "profile-TOTAL_FORMS": "1",
    "profile-INITIAL_FORMS": "0",
    "profile-0-language": "",
    "profile-0-time_zone": "",
}


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_user(Role.ADMIN, "root"))
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


def change(client: Client, user: User, **values: object) -> int:
    body = {"username": user.username, "role": "viewer", "is_active": "on", **PROFILE, "profile-0-user": user.pk}
    return client.post(f"/admin/auth/user/{user.pk}/change/", body | values).status_code


def test_a_person_is_made_with_a_role_and_a_password_by_the_rules(admin: Client) -> None:
    body = {"username": "ana", "usable_password": "true", "role": "operator"}

    weak = admin.post("/admin/auth/user/add/", {**body, "password1": "12345", "password2": "12345"})
    made = admin.post("/admin/auth/user/add/", {**body, "password1": PASSWORD, "password2": PASSWORD})

    assert (weak.status_code, made.status_code) == (200, 302)
    assert role_of(User.objects.get(username="ana")) is Role.OPERATOR


def test_a_person_is_limited_to_groups(admin: Client) -> None:
    ana, north = make_user(Role.VIEWER), OltGroup.objects.create(name="North")

    assert change(admin, ana, **{"profile-0-olt_groups": [north.pk], "role": "operator"}) == 302

    ana = User.objects.get(pk=ana.pk)
    assert scope_of(ana).group_ids == {north.pk}
    assert role_of(ana) is Role.OPERATOR


def limit_person(north: OltGroup) -> None:
    Profile.objects.create(user=make_user(name="ana")).olt_groups.add(north)


def limit_token(north: OltGroup) -> None:
    create_token(make_user(name="ana"), olt_groups=[north])


def limit_rule(north: OltGroup) -> None:
    AlertRule.objects.create(name="Light of ana", kind="weak_light", olt_group=north)


@pytest.mark.parametrize("limit", [limit_person, limit_token, limit_rule])
def test_a_group_that_limits_somebody_or_something_cannot_be_deleted(
    admin: Client, limit: Callable[[OltGroup], None]
) -> None:
    north = OltGroup.objects.create(name="North")
    olt = make_olt("North-1", group=north)
    limit(north)
    chosen = {"action": "delete_selected", "post": "yes", "_selected_action": [north.pk]}

    refused = admin.post(f"/admin/hosts/oltgroup/{north.pk}/delete/", {"post": "yes"}).content.decode()
    admin.post("/admin/hosts/oltgroup/", chosen)
    with pytest.raises(ProtectedError):
        north.delete()

    assert "Without their group these would apply to every OLT" in refused
    assert "ana" in refused
    assert Olt.objects.get(group=north) == olt


def test_a_group_that_nothing_holds_to_is_deleted_and_leaves_its_olts(admin: Client) -> None:
    north = OltGroup.objects.create(name="North")
    olt = make_olt("North-1", group=north)

    assert admin.post(f"/admin/hosts/oltgroup/{north.pk}/delete/", {"post": "yes"}).status_code == 302

    assert Olt.objects.get(group=None) == olt


def test_the_last_administrator_stays(admin: Client) -> None:
    root = people().get()

    assert change(admin, root, role="viewer") == 200
    assert change(admin, root, role="admin", is_active="") == 200
    admin.post(f"/admin/auth/user/{root.pk}/delete/", {"post": "yes"})
    assert role_of(User.objects.get(pk=root.pk)) is Role.ADMIN


def test_the_last_administrators_stay_when_all_are_chosen_at_once(admin: Client) -> None:
    make_user(Role.ADMIN, "second")
    chosen = {"action": "delete_selected", "post": "yes", "_selected_action": [user.pk for user in people()]}

    admin.post("/admin/auth/user/", chosen)

    assert people().count() == 2


def test_who_is_in_the_trail_is_closed_and_not_deleted(admin: Client) -> None:
    ana, eva = make_user(Role.OPERATOR, "ana"), make_user(Role.OPERATOR, "eva")
    record(ana, OltGroup.objects.create(name="North"), Action.ADDED)

    for person in (ana, eva):
        admin.post(f"/admin/auth/user/{person.pk}/delete/", {"post": "yes"})

    assert sorted(people().values_list("username", flat=True)) == ["ana", "root"]
    assert LogEntry.objects.filter(user=ana).count() == 1


def test_the_console_is_nobody_to_be_edited(admin: Client) -> None:
    assert admin.get(f"/admin/auth/user/{console().pk}/change/").status_code == 302
    assert "(console)" not in admin.get("/admin/auth/user/").content.decode()


def test_the_audit_is_read_and_never_written(admin: Client) -> None:
    ana = make_user(name="ana")
    record(ana, ana, Action.CHANGED, "language: es → en")
    entry = LogEntry.objects.latest("id")

    listed = admin.get("/admin/admin/logentry/").content.decode()

    assert "language: es → en" in listed
    assert admin.get(f"/admin/admin/logentry/{entry.pk}/change/").status_code == 200
    assert admin.post(f"/admin/admin/logentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin.get("/admin/admin/logentry/add/").status_code == 403


def test_what_an_admin_changes_is_written_down_by_field(admin: Client) -> None:
    ana = make_user(Role.VIEWER, "ana")

    change(admin, ana, email="ana@example.net", role="operator")

    message = LogEntry.objects.latest("id").get_change_message()
    assert "mail" in message.lower()
    assert "Permissions" in message

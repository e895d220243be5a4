"""People: added with role and groups in one step, by a link that works once; the last administrator stays."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from api.rows import PASSWORD, make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role, role_of
from facho.accounts.scope import scope_of
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN, "ana"))
    return client


def add(client: Client, **changes: object) -> str:
    """Add somebody, and return the page that follows."""
    values = {"username": "vera", "email": "vera@example.org", "role": "viewer", **changes}
    return client.post("/settings/people/add/", values, follow=True).content.decode()


def link_on(page: str) -> str:
    found = re.search(r'value="http://testserver(/invitation/[^"]+)"', page)
    assert found is not None
    return found[1]


def test_somebody_is_added_with_role_and_groups_and_logs_in_by_a_link_that_works_once(admin: Client) -> None:
    north = OltGroup.objects.create(name="North")
    make_olt("seen", group=north), make_olt("elsewhere")

    page = add(admin, role="operator", olt_groups=[north.id])
    link, stranger = link_on(page), Client(headers={"accept-language": "en"})

    vera = User.objects.get(username="vera")
    assert (role_of(vera), scope_of(vera).group_ids) == (Role.OPERATOR, frozenset({north.id}))
    assert "invited" in page
    assert "North" in page
    assert "/invitation/" not in admin.get("/settings/people/").content.decode()
    assert stranger.get(link).status_code == 200
    refused = stranger.post(link, {"new_password1": PASSWORD, "new_password2": "other"})
    assert refused.status_code == 200
    stranger.post(link, {"new_password1": PASSWORD, "new_password2": PASSWORD})
    assert "elsewhere" not in stranger.get("/").content.decode()
    assert "seen" in stranger.get("/").content.decode()
    assert Client().get(link).status_code == 410
    assert Client().login(username="vera", password=PASSWORD)
    words = " ".join(LogEntry.objects.values_list("change_message", flat=True))
    assert "North" in words
    assert link.split("/")[2] not in words


def test_a_link_is_readable_in_no_session_and_ends_with_the_account(admin: Client) -> None:
    make_olt()
    admin.post("/settings/people/add/", {"username": "vera", "role": "viewer"})
    stored = [session.get_decoded() for session in Session.objects.all()]
    assert "invitation" not in str(stored)

    link = link_on(admin.get("/settings/people/").content.decode())
    User.objects.filter(username="vera").update(is_active=False)
    assert Client().get(link).status_code == 410
    assert Client().get("/invitation/nonsense/").status_code == 410


def test_a_new_link_lets_choose_another_password_and_the_old_one_holds_until_then(admin: Client) -> None:
    bob = make_user(Role.VIEWER, "bob")

    page = admin.post(f"/settings/people/{bob.id}/link/", follow=True).content.decode()

    assert Client().login(username="bob", password=PASSWORD)
    # A login ends it: somebody who remembers the password needs no link.
    assert Client().get(link_on(page)).status_code == 410
    link = link_on(admin.post(f"/settings/people/{bob.id}/link/", follow=True).content.decode())
    Client().post(link, {"new_password1": "another long secret", "new_password2": "another long secret"})
    assert not Client().login(username="bob", password=PASSWORD)


def test_nothing_typed_is_lost_by_an_error(admin: Client) -> None:
    group = OltGroup.objects.create(name="North")
    make_user(Role.VIEWER, "vera")

    page = add(admin, role="operator", olt_groups=[group.id])

    assert 'class="field wrong" id="field-username"' in page
    assert 'value="vera@example.org"' in page
    assert re.search(r'value="operator"[^>]* checked', page)
    assert re.search(rf'name="olt_groups" value="{group.id}"[^>]* checked', page)
    assert User.objects.count() == 2


def test_the_last_administrator_and_oneself_cannot_be_lost(admin: Client) -> None:
    ana = User.objects.get()
    address = f"/settings/people/{ana.id}/"

    page = admin.post(address, {"username": "ana", "role": "viewer", "is_active": "on"}).content.decode()
    assert "This is the last administrator" in page
    make_user(Role.ADMIN, "bea")
    page = admin.post(address, {"username": "ana", "role": "admin"}).content.decode()
    assert "You cannot disable your own account." in page
    assert role_of(User.objects.get(username="ana")) is Role.ADMIN


def test_an_account_is_changed_and_disabled_and_its_session_ends(admin: Client) -> None:
    bob, client = make_user(Role.OPERATOR, "bob"), Client()
    client.force_login(bob)
    group = OltGroup.objects.create(name="North")

    admin.post(
        f"/settings/people/{bob.id}/",
        {"username": "bob", "role": "viewer", "olt_groups": [group.id], "is_active": "on"},
    )
    changed = User.objects.get(id=bob.id)
    assert (role_of(changed), scope_of(changed).group_ids) == (Role.VIEWER, frozenset({group.id}))
    assert "role: operator → viewer" in LogEntry.objects.latest("id").change_message

    admin.post(f"/settings/people/{bob.id}/", {"username": "bob", "role": "viewer"})
    assert client.get("/").status_code == 302
    assert not Profile.objects.get(user=bob).olt_groups.exists()


def test_the_list_costs_the_same_with_many(admin: Client) -> None:
    with CaptureQueriesContext(connection) as few:
        admin.get("/settings/people/")
    for number in range(20):
        Profile.objects.create(user=make_user(Role.VIEWER, f"p{number}"))
    with CaptureQueriesContext(connection) as many:
        page = admin.get("/settings/people/?q=p1").content.decode()

    assert len(many) <= len(few) + 2
    assert "p12" in page
    assert ">p2<" not in page

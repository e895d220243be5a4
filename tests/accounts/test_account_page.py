"""One's own account: tokens shown once, password, language and time zone."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from api.rows import PASSWORD, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.accounts.scope import scope_of
from facho.api.models import ApiToken
from facho.api.tokens import create_token, verify_token
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db

NEW = "another-horse-9"


@pytest.fixture
def ana() -> User:
    return make_user(Role.OPERATOR, "ana")


@pytest.fixture
def own(client: Client, ana: User) -> Client:
    client.force_login(ana)
    return client


def make_token(client: Client, **values: Any) -> str:
    body = {"name": "Grafana", "role": "viewer", "days": "30", **values}
    page = client.post("/account/tokens/", body, follow=True).content.decode()
    found = re.search(r'value="(facho_[^"]+)"', page)
    return found[1] if found else ""


def test_a_token_is_shown_once_and_works(own: Client, ana: User) -> None:
    text = make_token(own)

    grant = verify_token(text, now=timezone.now())
    assert grant is not None
    assert (grant.user, grant.role) == (ana, Role.VIEWER)
    page = own.get("/account/").content.decode()
    assert "Grafana" in page
    assert text not in page


def test_reloading_after_a_token_was_made_makes_no_second_one(own: Client) -> None:
    answer = own.post("/account/tokens/", {"name": "Grafana", "role": "viewer", "days": "30"})

    assert (answer.status_code, answer.headers["Location"]) == (302, "/account/")
    assert "facho_" not in str(dict(own.session.items()))
    assert own.get("/account/").content.decode().count('value="facho_') == 1
    assert "new_token" not in own.session


def test_a_token_is_not_revoked_by_one_click(own: Client, ana: User) -> None:
    create_token(ana)

    page = own.get("/account/").content.decode()

    asked = page[page.index("<details>") : page.index("</details>")]
    assert f'action="/account/tokens/{ApiToken.objects.get().pk}/revoke/"' in asked
    assert page.count("/revoke/") == asked.count("/revoke/") == 1
    assert "Programs that use it lose access at once. This cannot be undone." in asked


@pytest.mark.parametrize("wrong", [{"role": "admin"}, {"days": "0"}, {"days": "9999"}, {"name": ""}])
def test_a_token_may_not_do_more_or_last_longer_than_is_right(own: Client, wrong: dict[str, str]) -> None:
    assert make_token(own, **wrong) == ""
    assert not ApiToken.objects.exists()


def test_a_token_may_show_less_than_its_owner_sees_and_never_more(own: Client, ana: User) -> None:
    north, south = OltGroup.objects.create(name="North"), OltGroup.objects.create(name="South")
    profile = Profile.objects.create(user=ana)
    profile.olt_groups.add(north)

    assert make_token(own, olt_groups=[south.pk]) == ""
    text = make_token(own, olt_groups=[north.pk])
    profile.olt_groups.set([south])

    grant = verify_token(text, now=timezone.now())
    assert grant is not None
    assert scope_of(grant.user).group_ids == frozenset()


def test_a_token_is_revoked_by_its_owner_alone(own: Client, ana: User) -> None:
    create_token(ana)
    create_token(make_user(Role.ADMIN))
    mine, another = ApiToken.objects.order_by("id")

    assert own.post(f"/account/tokens/{another.pk}/revoke/").status_code == 404
    assert own.post(f"/account/tokens/{mine.pk}/revoke/").status_code == 302
    assert list(ApiToken.objects.all()) == [another]


def test_a_new_password_ends_the_other_sessions_and_leaves_programs_alone(own: Client, ana: User) -> None:
    elsewhere, token = Client(), create_token(ana)
    elsewhere.force_login(ana)
    body = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}

    assert own.post("/account/password/", body).status_code == 302

    assert own.get("/account/").status_code == 200
    assert elsewhere.get("/account/").status_code == 302
    assert User.objects.get().check_password(NEW)
    assert verify_token(token, now=timezone.now())


@pytest.mark.parametrize("weak", ["short", "1234567890", "password123"])
def test_a_weak_password_is_refused(own: Client, weak: str) -> None:
    body = {"old_password": PASSWORD, "new_password1": weak, "new_password2": weak}

    assert own.post("/account/password/", body).status_code == 200
    assert User.objects.get().check_password(PASSWORD)


def test_pages_speak_the_language_and_the_time_of_their_reader(own: Client) -> None:
    make_token(own)

    own.post("/account/reading/", {"language": "es", "time_zone": "America/Bogota"})

    page = own.get("/account/", headers={"Accept-Language": "en"}).content.decode()
    assert '<html lang="es">' in page
    assert "-05:00" in page
    profile = Profile.objects.get()
    assert (profile.language, profile.time_zone) == ("es", "America/Bogota")


def test_the_preferences_come_back_at_the_next_login(client: Client, ana: User) -> None:
    Profile.objects.create(user=ana, language="es", time_zone="Not/AZone")

    client.post("/login/", {"username": "ana", "password": PASSWORD})

    assert '<html lang="es">' in client.get("/account/").content.decode()


def test_a_zone_that_does_not_exist_is_refused(own: Client) -> None:
    assert own.post("/account/reading/", {"language": "", "time_zone": "Moon/Base"}).status_code == 200
    assert not Profile.objects.exists()


def test_what_one_does_to_the_own_account_is_written_down(own: Client) -> None:
    own.post("/account/reading/", {"language": "es", "time_zone": ""}, headers={"Accept-Language": "en"})
    text = make_token(own)
    own.post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/")
    own.post("/account/password/", {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})

    written = list(LogEntry.objects.order_by("id").values_list("action_flag", "change_message"))

    assert written == [(2, "language: — → es"), (1, ""), (3, ""), (2, "password: changed")]
    assert text not in str(list(LogEntry.objects.values()))


def test_visitors_are_asked_to_log_in(client: Client) -> None:
    assert client.get("/account/").headers["Location"] == "/login/?next=/account/"


def test_the_page_costs_the_same_with_many_tokens(
    own: Client, ana: User, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(30):
        create_token(ana, name=f"program {number}")

    with django_assert_max_num_queries(14):
        assert own.get("/account/").status_code == 200

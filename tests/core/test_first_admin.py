"""The one-time link of the first administrator, and logging in."""

import re

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client

from api.rows import PASSWORD, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role, role_of
from facho.alerts.links import load_public_address
from facho.dashboard.account import views as account
from facho.dashboard.account.views import make_setup_path

pytestmark = pytest.mark.django_db

FILLED_IN = {"username": "ana", "password1": PASSWORD, "password2": PASSWORD}


def setup_path() -> str:
    path = make_setup_path()
    assert path is not None
    return path


def test_the_link_makes_an_administrator_who_is_logged_in() -> None:
    client = Client()

    answer = client.post(setup_path(), FILLED_IN)

    assert answer.headers["Location"] == "/"
    assert role_of(User.objects.get(username="ana")) is Role.ADMIN
    assert client.get("/").status_code == 200


def test_the_link_asks_for_a_name_and_a_password_twice() -> None:
    page = Client().get(setup_path()).content.decode()

    asked = re.findall(r'<input type="\w+" name="(\w+)"', page)[-4:]
    assert asked == ["username", "password1", "password2", "public_url"]


def test_the_address_of_the_browser_is_offered_for_the_links_in_messages_and_kept() -> None:
    offered = Client().get(setup_path()).content.decode()
    Client().post(setup_path(), FILLED_IN | {"public_url": "https://facho.isp.example/"})

    assert 'value="http://testserver"' in offered
    assert load_public_address() == "https://facho.isp.example"


def test_the_administrator_reads_on_the_clock_that_was_chosen() -> None:
    client = Client()

    offered = client.get(setup_path()).content.decode()
    client.post(setup_path(), FILLED_IN | {"time_zone": "America/Bogota"})

    assert "data-own-zone" in offered
    assert "dashboard/own_zone.js" in offered
    assert Profile.objects.get(user__username="ana").time_zone == "America/Bogota"
    assert "UTC\N{MINUS SIGN}5</a>" in client.get("/").content.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"password2": "another"},
        {"password1": "short", "password2": "short"},
        {"username": ""},
        {"time_zone": "Mars"},
        {"public_url": "facho"},
    ],
)
def test_what_was_filled_in_wrong_makes_nobody(change: dict[str, str]) -> None:
    answer = Client().post(setup_path(), FILLED_IN | change)

    assert answer.status_code == 200
    assert b'class="errors"' in answer.content
    assert not User.objects.exists()


def test_there_is_no_link_once_someone_can_log_in() -> None:
    make_user()

    assert make_setup_path() is None


def test_an_earlier_link_is_dead_once_someone_can_log_in() -> None:
    path = setup_path()
    make_user()

    answer = Client().post(path, FILLED_IN)

    assert answer.status_code == 410
    assert not User.objects.filter(username="ana").exists()


def test_of_two_at_once_the_second_finds_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    path = setup_path()
    is_valid = account.FirstAdministratorForm.is_valid

    def someone_is_faster(form: account.FirstAdministratorForm) -> bool:
        make_user(Role.ADMIN, "faster")
        return is_valid(form)

    monkeypatch.setattr(account.FirstAdministratorForm, "is_valid", someone_is_faster)

    assert Client().post(path, FILLED_IN).status_code == 410
    assert list(User.objects.values_list("username", flat=True)) == ["faster"]


def test_a_link_dies_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    path = setup_path()
    monkeypatch.setattr(account, "LIFETIME_SECONDS", -1)

    assert Client().get(path).status_code == 410


@pytest.mark.parametrize("token", ["x", signing.dumps("first administrator", salt="another")])
def test_a_link_that_we_did_not_sign_is_dead(token: str) -> None:
    assert Client().get(f"/setup/{token}/").status_code == 410


def test_logging_in_leads_where_one_wanted_to_go() -> None:
    make_user(name="ana")

    answer = Client().post("/login/", {"username": "ana", "password": PASSWORD, "next": "/onus/"})

    assert answer.headers["Location"] == "/onus/"


def test_logging_in_leads_to_no_other_site() -> None:
    make_user(name="ana")

    answer = Client().post("/login/", {"username": "ana", "password": PASSWORD, "next": "https://example.org/"})

    assert answer.headers["Location"] == "/"


def test_a_wrong_password_is_said() -> None:
    make_user(name="ana")

    answer = Client().post("/login/", {"username": "ana", "password": "wrong"})

    assert b'role="alert"' in answer.content


def test_before_anyone_can_log_in_the_page_says_where_the_link_is() -> None:
    page = Client(headers={"accept-language": "en"}).get("/login/").content.decode()

    assert "a link to create the first administrator" in page


def test_logging_out_needs_a_button_and_not_a_link() -> None:
    client = Client()
    client.force_login(make_user())

    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").headers["Location"] == "/login/"

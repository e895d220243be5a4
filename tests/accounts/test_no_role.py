"""An account without a role reads nothing but itself, and is reported what to ask for."""

import pytest
from django.test import Client

from accounts.two_groups import World, make_world
from api.rows import make_user
from facho.accounts.roles import Role, give_role
from facho.accounts.scope import NOTHING, scope_of
from web.every_address import all_addresses, body_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def stranger(client: Client) -> Client:
    client.force_login(make_user(None, "new", is_staff=True))
    return client


def test_nothing_is_read_at_any_address(stranger: Client, world: World) -> None:
    read, words = [], [*world.shown.words, *world.hidden.words]
    for path in all_addresses(world):
        answer = stranger.get(path, REMOTE_ADDR="192.0.2.7")
        body = body_of(answer)
        is_open = path.startswith(("/account/", "/api/v1/schema", "/api/v1/docs", "/livez", "/readyz"))
        read += [path for word in words if word in body]
        read += [path for _ in [0] if answer.status_code == 200 and not is_open]

    assert read == []


def test_the_page_says_what_to_ask_for_and_leads_out(stranger: Client) -> None:
    answer = stranger.get("/", headers={"Accept-Language": "en"})

    page = answer.content.decode()
    assert answer.status_code == 403
    assert "ask an administrator to make you viewer, operator or admin" in page
    assert 'action="/logout/"' in page
    assert 'href="/account/"' in page
    assert "<nav" not in page


def test_the_own_account_counts_nothing_of_others(stranger: Client, world: World) -> None:
    page = stranger.get("/account/").content.decode()

    assert "<nav" not in page
    assert "badge" not in page


def test_a_program_is_reported_as_well(stranger: Client) -> None:
    answer = stranger.get("/api/v1/olts/", headers={"Accept-Language": "en"})

    assert answer.status_code == 403
    assert answer.json()["detail"].startswith("Your account has no role yet")


def test_a_page_that_is_open_when_the_role_is_taken_shows_nothing_more(stranger: Client) -> None:
    answer = stranger.get("/live/", headers={"HX-Request": "true"})

    assert (answer.content, answer.headers["HX-Refresh"]) == (b"", "true")


def test_a_role_opens_what_it_is_for() -> None:
    user = make_user(None)
    assert scope_of(user) == NOTHING

    give_role(user, Role.VIEWER)
    client = Client()
    client.force_login(user)

    assert client.get("/").status_code == 200

"""Who may read /metrics: this machine, a token of any role, and people who are logged in."""

import pytest
from rest_framework.test import APIClient

from api.metrics_world import Scraped
from api.rows import make_user
from facho.accounts.roles import Role
from facho.api.shared.problems import CONTENT_TYPE
from facho.api.tokens import create_token

pytestmark = pytest.mark.django_db

OUTSIDE = "192.0.2.7"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"])
def test_this_machine_needs_no_login(anonymous: APIClient, address: str) -> None:
    answer = anonymous.get("/metrics", REMOTE_ADDR=address)

    assert answer.status_code == 200
    assert Scraped(answer.content.decode()).value("facho_leader_present") == 0


@pytest.mark.parametrize("address", [OUTSIDE, "2001:db8::7", "::ffff:192.0.2.7", "", "localhost"])
def test_others_get_a_problem_and_no_login_page(anonymous: APIClient, address: str) -> None:
    answer = anonymous.get("/metrics", REMOTE_ADDR=address)

    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.headers["Content-Type"] == CONTENT_TYPE
    assert answer.json()["type"] == "urn:facho:problem:not-authenticated"


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"])
@pytest.mark.parametrize("address", ["127.0.0.1", OUTSIDE])
def test_who_comes_through_a_proxy_is_not_this_machine(anonymous: APIClient, name: str, address: str) -> None:
    answer = anonymous.get("/metrics", headers={name: "127.0.0.1"}, REMOTE_ADDR=address)

    assert answer.status_code == 401


@pytest.mark.parametrize("role", list(Role))
def test_a_token_of_any_role_opens(anonymous: APIClient, role: Role) -> None:
    token = create_token(make_user(role))

    answer = anonymous.get("/metrics", headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR=OUTSIDE)

    assert answer.status_code == 200


def test_a_wrong_token_does_not_open(anonymous: APIClient) -> None:
    answer = anonymous.get("/metrics", headers={"Authorization": "Bearer wrong"}, REMOTE_ADDR=OUTSIDE)

    assert answer.status_code == 401


def test_who_is_logged_in_may_look(viewer: APIClient) -> None:
    assert viewer.get("/metrics", REMOTE_ADDR=OUTSIDE).status_code == 200


@pytest.mark.parametrize("accept", ["text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0", "*/*"])
def test_the_answer_is_the_text_format_whatever_is_asked_for(anonymous: APIClient, accept: str) -> None:
    answer = anonymous.get("/metrics", headers={"Accept": accept})

    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "no-store" in answer.headers["Cache-Control"]


def test_the_metrics_are_no_part_of_the_api_document(viewer: APIClient) -> None:
    assert b"/metrics" not in viewer.get("/api/v1/schema/").content


def test_nothing_can_be_written(anonymous: APIClient) -> None:
    assert anonymous.post("/metrics").status_code == 405

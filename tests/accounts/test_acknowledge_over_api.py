"""Taking note over the API: who may, what others see of it, and what is refused."""

import pytest
from rest_framework.test import APIClient

from api.coordinator_rows import make_violation
from api.rows import make_olt, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role

pytestmark = pytest.mark.django_db

ADDRESSES = ["outages", "violations"]


def client_of(role: Role, name: str = "") -> APIClient:
    client = APIClient()
    client.force_login(make_user(role, name))
    return client


def address(kind: str) -> str:
    row = make_outage(make_olt()) if kind == "outages" else make_violation()
    return f"/api/v1/{kind}/{row.pk}/"


@pytest.mark.parametrize("kind", ADDRESSES)
def test_a_note_is_seen_by_everybody(kind: str) -> None:
    row = address(kind)

    answer = client_of(Role.OPERATOR, "ana").post(f"{row}acknowledge/", {"note": "crew under way"}, format="json")

    assert answer.status_code == 200
    seen = client_of(Role.VIEWER).get(row).json()
    assert (seen["acknowledged_by"], seen["acknowledgement"]) == ("ana", "crew under way")
    assert seen["acknowledged_at"] == answer.json()["acknowledged_at"]
    assert client_of(Role.VIEWER).get(f"/api/v1/{kind}/?acknowledged=false").json()["count"] == 0


@pytest.mark.parametrize("kind", ADDRESSES)
def test_viewers_take_no_note(kind: str) -> None:
    row, viewer = address(kind), client_of(Role.VIEWER)

    assert viewer.post(f"{row}acknowledge/").status_code == viewer.delete(f"{row}acknowledge/").status_code == 403


@pytest.mark.parametrize("kind", ADDRESSES)
def test_whoever_comes_second_is_reported_who_was_first_and_may_take_it_back(kind: str) -> None:
    row, eva = address(kind), client_of(Role.ADMIN, "eva")
    client_of(Role.OPERATOR, "ana").post(f"{row}acknowledge/")

    refused = eva.post(f"{row}acknowledge/", {"note": "mine"}, format="json")

    assert (refused.status_code, "ana" in refused.json()["detail"]) == (409, True)
    assert eva.delete(f"{row}acknowledge/").json()["acknowledged_by"] is None
    assert eva.delete(f"{row}acknowledge/").status_code == 409


def test_a_note_has_a_limit_and_an_unknown_row_is_not_found() -> None:
    row, ana = address("outages"), client_of(Role.OPERATOR)

    assert ana.post(f"{row}acknowledge/", {"note": "x" * 501}, format="json").status_code == 400
    assert ana.post("/api/v1/outages/0/acknowledge/").status_code == 404

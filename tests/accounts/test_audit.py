"""Every change leaves one entry: who, by which token, what, and from what to what."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from rest_framework.test import APIClient

from api.rows import make_execution, make_node, make_olt, make_onu, make_user
from facho.accounts.audit import changed_words
from facho.accounts.roles import Role
from facho.api.models import ApiToken
from facho.api.tokens import create_token
from factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def by_token() -> APIClient:
    token = create_token(make_user(Role.OPERATOR, "ana"))
    return APIClient(headers={"Authorization": f"Bearer {token}"})


def written() -> list[tuple[str, str]]:
    return [(entry.object_repr, entry.change_message) for entry in LogEntry.objects.order_by("id")]


def test_of_a_secret_only_the_change_is_reported() -> None:
    before, after = {"name": "North", "community": "old-canary"}, {"name": "South", "community": "new-canary"}

    assert changed_words(before, after, secrets=["community"]) == "name: North → South, community: changed"


def test_what_stayed_is_not_reported_and_what_is_long_is_cut() -> None:
    words = changed_words({"a": 1, "b": None}, {"a": 1, "b": "x" * 500})

    assert words == f"b: — → {'x' * 79}…"


def test_changes_by_the_api_name_the_token_and_the_fields(by_token: APIClient) -> None:
    olt = make_olt("North")
    node = make_node(olt, next_run_at=NOW)

    by_token.patch(f"/api/v1/olts/{olt.pk}/", {"enabled": False}, format="json")
    by_token.patch(f"/api/v1/nodes/{node.pk}/", {"enabled": False}, format="json")

    token_id = ApiToken.objects.get().pk
    assert [message for _row, message in written()] == [f"enabled: True → False · by token {token_id}"] * 2
    assert LogEntry.objects.filter(user__username="ana").count() == 2


def test_operations_by_the_api_are_written_down_once_and_refused_ones_never(by_token: APIClient) -> None:
    olt = make_olt("North")
    node = make_node(olt)
    run = make_execution(node)

    pause = by_token.post("/api/v1/pauses/", {"olt_id": olt.pk, "minutes": 5}, format="json").json()["id"]
    by_token.post(f"/api/v1/pauses/{pause}/end/")
    by_token.post(f"/api/v1/pauses/{pause}/end/")
    by_token.post(f"/api/v1/executions/{run.pk}/cancel/")
    by_token.post(f"/api/v1/nodes/{node.pk}/resume/")

    assert [message.partition(" · ")[0] for _row, message in written()] == [
        f"by token {ApiToken.objects.get().pk}",
        "ended",
        "cancelled",
    ]


def test_reading_an_onu_now_is_written_down_by_page_and_api_unless_it_is_refused(
    client: Client, by_token: APIClient
) -> None:
    olt = make_olt()
    onu = make_onu(olt, serial="HWTC00000001")
    left = make_onu(olt, (0, 1, 0, 2), is_present=False, absent_since=NOW)
    client.force_login(make_user(Role.OPERATOR, "eva"))

    for row in (onu, left):
        client.post(f"/onus/{row.pk}/read/")
        by_token.post(f"/api/v1/onus/{row.pk}/read/")

    assert written() == [
        ("HWTC00000001", "Read now"),
        ("HWTC00000001", f"Read now · by token {ApiToken.objects.get().pk}"),
    ]

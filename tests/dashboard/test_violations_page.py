"""Violations on pages: the list, every slot with its fate, who takes care, and who may see what."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.coordinator_rows import HOUR, make_report, make_violation, this_hour
from api.rows import make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.execution_coordinator.models import QuotaViolation
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db


def text(client: Client, path: str = "/violations/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def operator(name: str) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.OPERATOR, name))
    return client


def test_a_line_says_the_hour_the_olt_and_what_fell_short(viewer: Client, settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    olt = make_olt("North")
    violation = make_violation(olt, hour=datetime(2026, 5, 6, 12, tzinfo=UTC))

    page = text(viewer)

    assert f'href="/violations/{violation.id}/">2026-05-06 12:00-13:00</a>' in page
    assert f'href="/olts/{olt.id}/">North</a>' in page
    assert "discovery 2/4" in page
    assert '<span class="severity high">high</span>' in page


def test_every_slot_has_its_fate_and_why(viewer: Client) -> None:
    violation = make_violation(make_olt("North"), notified=True, notified_at=timezone.now())

    page = text(viewer, f"/violations/{violation.id}/")

    assert "2 of 4 completed" in page
    assert page.count('<span class="step success">completed</span>') == 2
    assert '<span class="step failed">failed</span>' in page
    assert '<span class="step skipped">skipped</span>' in page
    assert "the OLT was busy with other work: get_potencia" in page
    assert "paused" in page
    assert "notified <time" in page


@pytest.mark.parametrize("report", [{}, [], "odd", {"tasks": [{"slots": [{}]}], "paused": [{}]}])
def test_a_report_that_lacks_anything_is_shown_all_the_same(viewer: Client, report: object) -> None:
    violation = make_violation(report=report)

    text(viewer, f"/violations/{violation.id}/")
    text(viewer)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("show=unseen", {"HIGH"}),
        ("show=acknowledged", {"LOW"}),
        ("severity=LOW", {"LOW"}),
        ("olt={south}", {"LOW"}),
        ("after={time}", {"HIGH"}),
        ("before={time}", {"LOW"}),
        ("severity=odd&before=never", {"LOW", "HIGH"}),
    ],
)
def test_the_list_is_narrowed(viewer: Client, query: str, shown: set[str]) -> None:
    south, hour = make_olt("South"), this_hour()
    make_violation(south, severity="LOW", hour=hour - 5 * HOUR, acknowledged_at=timezone.now())
    make_violation(severity="HIGH", hour=hour - HOUR)
    time = f"{timezone.localtime(hour - 3 * HOUR):%Y-%m-%dT%H:%M}"

    page = text(viewer, f"/violations/?{query.format(south=south.id, time=time)}")

    assert {name for name in ("LOW", "HIGH") if f'class="severity {name.lower()}"' in page} == shown


def test_an_operator_takes_note_and_another_is_reported(viewer: Client) -> None:
    violation = make_violation()
    address = f"/violations/{violation.id}/acknowledge/"

    eva = operator("eva")
    assert f'action="{address}"' in text(eva, f"/violations/{violation.id}/")

    operator("ana").post(address, {"note": "power work on site"})
    refused = eva.post(address, {"note": "mine"}, follow=True)

    assert "ana already acknowledged this." in refused.content.decode()
    assert "power work on site" in text(viewer, f"/violations/{violation.id}/")
    assert "acknowledged by ana" in text(viewer)
    assert viewer.post(address).status_code == 403


def test_a_violation_of_an_olt_out_of_scope_is_nowhere() -> None:
    group = OltGroup.objects.create(name="hers")
    mine, other = make_violation(make_olt(group=group)), make_violation(make_olt("Other"))
    client, user = Client(), make_user(Role.OPERATOR)
    Profile.objects.create(user=user).olt_groups.add(group)
    client.force_login(user)

    page = text(client)

    assert f"/violations/{mine.id}/" in page
    assert "Other" not in page
    assert client.get(f"/violations/{other.id}/").status_code == 404
    assert client.post(f"/violations/{other.id}/acknowledge/").status_code == 404


def test_hostile_words_of_a_report_are_text(viewer: Client) -> None:
    script = "<script>alert(1)</script>"
    violation = make_violation(report=make_report(this_hour(), task_type=script), acknowledged_at=timezone.now())

    for page in (text(viewer), text(viewer, f"/violations/{violation.id}/")):
        assert script not in page
        assert "&lt;script&gt;" in page


def test_queries_do_not_grow_and_pages_lead_on(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    olt, someone, hour = make_olt(), make_user(Role.OPERATOR), this_hour()
    seen = {"acknowledged_by": someone, "acknowledged_at": timezone.now()}
    for number in range(51):
        make_violation(olt, hour=hour - number * HOUR, created_at=hour - number * HOUR, report={}, **seen)
    last = QuotaViolation.objects.earliest("created_at")

    with django_assert_max_num_queries(7):  # session, user, profile, scope, OLTs to choose, violations, badge
        first = text(viewer)
    with django_assert_max_num_queries(7):
        text(viewer, f"/violations/{last.id}/")

    assert f"/violations/{last.id}/" not in first
    assert f"/violations/{last.id}/" in text(viewer, first.split('rel="next" href="')[1].split('"')[0])

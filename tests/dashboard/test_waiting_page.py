"""ONUs to authorise: the list, its file, and who may see what."""

import csv
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import NOW, make_olt, make_user, make_waiting_onu
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db


def text(client: Client, path: str = "/waiting/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def rows(client: Client, query: str = "") -> list[list[str]]:
    answer = client.get(f"/waiting/export/{query}")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(answer.content.decode())))


def test_a_waiting_onu_says_where_and_since_when_and_what_to_do(viewer: Client) -> None:
    olt = make_olt("North")
    make_waiting_onu(olt, serial="HWTC1", model="HG8310", first_seen_at=timezone.now() - timedelta(minutes=30))

    page = text(viewer)

    assert "HWTC1" in page
    assert "HG8310" in page
    assert f'href="/olts/{olt.id}/">North</a>' in page
    assert "0/1/3" in page
    assert "· 30 min</time>" in page
    assert "authorise an ONU on its OLT" in page


def test_nobody_waits(viewer: Client) -> None:
    assert "No ONUs are waiting." in text(viewer)


def test_the_file_has_what_the_form_leaves_and_runs_nothing(viewer: Client) -> None:
    north = make_olt("=North")
    make_waiting_onu(north, serial="=cmd()", model="@x")
    make_waiting_onu(make_olt("South"), serial="OTHER")

    header, *found = rows(viewer, f"?olt={north.id}")

    assert header == ["serial", "model", "olt", "pon_port", "first_seen_at", "last_seen_at"]
    assert found == [["'=cmd()", "'@x", "'=North", "0/1/3", NOW.isoformat(), NOW.isoformat()]]


@pytest.mark.parametrize(("query", "shown"), [("?q=hwtc", {"HWTC1"}), ("?q=zte", {"ZTEG2"}), ("", {"HWTC1", "ZTEG2"})])
def test_the_list_is_narrowed(viewer: Client, query: str, shown: set[str]) -> None:
    olt = make_olt()
    make_waiting_onu(olt, serial="HWTC1")
    make_waiting_onu(olt, serial="ZTEG2")

    page = text(viewer, f"/waiting/{query}")

    assert {serial for serial in ("HWTC1", "ZTEG2") if f"<bdi>{serial}</bdi>" in page} == shown


def test_hidden_olts_have_nobody_waiting() -> None:
    group = OltGroup.objects.create(name="hers")
    make_waiting_onu(make_olt(group=group), serial="MINE1")
    make_waiting_onu(make_olt("Other"), serial="OTHER2")
    client, user = Client(), make_user()
    Profile.objects.create(user=user).olt_groups.add(group)
    client.force_login(user)

    assert "MINE1" in text(client)
    assert "OTHER2" not in text(client)
    assert [row[0] for row in rows(client)[1:]] == ["MINE1"]


def test_queries_do_not_grow(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(60):
        make_waiting_onu(make_olt(), serial=f"S{number}", model="<b>")

    with django_assert_max_num_queries(7):  # session, user, profile, scope, OLTs to choose, ONUs, badge
        page = text(viewer)
    with django_assert_max_num_queries(6):
        assert len(rows(viewer)) == 61

    assert "<b>" not in page
    assert 'rel="next"' in page


def test_the_navigation_names_every_page_marks_the_present_one_and_counts_what_nobody_has_seen(viewer: Client) -> None:
    make_outage(make_olt())
    make_outage(make_olt(), acknowledged_at=timezone.now())
    make_outage(make_olt(), ended_at=timezone.now())

    page = text(viewer)

    for address in ("/", "/onus/", "/outages/", "/events/", "/violations/", "/waiting/"):
        assert f'<a href="{address}"' in page
    assert page.count("aria-current") == 1
    assert '<a href="/waiting/" aria-current="page">To authorise</a>' in page
    assert 'class="badge"><span>1</span><span class="hidden">' in page
    assert "/admin/" not in page


def test_only_those_who_may_change_something_are_led_to_the_settings(viewer: Client) -> None:
    admin = Client()
    admin.force_login(make_user(Role.ADMIN))

    assert 'href="/settings/"' in text(admin)
    assert 'href="/settings/"' not in text(viewer)

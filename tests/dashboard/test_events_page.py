"""The page of events: narrowing, paging, who may see what, and text that a device chose."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.hosts.models import Olt, OltGroup
from facho.onus.models import OnuCustomer, OnuEvent

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def text(client: Client, path: str = "/events/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def make_event(olt: Olt, number: int = 0, *, minutes_ago: int = 5, **fields: Any) -> OnuEvent:
    texts = {key: fields.pop(key) for key in ("serial", "description") if key in fields}
    onu = make_onu(olt, (0, 1, 3, number), **texts)
    at = timezone.now() - minutes_ago * MINUTE
    values = {"onu_number": number, "at": at, "kind": "down", "cause": "los", **fields}
    return OnuEvent.objects.create(olt=olt, pon_port=onu.pon_port, onu=onu, **values)


def test_an_event_says_what_happened_to_whom_and_where(viewer: Client) -> None:
    olt = make_olt("North")
    event = make_event(olt, 7, serial="HWTC77", description="Ana, 2nd floor")

    page = text(viewer)

    assert "Went down: loss of signal" in page
    assert f'href="/onus/{event.onu_id}/">HWTC77</a>' in page
    assert f'href="/olts/{olt.id}/">North</a>' in page
    assert "0/1/3/7" in page
    assert "Ana, 2nd floor" in page
    assert '<a href="/events/" aria-current="page">Events</a>' in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"A", "B", "C"}),
        ("olt={south}", {"C"}),
        ("kind=up", {"B"}),
        ("q=ana", {"A"}),
        ("q=contract-9", {"C"}),
        ("after={time}", {"A", "B"}),
        ("before={time}", {"C"}),
        ("q=an&kind=odd&olt=0&after=never&cursor=older-x", {"A", "B", "C"}),
    ],
)
def test_the_list_is_narrowed(viewer: Client, query: str, shown: set[str]) -> None:
    north, south = make_olt("North"), make_olt("South")
    make_event(north, 1, serial="AAA1", description="Ana")
    make_event(north, 2, serial="BBB1", kind="up", cause="")
    far = make_event(south, 3, serial="CCC1", minutes_ago=90)
    OnuCustomer.objects.create(onu=far.onu, label="contract-9")
    time = f"{timezone.now() - 60 * MINUTE:%Y-%m-%dT%H:%M}"

    page = text(viewer, f"/events/?{query.format(south=south.id, time=time)}")

    assert {name for name in "ABC" if f">{name * 3}1</a>" in page} == shown


def test_pages_lead_to_the_older_and_back(viewer: Client) -> None:
    olt = make_olt()
    for number in range(51):
        make_event(olt, number, minutes_ago=number, serial=f"S-{number:03}")

    first = text(viewer, "/events/?kind=down")
    older = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    second = text(viewer, older)
    newer = second.split('rel="prev" href="')[1].split('"')[0].replace("&amp;", "&")

    assert "S-050" not in first
    assert "S-050" in second
    assert "every 5s" not in second
    assert "S-000" in text(viewer, newer)


def test_events_of_hidden_olts_are_not_shown_nor_found() -> None:
    group = OltGroup.objects.create(name="hers")
    make_event(make_olt(group=group), 1, serial="MINE1")
    hidden = make_event(make_olt("Other"), 2, serial="OTHER2")
    client, user = Client(), make_user()
    Profile.objects.create(user=user).olt_groups.add(group)
    client.force_login(user)

    for query in ("", "?q=OTHER2", f"?olt={hidden.olt_id}"):
        assert ">OTHER2</a>" not in text(client, f"/events/{query}")
    assert "MINE1" in text(client)


def test_what_a_device_wrote_is_text(viewer: Client) -> None:
    script = "<script>alert(1)</script>"
    make_event(make_olt(), kind="description_changed", cause="", before=script, after=script, description=script)

    page = text(viewer)

    assert script not in page
    assert page.count("&lt;script&gt;") >= 3


def test_queries_do_not_grow(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(20):
        make_event(make_olt(), number, description="Ana")

    with django_assert_max_num_queries(7):  # session, user, profile, scope, OLTs to choose, events, badge
        text(viewer)
    with django_assert_max_num_queries(9):
        text(viewer, "/events/?q=ana")


def test_marks_without_letters_are_answered_beside_the_field(viewer: Client) -> None:
    assert "Enter at least 3 letters." in text(viewer, "/events/?q=%CC%81%CC%81%CC%81")


def test_a_part_is_the_list_alone(viewer: Client) -> None:
    assert "<html" not in viewer.get("/events/", headers={"HX-Request": "true"}).content.decode()
    assert Client().get("/events/").headers["Location"] == "/login/?next=/events/"

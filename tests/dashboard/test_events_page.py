"""The page of events: narrowing, paging, who may see what, and text that a device chose."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.hosts.models import Olt, OltGroup
from facho.onus.models import Onu, OnuCustomer, OnuEvent, Outage
from facho.plant.models import FindingOnu, LightFinding

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
    second = text(viewer, address_of("next", first))
    newer = address_of("prev", second)

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

    with django_assert_max_num_queries(8):  # session, user, profile, scope, OLTs to choose, events, badge
        text(viewer)
    with django_assert_max_num_queries(9):
        text(viewer, "/events/?q=ana")


def test_marks_without_letters_are_answered_beside_the_field(viewer: Client) -> None:
    assert "Enter at least 3 characters." in text(viewer, "/events/?q=%CC%81%CC%81%CC%81")


def test_a_part_is_the_list_alone(viewer: Client) -> None:
    assert "<html" not in viewer.get("/events/", headers={"HX-Request": "true"}).content.decode()
    assert Client().get("/events/").headers["Location"] == "/login/?next=/events/"


def cut(olt: Olt, count: int, *, first: int = 0, minutes_ago: int = 30, **fields: Any) -> Outage:
    """Let the ONUs of port 0/1/3 go down together, with an outage that says so."""
    outage = make_outage(olt, started_at=timezone.now() - minutes_ago * MINUTE, affected=count, down=count, **fields)
    for number in range(first, first + count):
        make_event(olt, number, serial=f"CUT-{number:03}", at=outage.started_at + timedelta(seconds=number))
    return outage


def test_an_outage_of_many_onus_is_one_line_that_opens(viewer: Client) -> None:
    olt = make_olt("North")
    outage = cut(olt, 33)
    make_event(make_olt("South"), 1, serial="ALONE")

    page = text(viewer)
    opened = text(viewer, f"/events/?open={outage.id}")

    assert "Outage of 33 ONUs: " in page
    assert ">ALONE</a>" in page
    assert "CUT-" not in page
    assert f'href="/events/?open={outage.id}#fold-{outage.id}"' in page
    assert opened.count(">CUT-") == 33
    # It stays open when the list refreshes itself.
    assert f'hx-get="/events/?open={outage.id}&amp;"' in opened


def test_those_that_come_back_belong_to_the_line_and_other_ports_do_not(viewer: Client) -> None:
    olt = make_olt()
    outage = cut(olt, 5, ended_at=timezone.now() - 10 * MINUTE)
    make_event(olt, 40, serial="BACK", kind="up", cause="", at=timezone.now() - 5 * MINUTE)
    make_event(olt, 41, serial="LATER", kind="up", cause="", minutes_ago=0)
    make_event(olt, 42, serial="DIM", kind="power_drop", cause="", at=outage.started_at + MINUTE)
    elsewhere = make_event(olt, 43, serial="ELSE", at=outage.started_at + MINUTE)
    OnuEvent.objects.filter(pk=elsewhere.pk).update(pon_port=make_onu(olt, (0, 1, 4, 0)).pon_port)

    page = text(viewer)

    assert "Outage of 5 ONUs: " in page
    assert ">BACK<" not in page
    assert [name for name in ("LATER", "DIM", "ELSE") if f">{name}</a>" not in page] == []


def test_a_card_is_one_line_with_its_ports(viewer: Client) -> None:
    olt = make_olt()
    card = make_outage(olt, scope="card", port=0, affected=8, down=8, started_at=timezone.now() - 30 * MINUTE)
    make_outage(olt, part_of=card, started_at=card.started_at, ended_at=timezone.now())
    for number in range(8):
        event = make_event(olt, number, serial=f"CARD-{number}", at=card.started_at + timedelta(seconds=number))
        port = make_onu(olt, (0, 1, number % 2, 50 + number)).pon_port
        OnuEvent.objects.filter(pk=event.pk).update(pon_port=port)

    page = text(viewer)

    assert page.count("Outage of ") == 1
    assert "CARD-" not in page
    assert text(viewer, f"/events/?open={card.id}").count(">CARD-") == 8


@pytest.mark.parametrize("query", ["q=CUT-00", "kind=down"])
def test_a_search_and_a_kind_list_each_event(viewer: Client, query: str) -> None:
    cut(make_olt(), 5)

    page = text(viewer, f"/events/?{query}")

    assert "Outage of" not in page
    assert page.count(">CUT-00") == 5


def test_a_time_within_an_outage_still_shows_it(viewer: Client) -> None:
    cut(make_olt(), 40, minutes_ago=5)
    after = f"{timezone.now() - 5 * MINUTE + timedelta(seconds=20):%Y-%m-%dT%H:%M:%S}"

    assert "Outage of 40 ONUs" in text(viewer, f"/events/?after={after}")


def test_pages_of_folded_lines_are_whole_pages(viewer: Client) -> None:
    olt = make_olt()
    cut(olt, 60, minutes_ago=10)
    other = make_olt()
    for number in range(50):
        make_event(other, number, minutes_ago=20 + number, serial=f"S-{number:03}")

    first = text(viewer)

    assert first.count(">S-") == 49
    assert 'rel="next"' in first


def test_outages_of_hidden_olts_are_not_shown_as_a_line() -> None:
    group = OltGroup.objects.create(name="hers")
    hidden = cut(make_olt("Other"), 5)
    client, user = Client(headers={"accept-language": "en"}), make_user()
    Profile.objects.create(user=user).olt_groups.add(group)
    client.force_login(user)

    page = text(client, f"/events/?open={hidden.id}")

    assert "Outage of" not in page
    assert "CUT-" not in page


def test_folded_lines_cost_a_constant_number_of_queries(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    outages = [cut(make_olt(), 4) for _ in range(15)]

    with django_assert_max_num_queries(8):
        text(viewer)
    with django_assert_max_num_queries(10):
        text(viewer, f"/events/?open={outages[0].id}")


def dim(olt: Olt, count: int, *, first: int = 0, minutes_ago: int = 30) -> LightFinding:
    """Let ONUs of port 0/1/3 lose light together, with a finding that says so and that another one was spared."""
    since = timezone.now() - minutes_ago * MINUTE
    texts = {"kind": "power_drop", "cause": "", "before": "-20.00", "after": "-23.40"}
    # The last one is lost a poll later.
    onus = [
        make_event(olt, n, serial=f"DIM-{n:03}", at=since + MINUTE * (4 * (n == first + count - 1)), **texts).onu
        for n in range(first, first + count)
    ]
    spared = make_onu(olt, (0, 1, 3, first + count))
    finding = LightFinding.objects.create(
        kind="common_step",
        pon_port=spared.pon_port,
        since=since,
        found_at=since,
        judged_at=since,
        size_db=-3.4,
        onus_read=count + 1,
    )
    FindingOnu.objects.bulk_create(
        FindingOnu(finding=finding, onu=onu, is_hit=onu != spared) for onu in (*onus, spared)
    )
    return finding


@pytest.mark.parametrize("path", ["/events/", "/olts/{olt}/", "/olts/{olt}/ports/0/1/3/"])
def test_what_onus_lost_in_common_is_one_line_that_leads_to_the_finding(viewer: Client, path: str) -> None:
    olt = make_olt("North")
    finding = dim(olt, 8)
    make_event(olt, 40, serial="ALONE", kind="power_drop", cause="", at=finding.since)
    again = make_event(olt, 41, kind="power_drop", cause="", minutes_ago=5)
    OnuEvent.objects.filter(pk=again.pk).update(onu=Onu.objects.get(serial="DIM-000"))

    page = text(viewer, path.format(olt=olt.id))

    assert re.search(r"8 of 9 ONUs lost 3\.4 dB at \d\d:\d\d: a splitter, or the fibre to it", page)
    assert f'href="/light/{finding.id}/">Plot and numbers</a>' in page
    assert ">ALONE</a>" in page
    # What one of them lost later, alone, is its own line.
    assert re.findall(r'id="event-\d+" href="[^"]*">(DIM-\d+)</a>', page) == ["DIM-000"]


def test_each_onu_keeps_its_own_event_of_what_it_lost_with_others(viewer: Client) -> None:
    onu = dim(make_olt(), 3).members.filter(is_hit=True)[1].onu

    assert "Light dropped from -20.00 to -23.40 dBm" in text(viewer, f"/onus/{onu.id}/")


@pytest.mark.parametrize("query", ["q=DIM-00", "kind=power_drop", "sort=onu"])
def test_a_search_a_kind_and_another_order_list_what_each_lost(viewer: Client, query: str) -> None:
    dim(make_olt(), 3)

    assert text(viewer, f"/events/?{query}").count(">DIM-00") == 3


def test_a_time_within_a_loss_in_common_still_shows_it(viewer: Client) -> None:
    finding = dim(make_olt(), 3)

    page = text(viewer, f"/events/?after={timezone.localtime(finding.since + MINUTE):%Y-%m-%dT%H:%M:%S}")

    assert "3 of 4 ONUs lost 3.4 dB" in page


def address_of(page: str, text: str) -> str:
    """Return where the page's link to the next or the previous one leads."""
    return text.split(f'rel="{page}" href="')[1].split('"')[0].replace("&amp;", "&")


def test_pages_lead_over_folded_losses_and_back_with_a_constant_number_of_queries(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(60):
        dim(make_olt(), 3, minutes_ago=20 * number + 1)

    with django_assert_max_num_queries(8):
        first = text(viewer)
    second = text(viewer, address_of("next", first))
    newer = address_of("prev", second)

    assert (first.count("3 of 4 ONUs lost"), second.count("3 of 4 ONUs lost")) == (50, 10)
    assert "DIM-" not in first + second
    assert text(viewer, newer).count("3 of 4 ONUs lost") == 50


def test_pages_lead_over_folded_outages_and_back(viewer: Client) -> None:
    for number in range(60):
        cut(make_olt(), 3, first=number * 3, minutes_ago=number + 1)

    first = text(viewer)
    second = text(viewer, address_of("next", first))
    newer = address_of("prev", second)

    assert (first.count("Outage of"), second.count("Outage of")) == (50, 10)
    assert "CUT-" not in first + second
    assert text(viewer, newer).count("Outage of") == 50


def test_a_long_outage_is_folded_though_many_began_after_it(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.dashboard.events.views.ROWS_PER_PAGE", 3)
    long = cut(make_olt("Long"), 4, minutes_ago=100)
    make_event(long.olt, 90, serial="BACK", kind="up", cause="", minutes_ago=1)
    for number in range(8):
        cut(make_olt(), 3, first=number * 3, minutes_ago=number + 2)

    page = text(viewer)

    assert ">BACK<" not in page
    assert page.count("Outage of") == 9

"""The list of ONUs: narrowing, paging, weak light, and text that a device meant to harm us with."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu
from facho.onus.models import OnuCustomer, OnuReading

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"
HOSTILE = [
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "=cmd()|'/C calc'!A0",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "{{ 7|add:7 }}{% now 'Y' %}",
    "\u202eesrever",
    "x" * 255,
]


def text(client: Client, path: str = "/onus/", **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_a_visitor_is_asked_to_log_in() -> None:
    assert Client().get("/onus/").headers["Location"] == "/login/?next=/onus/"


def test_an_onu_shows_its_place_and_its_light(viewer: Client) -> None:
    make_onu(make_olt("North"), (0, 3, 7, 12), serial="HWTC1", rx_power_cdbm=-2135, distance_m=12345)

    page = text(viewer)

    assert "0/3/7/12" in page
    assert "-21.35 dBm" in page
    assert "12,345 m" in page


def test_an_onu_without_a_serial_shows_its_hardware_address(viewer: Client) -> None:
    make_onu(make_olt("North"), (0, 3, 7, 12), serial="", mac="00:1B:44:11:3A:B7")

    assert ">00:1B:44:11:3A:B7</a>" in text(viewer)


def test_an_onu_shows_whose_it_is_before_what_its_olt_has(viewer: Client) -> None:
    onu = make_onu(make_olt("North"), description="ONU-17")
    OnuCustomer.objects.create(onu=onu, label="Panadería La Espiga")

    page = text(viewer)

    assert "<bdi>Panadería La Espiga</bdi>" in page
    assert "ONU-17" not in page


@pytest.mark.parametrize(
    ("reported_before", "shown"),
    [(timedelta(days=9), "9 d</time>"), (timedelta(days=9_000), "—"), (-timedelta(days=9), "—")],
)
def test_when_nobody_saw_it_go_its_olt_is_asked_if_it_can_be_right(
    viewer: Client, reported_before: timedelta, shown: str
) -> None:
    onu = make_onu(make_olt("North"), run_state="offline", first_seen_at=timezone.now())
    OnuReading.objects.filter(onu=onu).update(last_down_at=onu.first_seen_at - reported_before)

    since = text(viewer).split('data-label="Since"')[1].split("</td>")[0]

    assert shown in since
    assert ("by its OLT" in since) == (shown != "—")


def test_who_hangs_behind_a_silent_olt_is_unknown_since_it_last_answered(viewer: Client) -> None:
    now = timezone.now()
    olt = make_olt("North", reachability="down", last_answer_at=now - timedelta(hours=3, minutes=1))
    make_onu(olt, run_state="online", state_since=now - timedelta(days=30))

    since = text(viewer).split('data-label="Since"')[1].split("</td>")[0]

    assert "· 3 h</time>" in since


def test_numbers_follow_the_language(viewer: Client) -> None:
    make_onu(make_olt(), rx_power_cdbm=-2135, distance_m=12345)

    page = text(viewer, **{"accept-language": "es"})

    assert "-21,35 dBm" in page


@pytest.mark.parametrize(("power", "word"), [(-2701, "weak"), (-799, "too strong")])
def test_light_out_of_range_is_a_word_and_not_only_a_colour(viewer: Client, power: int, word: str) -> None:
    make_onu(make_olt(), run_state="online", rx_power_cdbm=power)

    assert f">{word}</span>" in text(viewer)


def test_who_is_down_shows_why_and_that_its_light_is_of_before(viewer: Client) -> None:
    olt = make_olt()
    make_onu(olt, (0, 1, 0, 1), run_state="offline", last_down_cause="los", rx_power_cdbm=-2900)
    make_onu(olt, (0, 1, 0, 2), run_state="online", last_down_cause="dying_gasp", rx_power_cdbm=-1604)

    page = text(viewer, **{"HX-Request": "true"})

    assert '<span class="mark offline">offline</span> <span class="muted">loss of signal</span>' in page
    assert '<span class="muted">before: -29.00 dBm</span>' in page
    assert ">weak</span>" not in page
    assert "dying gasp" not in page
    assert ">-16.04 dBm</td>" in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"ON", "OFF", "NEVER", "OTHER"}),
        ("state=online", {"ON", "OTHER"}),
        ("state=offline", {"OFF"}),
        ("state=unknown", {"NEVER"}),
        ("state=weak", {"OTHER"}),
        ("state=absent", {"GONE"}),
        ("q=pana", {"OFF"}),
        ("q=off", {"OFF"}),
        ("q=ON", set()),
        ("state=nonsense", set()),
        ("olt=999999", set()),
        ("q=%00", set()),
        ("port=0/1/0", {"ON", "OFF", "NEVER", "OTHER"}),
        ("port=0-1-0", {"ON", "OFF", "NEVER", "OTHER"}),
        ("port=0/1/0/2", {"OFF"}),
        ("port=0/1/0/2&state=online", set()),
        ("port=0/1/0/2/7&state=online", set()),
        ("port=here", set()),
    ],
)
def test_the_list_is_narrowed(viewer: Client, query: str, expected: set[str]) -> None:
    north, south = make_olt("North"), make_olt("South")
    make_onu(north, (0, 1, 0, 1), serial="ON", run_state="online")
    make_onu(north, (0, 1, 0, 2), serial="OFF", run_state="offline", description="Panadería")
    make_onu(north, (0, 1, 0, 3), serial="NEVER").reading.delete()
    make_onu(north, (0, 1, 0, 4), serial="GONE", is_present=False, absent_since=timezone.now())
    make_onu(south, (0, 1, 0, 1), serial="OTHER", run_state="online", rx_power_cdbm=-2900)

    page = text(viewer, f"/onus/?{query}")

    assert {serial for serial in ("ON", "OFF", "NEVER", "GONE", "OTHER") if f">{serial}</a></th>" in page} == expected


def test_what_is_not_understood_is_said_where_the_list_would_be(viewer: Client) -> None:
    make_onu(make_olt("North"), serial="NORTHERN")

    part = text(viewer, "/onus/?port=here&q=no", **{"HX-Request": "true"})

    assert "Port: Frame, slot and port, as in 0/1/3." in part
    assert "Search: Enter at least 3 characters." in part
    assert "No ONU matches." not in part


def test_the_list_is_narrowed_to_one_olt(viewer: Client) -> None:
    north, south = make_olt("North"), make_olt("South")
    make_onu(north, serial="NORTHERN")
    make_onu(south, serial="SOUTHERN")

    page = text(viewer, f"/onus/?olt={south.id}")

    assert "SOUTHERN" in page
    assert "NORTHERN" not in page


def test_the_list_refreshes_itself_with_what_was_chosen(viewer: Client) -> None:
    make_onu(make_olt(), serial="HWTC1")

    part = text(viewer, "/onus/?q=HWTC1&state=unknown", **{"HX-Request": "true"})

    assert 'hx-get="/onus/?q=HWTC1&amp;state=unknown&amp;page=1"' in part
    assert "<html" not in part


def test_going_back_in_the_browser_brings_the_whole_page(viewer: Client) -> None:
    page = text(viewer, **{"HX-Request": "true", "HX-History-Restore-Request": "true"})

    assert "<html" in page


def test_pages_keep_what_was_chosen(viewer: Client) -> None:
    olt = make_olt()
    for number in range(51):
        make_onu(olt, (0, 1, 0, number), serial=f"HWTC{number:03}")

    page = text(viewer, "/onus/?q=HWTC")

    assert 'href="?q=HWTC&amp;page=2"' in page


@pytest.mark.parametrize("path", ["/", "/live/", "/onus/"])
@pytest.mark.parametrize("description", HOSTILE)
def test_text_from_a_device_is_only_text(viewer: Client, path: str, description: str) -> None:
    olt = make_olt("North", sys_name=description, sys_descr=description, last_error=description)
    make_onu(olt, description=description, serial=description[:32], state_since=timezone.now())

    page = text(viewer, path)

    assert "<script>" not in page
    assert "<img src=x" not in page
    assert "14" + str(timezone.now().year) not in page


def test_a_hostile_search_is_only_text(viewer: Client) -> None:
    page = text(viewer, f"/onus/?q={SCRIPT}%22%3E&olt=%22%3E{SCRIPT}&state={SCRIPT}")

    assert "<script>" not in page


def test_the_number_of_queries_does_not_grow(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(12):
        make_onu(make_olt(), (0, 1, 0, number), run_state="online")

    with django_assert_max_num_queries(8):
        text(viewer)

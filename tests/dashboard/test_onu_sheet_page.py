"""The page of one ONU: what is wrong with it and since when, its light then and now, and who may look."""

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
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup
from facho.onus.history import Samples, append
from facho.onus.history_models import STATE_CODES, Metric
from facho.onus.models import Onu, OnuCustomer, OnuEvent
from raw_rows import make_raw_value

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
PARTS = ["", "state/", "light/", "past/", "raw/"]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m=cmd()"


def text(client: Client, onu: Onu, part: str = "") -> str:
    answer = client.get(f"/onus/{onu.id}/{part}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def keep_history(onu: Onu, *, minutes: range, power: float | None = -21.5, state: str = "online") -> None:
    """Let polls have read the ONU so many minutes ago."""
    now = timezone.now()
    for ago in sorted(minutes, reverse=True):
        values = {
            Metric.RX_POWER: [power],
            Metric.OLT_RX_POWER: [power and power - 2],
            Metric.STATE: [STATE_CODES[state]],
        }
        append(now - ago * MINUTE, Samples.of([onu.id], [onu.pon_port_id], values))


@pytest.mark.parametrize("part", PARTS)
def test_what_is_not_there_is_not_found_and_visitors_log_in(viewer: Client, part: str) -> None:
    assert viewer.get(f"/onus/4711/{part}").status_code == 404
    assert viewer.get(f"/onus/{make_onu(make_olt()).id}/nothing/").status_code == 404
    assert Client().get(f"/onus/1/{part}").headers["Location"] == f"/login/?next=/onus/1/{part}"


@pytest.mark.parametrize("part", PARTS)
def test_an_onu_of_another_group_is_not_found(part: str) -> None:
    mine, other = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="other")
    user = make_user(Role.VIEWER)
    Profile.objects.create(user=user).olt_groups.add(mine)
    visitor = Client()
    visitor.force_login(user)

    assert visitor.get(f"/onus/{make_onu(make_olt(group=mine)).id}/{part}").status_code == 200
    assert visitor.get(f"/onus/{make_onu(make_olt(group=other)).id}/{part}").status_code == 404


def test_it_says_what_is_wrong_since_when_and_what_to_do(viewer: Client) -> None:
    olt = make_olt("North", reachability="up")
    since = timezone.now() - 150 * MINUTE
    onu = make_onu(
        olt, (0, 1, 3, 12), run_state="offline", last_down_cause="dying_gasp", state_since=since, rx_power_cdbm=-2135
    )
    for number in range(3):
        make_onu(olt, (0, 1, 3, number), run_state="online")

    page = text(viewer, onu)

    assert '<strong class="mark offline">offline</strong> <strong>dying gasp</strong>' in page
    assert "· 2 h</time>" in page
    assert "ask the customer before sending a crew" in page
    assert "3 of 4 ONUs of this port are online" in page
    assert "the fault is between the splitter and this customer" in page
    assert "Read when it was last online" in page
    assert f'href="/olts/{olt.id}/ports/0/1/3/"' in page


def test_a_cut_is_told_from_a_single_fault(viewer: Client) -> None:
    olt = make_olt("North", reachability="up")
    onus = [make_onu(olt, (0, 1, 3, number), run_state="offline", last_down_cause="los") for number in range(4)]
    outage = make_outage(olt, affected=4)

    page = text(viewer, onus[0])

    assert f'href="/outages/{outage.id}/">Outage now: fibre cut</a> · PON port' in page
    assert "Many ONUs of the port are down: check the port and its fibre first." in page


def test_behind_a_silent_olt_nothing_is_claimed(viewer: Client) -> None:
    onu = make_onu(make_olt(reachability="down"), run_state="online")

    assert "its OLT does not answer; last known: online" in text(viewer, onu)


def test_behind_a_disabled_olt_nothing_is_claimed(viewer: Client) -> None:
    olt = make_olt(reachability="up", enabled=False)
    onu = make_onu(olt, (0, 1, 3, 0), run_state="online", rx_power_cdbm=-2135)
    make_outage(olt)

    page = text(viewer, onu)

    assert '<strong class="mark unknown">' in page
    assert "its OLT is disabled; last known: online" in page
    assert "Read when it was last online" in page
    assert page.count('<span class="tag">OLT disabled</span>') == 2


def test_every_figure_is_judged_in_words(viewer: Client) -> None:
    onu = make_onu(
        make_olt(reachability="up"),
        run_state="online",
        rx_power_cdbm=-2890,
        olt_rx_power_cdbm=-2100,
        tx_power_cdbm=231,
        temperature_tenths=751,
        voltage_mv=3290,
        bias_ua=12_300,
        distance_m=12_345,
    )

    page = text(viewer, onu, "state/")

    for words in (
        '-28.90</span> dBm <span class="judged low">weak</span><span class="limits">good from -27 to -8 dBm',
        '-21.00</span> dBm <span class="judged good">good</span>',
        '75.1</span> °C <span class="judged high">too high</span>',
        '3.29</span> V <span class="judged good">normal</span>',
        "2.31</span> dBm",
        "12.3</span> mA",
        "12,345</span> m",
    ):
        assert words in page


@pytest.mark.parametrize(("state", "reachability"), [("offline", "up"), ("online", "down")])
def test_a_figure_from_before_it_went_is_not_judged(viewer: Client, state: str, reachability: str) -> None:
    values = {"rx_power_cdbm": -1604, "temperature_tenths": 751, "power_at": timezone.now() - 150 * MINUTE}
    onu = make_onu(make_olt(reachability=reachability), run_state=state, **values)

    page = text(viewer, onu, "state/")

    assert "Read when it was last online" in page
    assert re.search("light last changed <time [^>]*>[^<]*2 h ago", page)
    assert "-16.04</span> dBm </dd>" in page
    assert not re.search("judged|limits|figure warn", page)


def test_light_is_drawn_with_gaps_limits_and_states(viewer: Client) -> None:
    onu = make_onu(make_olt())
    keep_history(onu, minutes=range(600, 900, 5))
    keep_history(onu, minutes=range(500, 600, 5), power=None, state="offline")
    keep_history(onu, minutes=range(5, 500, 5))

    page = text(viewer, onu, "light/")

    line = page.split('class="curve rx" d="')[1].split('"')[0]
    assert line.count("M") == 2
    assert "weak below -27 dBm" in page
    assert '<p class="unit">dBm</p>' in page
    assert "The ONU receives: lowest -21.50, highest -21.50 dBm" in page
    assert 'class="curve olt-rx"' in page
    kinds = [part.split('"')[0] for part in page.split('<rect class="')[1:] if "stretch" not in part]
    assert [kind for kind in kinds if kind != "column"] == ["online", "offline", "online"]
    assert "The ONU receives: -21.50 dBm" in page.split('data-values="')[1]


@pytest.mark.parametrize("span", ["day", "week", "month", "nonsense"])
def test_the_length_of_time_is_chosen(viewer: Client, span: str) -> None:
    onu = make_onu(make_olt())
    keep_history(onu, minutes=range(5, 3000, 60))

    part = " ".join(viewer.get(f"/onus/{onu.id}/light/?span={span}").content.decode().split())

    chosen = "day" if span == "nonsense" else span
    assert f'hx-get="/onus/{onu.id}/light/?span={chosen}" hx-trigger="every 30s"' in part
    assert 'class="curve rx"' in part


def test_an_onu_of_which_nothing_is_known_has_a_page(viewer: Client) -> None:
    onu = make_onu(make_olt(), serial="")
    onu.reading.delete()

    page = text(viewer, onu)

    assert "Nothing was read in this period." in page
    assert "No events yet." in page
    assert "No customer data." in page


@pytest.mark.parametrize("language", ["en", "es"])
def test_text_from_a_device_or_a_person_is_only_text(viewer: Client, language: str) -> None:
    olt = make_olt(HOSTILE[:60])
    onu = make_onu(
        olt, serial=HOSTILE[:32], description=HOSTILE, name=HOSTILE, model=HOSTILE[:60], firmware=HOSTILE[:60]
    )
    OnuCustomer.objects.create(onu=onu, label=HOSTILE, phone='"><script>', address=HOSTILE, notes=HOSTILE, tags=HOSTILE)
    make_raw_value(onu, value=HOSTILE.replace("\x1b", ""))
    OnuEvent.objects.create(
        olt=olt,
        pon_port=onu.pon_port,
        onu=onu,
        onu_number=0,
        at=timezone.now(),
        kind="description_changed",
        after=HOSTILE,
    )

    page = viewer.get(f"/onus/{onu.id}/", headers={"accept-language": language}).content.decode()

    assert "<script>" not in page
    assert "<img src=x" not in page


def test_the_number_of_queries_does_not_grow(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    onu = make_onu(make_olt(), run_state="online")
    keep_history(onu, minutes=range(5, 100, 5))
    for number in range(30):
        make_onu(onu.olt, (0, 1, 0, number + 1), run_state="online")
        make_raw_value(onu, f"1.3.{number}")

    with django_assert_max_num_queries(18):
        text(viewer, onu)


def test_an_onu_without_serial_and_address_is_shown_as_known_by_its_place(viewer: Client) -> None:
    olt = make_olt()
    nameless, of_epon = (
        make_onu(olt, serial="", mac=""),
        make_onu(olt, (0, 1, 0, 1), serial="", mac="02:00:00:00:00:01"),
    )

    assert "known by its place" in text(viewer, nameless)
    assert "known by its place" not in text(viewer, of_epon)
    reported = [viewer.get(f"/api/v1/onus/{onu.id}/").json()["identified_by"] for onu in (nameless, of_epon)]
    assert reported == ["place", "mac"]

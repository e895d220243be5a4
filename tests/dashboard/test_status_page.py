"""The page for customers: off until wanted, true about zones, silent about everything else, and cheap to ask."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from api.rows import make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.core import health
from facho.dashboard.status.views import KEPT_FOR, ZoneState, kept, kept_status, load_network
from facho.hosts.models import Olt, Pause
from facho.infrastructure.standstill import Standstill
from facho.onus.models import OnuReading, Outage
from facho.plant.models import Box, OnuAttachment, Zone

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def wanted(settings: Settings) -> Iterator[None]:
    settings.FACHO_STATUS_PAGE = True
    kept.clear()
    yield
    kept.clear()


@pytest.fixture
def stranger() -> Client:
    return Client(headers={"accept-language": "en"})


def make_zone(olt: Olt, name: str = "Center", *, onus: int = 6, port: int = 3) -> Zone:
    """Make a zone with a box and ONUs on it, all online."""
    zone, _is_new = Zone.objects.get_or_create(name=name)
    box = Box.objects.create(name=f"box {name} {olt.pk} {port}", zone=zone)
    for number in range(onus):
        onu = make_onu(olt, (0, 1, port, number), serial=f"SERIAL{olt.pk}{port}{number}", run_state="online")
        OnuAttachment.objects.create(onu=onu, box=box, source="hand")
    return zone


def take_down(outage: Outage, onus: int) -> None:
    down = list(OnuReading.objects.filter(onu__pon_port__port=outage.port or 3).values_list("pk", flat=True)[:onus])
    OnuReading.objects.filter(pk__in=down).update(run_state="offline", outage=outage)


def text_of(client: Client, **headers: str) -> str:
    page = client.get("/status/", headers=headers).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def states() -> dict[str, ZoneState]:
    zones = load_network(timezone.now()).zones
    assert zones is not None
    return {zone.name: zone.state for zone in zones}


def test_nobody_sees_it_until_the_operator_wants_it(stranger: Client, settings: Settings) -> None:
    make_zone(make_olt())
    assert stranger.get("/status/").status_code == 200

    settings.FACHO_STATUS_PAGE = False

    assert stranger.get("/status/").status_code == 404
    assert kept_status(RequestFactory().get("/status/")) is None


@pytest.mark.parametrize(
    ("down", "state"), [(0, ZoneState.NORMAL), (1, ZoneState.PROBLEMS), (2, ZoneState.PROBLEMS), (3, ZoneState.OUTAGE)]
)
@pytest.mark.parametrize("scope", ["pon", "card"])
def test_half_of_a_zone_down_is_an_outage(down: int, state: ZoneState, scope: str) -> None:
    olt = make_olt()
    make_zone(olt)
    take_down(make_outage(olt, scope=scope, port=3 if scope == "pon" else 0), down)

    assert states() == {"Center": state}


def test_an_outage_that_is_over_or_of_others_is_none() -> None:
    olt, other = make_olt("a"), make_olt("b")
    make_zone(olt)
    take_down(make_outage(olt, ended_at=timezone.now()), 6)
    make_outage(other)

    assert states() == {"Center": ZoneState.NORMAL}


def test_onus_that_came_back_count_no_more() -> None:
    olt = make_olt()
    make_zone(olt)
    take_down(make_outage(olt), 6)

    OnuReading.objects.update(run_state="online")

    assert states() == {"Center": ZoneState.NORMAL}


def test_two_zones_of_one_port_are_told_apart() -> None:
    olt = make_olt()
    make_zone(olt, "East")
    outage = make_outage(olt)
    take_down(outage, 6)
    west = Box.objects.create(name="west", zone=Zone.objects.create(name="West"))
    for number in range(10, 16):
        onu = make_onu(olt, (0, 1, 3, number), serial=f"WEST{number}", run_state="online")
        OnuAttachment.objects.create(onu=onu, box=west, source="hand")

    assert states() == {"East": ZoneState.OUTAGE, "West": ZoneState.NORMAL}


def test_an_olt_that_does_not_answer_is_a_problem_and_no_outage() -> None:
    """Its customers may be on-line: only its management does not answer."""
    olt = make_olt()
    make_zone(olt)
    make_outage(olt, scope="olt", slot=0, port=0, cause="olt")

    assert states() == {"Center": ZoneState.PROBLEMS}


def test_the_page_admits_that_the_poller_sees_nothing(stranger: Client) -> None:
    make_zone(make_olt())
    make_outage(None)

    assert "There is no current information" in text_of(stranger)


def test_the_page_admits_that_nothing_is_polled(stranger: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_zone(make_olt())
    monkeypatch.setattr(health.seen, "standstill", Standstill.NO_LEADER)

    page = text_of(stranger)

    assert "There is no current information" in page
    assert "Normal" not in page
    assert "facho run" not in page


def test_maintenance_is_announced_a_week_ahead(stranger: Client) -> None:
    olt, other, now = make_olt("a"), make_olt("b"), timezone.now()
    make_zone(olt, "East"), make_zone(other, "West", port=4)
    hour = timedelta(hours=1)
    Pause.objects.create(olt=olt, starts_at=now - hour, ends_at=now + hour, note="Ana changes the card")
    Pause.objects.create(olt=None, starts_at=now + 5 * hour, ends_at=now + 6 * hour)
    Pause.objects.create(olt=other, starts_at=now + 200 * hour, ends_at=now + 201 * hour)

    page = text_of(stranger)

    assert states() == {"East": ZoneState.MAINTENANCE, "West": ZoneState.NORMAL}
    assert page.count("Planned maintenance") == 3
    assert "Ana changes" not in page


@pytest.mark.parametrize("onus", [1, 4])
def test_a_zone_that_would_speak_of_a_household_is_left_out(stranger: Client, onus: int) -> None:
    make_zone(make_olt(), onus=onus)

    assert "No zones are shown yet" in text_of(stranger)


def test_a_disabled_olt_says_nothing(stranger: Client) -> None:
    make_zone(make_olt(enabled=False))

    assert "No zones are shown yet" in text_of(stranger)


def test_the_page_names_nothing_but_zones(stranger: Client) -> None:
    olt = make_olt("secret-olt", address="203.0.113.7", host="203.0.113.7")
    make_zone(olt)
    take_down(make_outage(olt, affected=714, down=713), 6)

    page = stranger.get("/status/").content.decode()

    for word in ("secret-olt", "203.0.113.7", "SERIAL", "box Center", "714", "713", "0/1/3", "/login", "fibre"):
        assert word not in page
    assert "Center" in page
    assert "Outage" in page


def test_a_name_is_written_as_text(stranger: Client) -> None:
    make_zone(make_olt(), "<script>alert(1)</script>")

    page = stranger.get("/status/").content.decode()

    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in page


@pytest.mark.parametrize(("asked", "word"), [("es-CO", "Estado del servicio"), ("pt-BR", "Situação do serviço")])
def test_it_is_read_in_the_language_of_the_browser(stranger: Client, asked: str, word: str) -> None:
    make_zone(make_olt())
    assert "Service status" in text_of(stranger)

    answer = stranger.get("/status/", headers={"accept-language": asked})

    assert word in answer.content.decode()
    assert "Accept-Language" in answer["Vary"]


def test_it_sets_no_cookie_and_takes_no_form(stranger: Client) -> None:
    answer = stranger.get("/status/?anything=1")

    assert not answer.cookies
    assert "max-age=15" in answer["Cache-Control"]
    assert stranger.post("/status/").status_code == 405
    assert stranger.head("/status/").status_code == 200


def test_who_is_logged_in_gets_what_strangers_get(client: Client, stranger: Client) -> None:
    make_zone(make_olt())
    client.force_login(make_user())

    own = client.get("/status/", headers={"accept-language": "en"}).content

    assert own == stranger.get("/status/").content


def count(ask: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        ask()
    return len(captured)


@pytest.mark.parametrize("zones", [1, 12])
def test_it_costs_few_queries_however_many_ask_and_none_within_seconds(stranger: Client, zones: int) -> None:
    olt = make_olt()
    for number in range(zones):
        make_zone(olt, f"Zone {number}", port=number)
        take_down(make_outage(olt, port=number), 2)

    first = count(lambda: text_of(stranger))
    later = count(lambda: [text_of(Client(), **{"accept-language": name}) for name in ("en", "es", "pt-BR", "xx")])

    assert (first, later) == (4, 0)


def test_within_seconds_it_needs_neither_a_thread_nor_the_database(stranger: Client) -> None:
    request = RequestFactory().get("/status/", headers={"accept-language": "en"})
    assert kept_status(request) is None
    made = stranger.get("/status/").content

    answer = kept_status(request)
    kept.pages = {name: (at - KEPT_FOR, page) for name, (at, page) in kept.pages.items()}

    assert answer is not None
    assert answer.content == made
    assert kept_status(request) is None


def test_who_comes_while_it_is_made_gets_the_last_one(stranger: Client) -> None:
    made = stranger.get("/status/").content
    kept.pages = {name: (at - KEPT_FOR, page) for name, (at, page) in kept.pages.items()}

    with kept.building:
        meanwhile = stranger.get("/status/").content

    assert meanwhile == made

"""From the search field to one ONU, in a real Chromium: on a desk and on a phone, in light and dark."""

from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Route, expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_leader, make_olt, make_onu, make_pollers, make_user
from browser.conftest import DESKTOP, Visit, Visitor
from facho.accounts.roles import Role
from facho.executions.models import OnuRead
from facho.onus.history import Samples, append
from facho.onus.history_models import STATE_CODES, Metric
from facho.onus.models import OnuCustomer, OnuEvent

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m=cmd()'
NARROW = 360


@pytest.fixture
def url(live_server: LiveServer) -> str:
    """A customer whose light fell last night and who is down since, in a product whose texts mean harm."""
    now = timezone.now()
    make_user(Role.OPERATOR, "olga")
    make_leader(now + timedelta(days=1))
    make_pollers(2)
    olt = make_olt("North", reachability="up")
    onu = make_onu(
        olt,
        (0, 1, 3, 12),
        serial="HWTC1A2B3C4D",
        description=HOSTILE,
        run_state="offline",
        last_down_cause="los",
        state_since=now - timedelta(hours=2),
        rx_power_cdbm=-2790,
        olt_rx_power_cdbm=-2510,
        temperature_tenths=421,
    )
    OnuCustomer.objects.create(onu=onu, label="Panadería Sol", address=HOSTILE)
    for number in range(8):
        make_onu(olt, (0, 1, 3, number), run_state="online")
    for minutes in range(1440, 0, -15):
        is_up = minutes > 120
        power = (-21.0 if minutes > 600 else -26.5) if is_up else None
        state = STATE_CODES["online" if is_up else "offline"]
        values = {Metric.RX_POWER: [power], Metric.OLT_RX_POWER: [power and power - 2], Metric.STATE: [state]}
        append(now - timedelta(minutes=minutes), Samples.of([onu.id], [onu.pon_port_id], values))
    OnuEvent.objects.create(
        olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=12, at=now - timedelta(hours=2), kind="down", cause="los"
    )
    return str(live_server.url)


def at_the_onu(visit: Visit, url: str) -> Visit:
    """Log in, type a part of the customer's name, and take what is suggested."""
    visit.log_in(url, "olga", PASSWORD)
    visit.page.fill("#search-text", "panad")
    visit.page.locator("#search-found a").first.click()
    visit.page.wait_for_selector(".verdict")
    return visit


@pytest.mark.parametrize(("language", "width", "dark"), [("en", DESKTOP, False), ("es", NARROW, True)])
def test_the_customer_is_found_and_its_fault_is_seen(
    visitor: Visitor, url: str, width: int, language: str, *, dark: bool
) -> None:
    visit = at_the_onu(visitor(language=language, width=width, dark=dark), url)

    expect(visit.page.locator(".verdict .mark")).to_have_class("mark offline")
    assert visit.width() <= width
    assert [problem["id"] for problem in Axe().run(visit.page).response["violations"]] == []
    visit.keep(f"onu-{language}-{width}")
    assert visit.complaints == []


def test_a_longer_time_values_under_the_pointer_and_a_read(visitor: Visitor, url: str) -> None:
    visit = at_the_onu(visitor(), url)

    visit.page.click("#span-week")
    expect(visit.page.locator("#span-week")).to_have_attribute("aria-current", "true")
    visit.page.locator(".plot .column").nth(3).hover()
    expect(visit.page.locator(".plot-values")).to_contain_text("dBm")
    visit.page.click("#read-now")
    expect(visit.page.locator("#reading .progress")).to_contain_text("Waiting")
    expect(visit.page.locator("#read-now")).to_be_disabled()

    assert OnuRead.objects.count() == 1
    assert visit.complaints == []


def test_letters_typed_before_the_page_was_ready_are_searched(visitor: Visitor, url: str) -> None:
    visit = visitor()
    held: list[Route] = []
    visit.page.route("**/htmx-2*.js", lambda route: held.append(route))

    visit.log_in(url, "olga", PASSWORD)
    visit.page.fill("#search-text", "panad")
    assert len(held) == 1
    held[0].continue_()

    expect(visit.page.locator("#search-found a")).to_have_count(1)
    assert visit.complaints == []


def test_the_search_is_used_with_the_keyboard_alone(visitor: Visitor, url: str) -> None:
    visit = visitor()
    visit.log_in(url, "olga", PASSWORD)

    visit.page.keyboard.press("/")
    visit.page.keyboard.type("1a2b3c")
    visit.page.wait_for_selector("#search-found a")
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector(".verdict")

    expect(visit.page.locator("h1")).to_contain_text("HWTC1A2B3C4D")
    assert visit.complaints == []

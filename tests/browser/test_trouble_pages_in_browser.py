"""From the first page to the cause of a cut, in a real Chromium: any width, both languages, light and dark."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.coordinator_rows import make_violation
from api.rows import PASSWORD, make_leader, make_olt, make_onu, make_pollers, make_user, make_waiting_onu
from browser.conftest import DESKTOP, PHONE, Visit, Visitor
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role
from facho.onus.models import OnuEvent, Outage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m=cmd()'


@pytest.fixture
def url(live_server: LiveServer) -> str:
    """A product in which a fibre is cut, an hour got too little and ONUs wait; every text of a device means harm."""
    make_user(Role.OPERATOR, "ana")
    make_leader(timezone.now() + timedelta(days=1))
    make_pollers(2)
    olt = make_olt("North", reachability="up", vendor="huawei_smartax")
    cut = make_outage(olt, affected=12, down=12)
    for number in range(12):
        onu = make_onu(olt, (0, 1, 3, number), run_state="offline", outage=cut, description=HOSTILE)
        OnuEvent.objects.create(
            olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=number, at=cut.started_at, kind="down", cause="los"
        )
    make_onu(olt, (0, 1, 4, 0), run_state="online")
    make_violation(olt)
    make_waiting_onu(olt, serial="WAITS1", model=HOSTILE[:60])
    return str(live_server.url)


def look(visit: Visit, name: str, width: int) -> None:
    """Keep a picture, and find no barrier, no complaint and nothing wider than the screen."""
    visit.keep(f"{name}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    assert visit.complaints == []


@pytest.mark.parametrize(
    ("width", "language", "dark", "words"),
    [
        (DESKTOP, "en", False, "12 of 12 ONUs lost the signal (LOS)."),
        (PHONE, "en", True, "The other port of the card is fine."),
        (PHONE, "es", False, "LOS"),
        pytest.param(DESKTOP, "es", True, "LOS", marks=pytest.mark.thorough),
    ],
)
def test_one_click_leads_from_the_first_page_to_the_cause_of_a_cut(
    url: str, visitor: Visitor, width: int, language: str, dark: bool, words: str
) -> None:
    visit = visitor(language=language, width=width, dark=dark)
    visit.log_in(url, "ana", PASSWORD)
    look_name = f"{language}-{'dark' if dark else 'light'}"

    visit.page.click(".trouble tbody th a")

    expect(visit.page.locator("#why")).to_contain_text(words)
    look(visit, f"outage-{look_name}", width)


def test_an_operator_takes_note_of_a_cut(url: str, visitor: Visitor) -> None:
    visit = visitor()
    visit.log_in(url, "ana", PASSWORD)
    expect(visit.page.locator(".badge")).to_contain_text("1")
    visit.page.click(".trouble tbody th a")

    visit.page.fill("[name=note]", "crew under way")
    visit.page.click("form.acknowledge button[type=submit]")

    expect(visit.page.locator(".note")).to_have_text("crew under way")
    expect(visit.page.locator(".badge")).to_have_count(0)
    assert Outage.objects.get().acknowledgement == "crew under way"


@pytest.mark.parametrize(("width", "dark"), [(DESKTOP, True), (PHONE, False)])
def test_every_page_of_the_navigation_is_readable(url: str, visitor: Visitor, width: int, dark: bool) -> None:
    visit = visitor(width=width, dark=dark)
    visit.log_in(url, "ana", PASSWORD)

    for page in ("outages", "events", "violations", "waiting"):
        visit.page.click(f"nav a[href='/{page}/']")
        expect(visit.page.locator("nav a[aria-current=page]")).to_have_attribute("href", f"/{page}/")
        look(visit, page, width)
    visit.page.goto(f"{url}/violations/")
    visit.page.click("#list tbody th a")
    expect(visit.page.locator(".slots")).to_be_visible()
    look(visit, "violation", width)


def test_a_list_narrows_as_one_chooses_and_the_address_keeps_it(url: str, visitor: Visitor) -> None:
    visit = visitor()
    visit.log_in(url, "ana", PASSWORD)
    visit.page.goto(f"{url}/outages/")
    expect(visit.page.locator("#list .open")).to_have_count(1)

    visit.page.select_option("#filter-show", "ended")

    expect(visit.page.locator("#list .open")).to_have_count(0)
    visit.page.reload()
    expect(visit.page.locator("#filter-show")).to_have_value("ended")
    expect(visit.page.locator("#list .open")).to_have_count(0)

"""From trouble on the first page to its OLT, in a real Chromium: on a desk and on a phone, in light and dark."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.coordinator_rows import make_plan, make_tracker
from api.rows import (
    PASSWORD,
    make_execution,
    make_leader,
    make_node,
    make_olt,
    make_olt_value,
    make_onu,
    make_pollers,
    make_user,
)
from browser.conftest import DESKTOP, PHONE, Visit, Visitor
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role
from facho.onus.models import OnuEvent, Outage
from facho.polling.domain.execution_state import ExecutionState

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m=cmd()'


@pytest.fixture
def url(live_server: LiveServer) -> str:
    """A product in which a fibre is cut, a quota will be missed, and every text of a device means harm."""
    make_user(Role.ADMIN, "ana")
    make_leader(timezone.now() + timedelta(days=1))
    make_pollers(4)
    olt = make_olt("North", reachability="up", vendor="huawei_smartax")
    master = make_node(olt, name=HOSTILE, next_run_at=timezone.now() + timedelta(minutes=4))
    ran = make_execution(master, ExecutionState.SUCCESS, poller_id=0, result={"packets": 40, "retransmissions": 1})
    make_execution(make_node(master=master, name="State"), poller_id=0, master_execution=ran, chain_position=1)
    make_node(olt, suspended_at=timezone.now(), suspend_reason="timeout")
    for port in range(16):
        power = -1500 - 100 * port
        onu = make_onu(olt, (0, 1, port, 1), run_state="online", rx_power_cdbm=power, description=HOSTILE)
    OnuEvent.objects.create(
        olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=1, at=timezone.now(), kind="down", cause="los"
    )
    make_olt_value(olt, "board.type", value=HOSTILE, unit="", place=HOSTILE[:60])
    make_olt_value(olt, "if.descr", value=HOSTILE, unit="", place=HOSTILE[:60])
    make_outage(olt)
    make_plan(olt)
    make_tracker(olt, will_miss_at=timezone.now())
    return str(live_server.url)


def at_the_olt(visit: Visit, url: str) -> Visit:
    """Log in and go where the outage leads."""
    visit.log_in(url, "ana", PASSWORD)
    visit.page.click(".trouble tbody td a >> nth=0")
    visit.page.wait_for_selector(".heat")
    return visit


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (DESKTOP, False),
        (PHONE, True),
        pytest.param(DESKTOP, True, marks=pytest.mark.thorough),
        pytest.param(PHONE, False, marks=pytest.mark.thorough),
    ],
)
def test_trouble_leads_to_its_olt_on_any_screen(url: str, visitor: Visitor, width: int, dark: bool) -> None:
    visit = visitor(width=width, dark=dark)
    visit.log_in(url, "ana", PASSWORD)
    visit.keep(f"trouble-{width}-{'dark' if dark else 'light'}")
    first_width = visit.width()

    visit.page.click(".trouble tbody td a >> nth=0")
    expect(visit.page.locator("h1")).to_contain_text("North")
    visit.keep(f"olt-{width}-{'dark' if dark else 'light'}")

    assert (first_width, visit.width()) == (width, width)
    assert visit.complaints == []
    assert visit.strangers(url) == []


def test_a_port_tells_its_figures_to_whoever_points_at_it_or_reaches_it_by_keyboard(url: str, visitor: Visitor) -> None:
    visit = at_the_olt(visitor(), url)
    tip = visit.page.locator(".tip")
    expect(tip).to_be_hidden()

    visit.page.hover("#port-013")
    expect(tip).to_contain_text("Port 0/1/3")
    expect(tip).to_contain_text("average -18.0 dBm")

    visit.page.focus("#port-014")
    expect(tip).to_contain_text("Port 0/1/4")
    visit.page.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_a_port_of_the_map_leads_to_its_page_and_that_to_its_onus(url: str, visitor: Visitor) -> None:
    visit = at_the_olt(visitor(), url)

    visit.page.click("#port-013")
    expect(visit.page.locator("h1")).to_contain_text("0/1/3")
    visit.page.click("#port-onus")

    expect(visit.page.locator("#onus tbody tr")).to_have_count(1)
    expect(visit.page.locator("#onus")).to_contain_text("0/1/3/1")


def test_an_outage_that_ends_leaves_the_first_page_by_itself(url: str, visitor: Visitor) -> None:
    visit = visitor()
    visit.log_in(url, "ana", PASSWORD)
    expect(visit.page.locator(".trouble")).to_be_visible()

    Outage.objects.update(ended_at=timezone.now())

    expect(visit.page.locator(".trouble")).to_have_count(0)

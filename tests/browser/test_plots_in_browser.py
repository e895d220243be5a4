"""Plots in a real Chromium: moved, zoomed and shared, on a desk and on a phone, and without a script."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_leader, make_olt, make_onu, make_pollers, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from facho.accounts.roles import Role
from facho.hosts.olt_data import save_olt_values
from facho.onus.history import Samples, append
from facho.onus.history_models import STATE_CODES, Metric
from facho.onus.models import Onu, OnuEvent
from facho.onus.value_history import save_olt_figures
from facho.polling.domain.collection import OltValue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m=cmd()'
ONUS = 24
PORT = "/olts/{}/ports/0/1/3/"


@pytest.fixture
def onus(live_server: LiveServer) -> list[Onu]:
    """A port with a day behind it: one ONU falls, one is weak, one is down, and texts mean harm."""
    now = timezone.now()
    make_user(Role.OPERATOR, "olga")
    make_leader(now + timedelta(days=1))
    make_pollers(2)
    olt = make_olt("North", reachability="up")
    made = [
        make_onu(
            olt,
            (0, 1, 3, number),
            serial=f"HWTC{number:08}",
            description=HOSTILE if number == 2 else f"Cliente {number}",
            run_state="offline" if number == 5 else "online",
            rx_power_cdbm=-2840 if number == 7 else -1700 - 37 * number,
        )
        for number in range(ONUS)
    ]
    for minutes in range(1440, 0, -15):
        powers = [-17 - 0.37 * n - (3 if n == 2 and minutes < 500 else 0) for n in range(ONUS)]
        powers[7] = -28.4
        states = [STATE_CODES["offline" if n == 5 and minutes < 100 else "online"] for n in range(ONUS)]
        values = {Metric.RX_POWER: powers, Metric.STATE: states}
        ids = [onu.id for onu in made]
        append(now - timedelta(minutes=minutes), Samples.of(ids, [made[0].pon_port_id] * ONUS, values))
        octets = str((1440 - minutes) * 60 * 25_000_000)
        read = [
            OltValue("1.1", "1", "if.in_octets", "xgei 1/19/1", octets, "B", octets, is_counter=True),
            OltValue("1.2", "1", "if.out_octets", "xgei 1/19/1", octets[:-1] or "0", "B", octets, is_counter=True),
            OltValue("1.3", "7", "pon.in_octets", "0/1/3", octets[:-1] or "0", "B", octets, is_counter=True),
            OltValue("1.4", "7", "pon.tx_power", "0/1/3", "4.37", "dBm", "437"),
            OltValue("1.5", "9", "board.temperature", "0/1", str(40 + minutes % 7), "degC", "40"),
        ]
        save_olt_values(olt.id, read, whole_oids=(), now=now - timedelta(minutes=minutes))
        save_olt_figures(olt.id, read, now=now - timedelta(minutes=minutes))
    OnuEvent.objects.create(
        olt=olt, pon_port=made[5].pon_port, onu=made[5], onu_number=5, at=now - timedelta(minutes=99), kind="down"
    )
    return made


def period(page: Page, area: str = "#plot-area") -> tuple[int, int]:
    plot = page.locator(area)
    return int(plot.get_attribute("data-from") or 0), int(plot.get_attribute("data-to") or 0)


def wait_for_another(page: Page, before: tuple[int, int]) -> tuple[int, int]:
    page.wait_for_function(
        "([from, to]) => { const area = document.querySelector('#plot-area[data-from]');"
        " return area && (Number(area.dataset.from) !== from || Number(area.dataset.to) !== to); }",
        arg=list(before),
    )
    return period(page)


PORTUGUESE = pytest.param("pt-br", PHONE, False, marks=pytest.mark.thorough)


@pytest.mark.parametrize(("language", "width", "dark"), [("en", DESKTOP, False), ("es", PHONE, True), PORTUGUESE])
def test_a_port_is_seen_whole(
    visitor: Visitor, live_server: LiveServer, onus: list[Onu], language: str, width: int, *, dark: bool
) -> None:
    visit = visitor(language=language, width=width, dark=dark)
    visit.log_in(live_server.url, "olga", PASSWORD)

    visit.page.goto(f"{live_server.url}{PORT.format(onus[0].olt_id)}")

    expect(visit.page.locator(".dot")).to_have_count(ONUS - 1)
    expect(visit.page.locator(f"#falling-{onus[2].id}")).to_be_visible()
    expect(visit.page.locator("#traffic-area")).to_be_visible()
    assert visit.width() <= width
    assert visit.faults() == []
    visit.keep(f"port-{language}-{width}")
    assert visit.complaints == []


@pytest.mark.parametrize(("language", "width", "dark"), [("es", DESKTOP, False), ("en", PHONE, True), PORTUGUESE])
def test_cards_and_uplinks_are_seen_over_time(
    visitor: Visitor, live_server: LiveServer, onus: list[Onu], language: str, width: int, *, dark: bool
) -> None:
    visit = visitor(language=language, width=width, dark=dark)
    visit.log_in(live_server.url, "olga", PASSWORD)

    visit.page.goto(f"{live_server.url}/olts/{onus[0].olt_id}/")
    visit.page.click("#olt-history")

    expect(visit.page.locator("#uplinks-area")).to_be_visible()
    expect(visit.page.locator("#temperature-area")).to_be_visible()
    assert visit.width() <= width
    assert visit.faults() == []
    visit.keep(f"olt-history-{language}-{width}")
    assert visit.complaints == []


def test_a_plot_is_moved_and_zoomed_and_its_address_shows_the_same(
    visitor: Visitor, live_server: LiveServer, onus: list[Onu]
) -> None:
    visit = visitor()
    visit.log_in(live_server.url, "olga", PASSWORD)
    page = visit.page
    page.goto(f"{live_server.url}/onus/{onus[2].id}/?with={onus[3].id}")
    whole = period(page)
    box = page.locator("#plot-area").bounding_box()
    assert box

    page.mouse.move(box["x"] + 300, box["y"] + 100)
    expect(page.locator(".plot-values")).to_contain_text("dBm")
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 100, steps=5)
    page.mouse.up()
    earlier = wait_for_another(page, whole)
    assert earlier[1] < whole[1] - 3600
    assert earlier[1] - earlier[0] == pytest.approx(whole[1] - whole[0], abs=5)

    page.focus("#plot-area")
    page.keyboard.press("+")
    closer = wait_for_another(page, earlier)
    assert closer[1] - closer[0] == pytest.approx((earlier[1] - earlier[0]) / 2, abs=5)
    page.keyboard.press("ArrowLeft")
    left = wait_for_another(page, closer)
    assert left[0] < closer[0]
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.wheel(0, -300)
    zoomed = wait_for_another(page, left)
    assert zoomed[1] - zoomed[0] < left[1] - left[0]
    expect(page.locator("#light.moving")).to_have_count(0)

    other = visitor(language="es", width=PHONE)
    other.log_in(live_server.url, "olga", PASSWORD)
    other.page.goto(page.url)
    assert period(other.page) == zoomed
    expect(other.page.locator(".legend a").first).to_contain_text("HWTC00000003")
    assert visit.complaints == []


def test_two_fingers_zoom_and_one_moves(browser: Browser, live_server: LiveServer, onus: list[Onu]) -> None:
    context = browser.new_context(viewport={"width": PHONE, "height": 800}, has_touch=True, is_mobile=True, locale="en")
    page = context.new_page()
    page.goto(f"{live_server.url}/login/?next=/onus/{onus[2].id}/")
    page.fill("[name=username]", "olga")
    page.fill("[name=password]", PASSWORD)
    page.click("main button[type=submit]")
    page.locator("#plot-area").scroll_into_view_if_needed()
    whole, box = period(page), page.locator("#plot-area").bounding_box()
    assert box
    fingers = context.new_cdp_session(page)
    middle, y = box["x"] + box["width"] / 2, box["y"] + 60

    def touch(kind: str, *xs: float) -> None:
        points = [{"x": x, "y": y, "id": number} for number, x in enumerate(xs)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", middle - 20, middle + 20)
    touch("touchMove", middle - 50, middle + 50)
    touch("touchMove", middle - 80, middle + 80)
    touch("touchEnd")
    closer = wait_for_another(page, whole)
    assert closer[1] - closer[0] < (whole[1] - whole[0]) / 2

    touch("touchStart", middle - 60)
    touch("touchMove", middle)
    touch("touchMove", middle + 60)
    touch("touchEnd")
    earlier = wait_for_another(page, closer)
    assert earlier[0] < closer[0]
    context.close()


def test_without_a_script_links_move_and_zoom(browser: Browser, live_server: LiveServer, onus: list[Onu]) -> None:
    context = browser.new_context(java_script_enabled=False, locale="en")
    page = context.new_page()
    page.goto(f"{live_server.url}/login/?next=/onus/{onus[2].id}/")
    page.fill("[name=username]", "olga")
    page.fill("[name=password]", PASSWORD)
    page.click("main button[type=submit]")
    whole = period(page)

    page.click("#plot-closer")
    closer = period(page)
    page.click("#plot-earlier")
    earlier = period(page)
    page.click(".plot-own summary")
    page.fill("[name=with]", "hwtc00000003")
    page.click(".plot-own button")

    assert closer[1] - closer[0] == pytest.approx((whole[1] - whole[0]) / 2, abs=5)
    assert earlier[1] < closer[1]
    assert f"with={onus[3].id}" in page.url
    assert period(page)[0] == pytest.approx(earlier[0], abs=60)
    context.close()

"""The map and the pages of the plant in a real Chromium: moved, read without eyes, and without a request elsewhere."""

import base64
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.conf import LazySettings
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_olt, make_user
from browser.conftest import DESKTOP, EVERY_WINDOW, PHONE, Visit, Visitor
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role
from facho.hosts.models import Reachability
from facho.onus.models import OnuReading
from facho.polling.domain.onu_state import RunState
from plant.plant_world import SmallPlant, make_plant

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def plant() -> SmallPlant:
    """A plant with a branch that is dark, and an ONU with weak light."""
    plant = make_plant(make_olt(reachability=Reachability.UP))
    outage = make_outage(plant.olt, slot=7, port=5)
    for number, onu in enumerate(plant.onus):
        dark = {"run_state": RunState.OFFLINE, "outage": outage}
        lit = {"run_state": RunState.ONLINE, "rx_power_cdbm": -2850 if number == 1 else -2100}
        OnuReading.objects.create(onu=onu, **(dark if number >= 3 else lit))
    return plant


# A picture of one point.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


class TileServer(ThreadingHTTPServer):
    """Serves tiles on a port of its own, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _TileAnswer)
        self.asked: list[tuple[str, dict[str, str]]] = []

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _TileAnswer(BaseHTTPRequestHandler):
    server: TileServer

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(PIXEL)))
        self.end_headers()
        self.wfile.write(PIXEL)

    def log_message(self, *_about: object) -> None:
        """Keep the output of tests clean."""


@pytest.fixture
def tile_server() -> Iterator[TileServer]:
    with TileServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def open_map(visit: Visit, server: LiveServer, query: str = "") -> None:
    make_user(Role.OPERATOR, "ana")
    visit.log_in(server.url, "ana", PASSWORD)
    visit.page.goto(f"{server.url}/map/{query}")
    expect(visit.page.locator("#map[data-drawn]")).to_be_visible()


def is_sound(visit: Visit, server: LiveServer, width: int) -> bool:
    assert visit.width() == width
    assert visit.faults() == []
    assert visit.complaints == []
    assert visit.strangers(server.url) == []
    return True


@EVERY_WINDOW
def test_the_map_shows_where_it_is_dark_and_asks_nobody_else(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant, language: str, width: int
) -> None:
    visit = visitor(language=language, width=width)
    open_map(visit, live_server)

    first = visit.page.locator("#map-list a").first
    expect(first).to_contain_text("S 1")
    expect(first).to_have_attribute("href", f"/outages/{OnuReading.objects.exclude(outage=None)[0].outage_id}/")
    expect(visit.page.locator("#map-list li", has_text="CTO 1")).to_be_visible()
    expect(visit.page.locator("#map-list")).not_to_contain_text("%s")
    visit.keep(f"map-{language}-{width}")
    assert is_sound(visit, live_server, width)


def test_tiles_come_from_the_address_that_was_set_and_nothing_comes_from_elsewhere(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant, settings: LazySettings, tile_server: TileServer
) -> None:
    settings.FACHO_MAP_TILES = f"{tile_server.origin}/{{z}}/{{x}}/{{y}}.png"
    visit = visitor()

    with visit.page.expect_response(lambda answer: answer.url.startswith(tile_server.origin)):
        open_map(visit, live_server)
    with visit.page.expect_response(lambda answer: answer.url.startswith(tile_server.origin)):
        visit.page.locator("#map canvas").press("+")
    visit.keep("map-tiles")

    strangers = visit.strangers(live_server.url)
    assert strangers
    assert all(re.fullmatch(rf"{tile_server.origin}/\d+/\d+/\d+\.png", address) for address in strangers)
    assert {path for path, _headers in tile_server.asked} <= {
        each.removeprefix(tile_server.origin) for each in strangers
    }
    # Who serves tiles learns neither who asks nor which page.
    reported = {name.lower() for _path, headers in tile_server.asked for name in headers}
    assert not reported & {"cookie", "authorization", "referer"}
    assert visit.complaints == []


def test_the_map_is_moved_by_keys_wheel_and_dragging_and_its_address_follows(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant
) -> None:
    visit = visitor()
    open_map(visit, live_server)
    page, canvas = visit.page, visit.page.locator("#map canvas")
    moved = []

    box = canvas.bounding_box()
    assert box
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    acts = [
        lambda: canvas.press("ArrowLeft"),
        lambda: canvas.press("+"),
        lambda: page.mouse.wheel(0, -480),
        lambda: (page.mouse.down(), page.mouse.move(middle[0] + 90, middle[1] + 40), page.mouse.up()),
        lambda: page.click("[data-key='-']"),
        lambda: canvas.press("Home"),
    ]
    for act in acts:
        before = page.url
        act()
        page.wait_for_function("before => location.href !== before", arg=before)
        moved.append(page.url)

    assert len(set(moved)) == len(acts)
    assert page.url.startswith(f"{live_server.url}/map/")
    page.goto(moved[2])
    page.reload()
    expect(page.locator("#map[data-drawn]")).to_be_visible()
    assert page.url == moved[2]


def test_fingers_zoom_move_and_open_the_map_on_a_phone(
    browser: Browser, live_server: LiveServer, plant: SmallPlant
) -> None:
    context = browser.new_context(viewport={"width": PHONE, "height": 800}, has_touch=True, is_mobile=True, locale="en")
    visit = Visit(context.new_page())
    visit.watch()
    open_map(visit, live_server, "#14/4.63000/-74.08000")
    page, canvas = visit.page, visit.page.locator("#map canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    fingers = context.new_cdp_session(page)
    middle, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(kind: str, *xs: float) -> None:
        points = [{"x": x, "y": y, "id": number} for number, x in enumerate(xs)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def place() -> tuple[float, ...]:
        return tuple(map(float, page.url.partition("#")[2].split("/")))

    def moved_from(before: str) -> tuple[float, ...]:
        page.wait_for_function("before => location.href !== before", arg=before)
        return place()

    before = page.url
    touch("touchStart", middle - 20, middle + 20)
    touch("touchMove", middle - 50, middle + 50)
    touch("touchMove", middle - 80, middle + 80)
    touch("touchEnd")
    zoom, latitude, longitude = moved_from(before)
    # Four times as far apart is two steps; what is between the fingers stays there.
    assert zoom == pytest.approx(16, abs=0.05)
    assert (latitude, longitude) == pytest.approx((4.63, -74.08), abs=1e-4)

    before = page.url
    touch("touchStart", middle - 60)
    touch("touchMove", middle)
    touch("touchMove", middle + 60)
    touch("touchEnd")
    assert moved_from(before) == (zoom, pytest.approx(latitude, abs=1e-4), pytest.approx(longitude - 0.0026, abs=3e-4))
    visit.keep("map-by-touch")

    page.goto(f"{live_server.url}/map/#17/4.63000/-74.08000")
    page.reload()
    expect(page.locator("#map-list")).to_contain_text("CTO 1")
    page.touchscreen.tap(middle, y)
    page.wait_for_url(f"{live_server.url}/boxes/{plant.boxes[0].id}/")
    assert visit.complaints == []
    context.close()


def test_a_click_on_the_map_opens_the_box_and_from_near_the_customer(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant
) -> None:
    visit = visitor()
    open_map(visit, live_server, "#17/4.63000/-74.08000")
    canvas = visit.page.locator("#map canvas")
    expect(visit.page.locator("#map-list")).to_contain_text("Ana")
    visit.keep("map-near")

    canvas.click()

    visit.page.wait_for_url(f"{live_server.url}/boxes/{plant.boxes[0].id}/")
    visit.keep("box")
    assert is_sound(visit, live_server, DESKTOP)
    visit.page.goto(f"{live_server.url}/map/#18/4.63100/-74.08100")
    expect(visit.page.locator("#map-list")).to_contain_text("Ana")
    visit.page.locator("#map canvas").click()
    visit.page.wait_for_url(f"{live_server.url}/onus/{plant.onus[0].id}/")


@EVERY_WINDOW
def test_the_pages_of_the_plant_fit_and_are_read_by_everybody(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant, language: str, width: int
) -> None:
    visit = visitor(language=language, width=width)
    open_map(visit, live_server)
    pages = (
        "",
        "add/",
        "import/",
        f"{plant.boxes[0].id}/",
        f"{plant.splitter.id}/edit/",
        f"{plant.splitter.id}/delete/",
    )

    for page in (*(f"boxes/{each}" for each in pages), f"boxes/inferred/{plant.port.id}/", "zones/"):
        visit.page.goto(f"{live_server.url}/{page}")
        visit.keep(f"plant-{page.strip('/').replace('/', '-')}-{language}")
        assert is_sound(visit, live_server, width), page

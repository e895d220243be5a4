"""Every page of a demo whose fibre is cut: in both languages, on a desk and on a phone, in light and dark.

A picture of each is kept. None is wider than its screen, complains, asks another machine or keeps anybody out.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from browser.conftest import DESKTOP, PHONE, Visit, open_visit
from browser.running_demo import Demo

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Each language has each width, and each width both schemes.
WINDOWS = [("en", DESKTOP, False), ("es", DESKTOP, True), ("en", PHONE, True), ("es", PHONE, False)]
PAGES = {
    "overview": "/",
    "olt": "/olts/{olt}/",
    "onus": "/onus/",
    "onu": "/onus/{onu}/",
    "outages": "/outages/",
    "outage": "/outages/{outage}/",
    "events": "/events/",
    "alerts": "/alerts/",
    "alert": "/alerts/{alert}/",
    "violations": "/violations/",
    "waiting": "/waiting/",
    "search": "/search/?q=olt-00",
    "add-olt": "/olts/add/",
    "account": "/account/",
    "administration": "/admin/",
    "administration-olts": "/admin/hosts/olt/",
    "administration-olt": "/admin/hosts/olt/{olt}/change/",
}
# What the README shows: `make screenshots` copies these.
SHOWN = ("overview", "olt", "onu", "outage")
SHOWN_HEIGHT = 1000
LARGEST_PICTURE_BYTES = 300_000


@pytest.fixture(scope="module")
def rows(cut_demo: Demo) -> dict[str, int]:
    """The rows that pages are about: the cut, its OLT, and an ONU that it took."""
    (cut,) = (outage for outage in cut_demo.ask("outages/") if outage["cause"] == "fibre")
    lost = cut_demo.ask(f"outages/{cut['id']}/onus/")[0]
    (alert, *_others) = cut_demo.ask("alerts/")
    return {"outage": cut["id"], "olt": cut["olt_id"], "onu": lost["onu_id"], "alert": alert["id"]}


@pytest.fixture(scope="module", params=WINDOWS, ids=lambda window: f"{window[0]}-{window[1]}")
def visit(request: pytest.FixtureRequest, cut_demo: Demo, browser: Browser) -> Iterator[Visit]:
    """Somebody who is logged in, in a window of one kind."""
    language, width, dark = request.param
    visit = open_visit(browser, language=language, width=width, dark=dark)
    visit.log_in(cut_demo.url, cut_demo.user, cut_demo.password)
    yield visit
    visit.page.context.close()


def window_of(visit: Visit) -> tuple[str, int]:
    assert visit.page.viewport_size
    return str(visit.page.evaluate("navigator.language")), visit.page.viewport_size["width"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fit_to_be_shown(cut_demo: Demo, rows: dict[str, int], visit: Visit, name: str) -> None:
    language, width = window_of(visit)
    visit.complaints.clear()

    visit.page.goto(cut_demo.url + PAGES[name].format(**rows))
    visit.keep(f"page-{name}-{language}-{width}")

    assert visit.page.locator("html").get_attribute("lang") == language
    assert visit.width() == width
    assert visit.barriers() == []
    assert visit.complaints == []
    assert visit.strangers(cut_demo.url) == []


@pytest.mark.parametrize("name", ["/api/v1/docs/"])
def test_the_description_of_the_api_asks_nobody_else(cut_demo: Demo, visit: Visit, name: str) -> None:
    language, width = window_of(visit)
    visit.complaints.clear()

    visit.page.goto(cut_demo.url + name)
    visit.page.wait_for_selector("#operations-tag-olts")
    visit.keep(f"page-api-{language}-{width}")

    assert visit.width() == width
    assert visit.complaints == []
    assert visit.strangers(cut_demo.url) == []

"""Every page of a demo whose fibre is cut: in every language, on a desk and on a phone, in light and dark.

A picture of each is kept. None is wider than its screen, cuts a text off, complains, asks another machine or keeps
anybody out.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser.conftest import ARTIFACTS, DESKTOP, PHONE, Visit, Visitor, open_visit
from browser.running_demo import PATIENCE_MS, Demo

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Each language has each width, and each width both schemes.
WINDOWS = [
    pytest.param(("en", DESKTOP, False)),
    pytest.param(("es", DESKTOP, True), marks=pytest.mark.thorough),
    pytest.param(("en", PHONE, True), marks=pytest.mark.thorough),
    pytest.param(("es", PHONE, False)),
    pytest.param(("pt-BR", PHONE, False)),
]
# Spanish and Portuguese take more room.
WIDE_WINDOWS = [WINDOWS[1], WINDOWS[3], pytest.param(("pt-BR", PHONE, False), marks=pytest.mark.thorough)]
MAIN_PAGES = {
    "overview": "/",
    "olt": "/olts/{olt}/",
    "onus": "/onus/",
    "onu": "/onus/{onu}/",
    "outages": "/outages/",
    "outage": "/outages/{outage}/",
    "events": "/events/",
    "alerts": "/alerts/",
}
OTHER_PAGES = {
    "alert": "/alerts/{alert}/",
    "violations": "/violations/",
    "waiting": "/waiting/",
    "pollers": "/pollers/",
    "search": "/search/?q=olt-00",
    "add-olt": "/olts/add/",
    "account": "/account/",
    "administration": "/admin/",
    "administration-olts": "/admin/hosts/olt/",
    "administration-olt": "/admin/hosts/olt/{olt}/change/",
}
# What the README shows, in the language of its readers; `make screenshots` takes them over.
SHOWN = {"en": Path("README.md"), "es": Path("README.es.md"), "pt-br": Path("README.pt-BR.md")}
SHOWN_PAGES = ("overview", "outage", "olt", "onu")
SHOWN_SIZE = {"width": DESKTOP, "height": 1000}
SHOWN_AT_WORK = 3
LARGEST_PICTURE_BYTES = 300_000


def name_of(window: tuple[str, int, bool]) -> str:
    language, width, _dark = window
    return f"{language}-{width}"


@pytest.fixture(scope="module")
def rows(cut_demo: Demo) -> dict[str, int]:
    """The rows that pages are about: the cut, its OLT, and an ONU that it took."""
    cut = next(outage for outage in cut_demo.ask("outages/") if outage["cause"] == "fibre")
    lost = cut_demo.ask(f"outages/{cut['id']}/onus/")[0]
    alert = cut_demo.ask("alerts/")[0]
    return {"outage": cut["id"], "olt": cut["olt_id"], "onu": lost["onu_id"], "alert": alert["id"]}


@pytest.fixture(scope="module", params=WINDOWS, ids=name_of)
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


@pytest.mark.parametrize("name", MAIN_PAGES)
def test_a_main_page_is_fit_to_be_shown(cut_demo: Demo, rows: dict[str, int], visit: Visit, name: str) -> None:
    look(visit, cut_demo.url, MAIN_PAGES[name].format(**rows), name)


@pytest.mark.parametrize("visit", WIDE_WINDOWS, ids=name_of, indirect=True)
@pytest.mark.parametrize("name", OTHER_PAGES)
def test_another_page_is_fit_to_be_shown(cut_demo: Demo, rows: dict[str, int], visit: Visit, name: str) -> None:
    look(visit, cut_demo.url, OTHER_PAGES[name].format(**rows), name)


def look(visit: Visit, url: str, path: str, name: str) -> None:
    """Open a page, keep a picture of it, and find nothing wrong with it."""
    language, width = window_of(visit)
    visit.complaints.clear()

    visit.page.goto(url + path)
    visit.keep(f"page-{name}-{language}-{width}")

    assert visit.page.locator("html").get_attribute("lang") == language.lower()
    assert visit.width() == width
    assert visit.faults() == []
    assert visit.complaints == []
    assert visit.strangers(url) == []


@pytest.mark.parametrize("visit", WIDE_WINDOWS, ids=name_of, indirect=True)
def test_the_description_of_the_api_asks_nobody_else(cut_demo: Demo, visit: Visit) -> None:
    language, width = window_of(visit)
    visit.complaints.clear()

    visit.page.goto(f"{cut_demo.url}/api/v1/docs/")
    visit.page.click("#olts_list summary")
    visit.keep(f"page-api-{language}-{width}")

    assert visit.width() == width
    assert visit.faults() == []
    assert visit.complaints == []
    assert visit.strangers(cut_demo.url) == []


@pytest.mark.parametrize(
    "language", ["en", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("es", "pt-br"))]
)
def test_the_pictures_of_the_readme_are_taken_here(
    cut_demo: Demo, rows: dict[str, int], visitor: Visitor, language: str
) -> None:
    cut_demo.name_jobs(language)
    visit = visitor(language=language)
    visit.log_in(cut_demo.url, cut_demo.user, cut_demo.password)
    visit.page.set_viewport_size(SHOWN_SIZE)
    folder = ARTIFACTS / "readme"
    folder.mkdir(parents=True, exist_ok=True)

    for name in SHOWN_PAGES:
        visit.page.goto(cut_demo.url + MAIN_PAGES[name].format(**rows))
        if name == "overview":
            cut_demo.run_everything()
            visit.page.wait_for_selector(f".poller.busy >> nth={SHOWN_AT_WORK - 1}", timeout=PATIENCE_MS)
        picture = folder / f"{name}.{language}.png"
        visit.page.screenshot(path=picture)
        assert picture.stat().st_size < LARGEST_PICTURE_BYTES

    shown = re.findall(r"\(docs/images/([^)]+)\)", (ARTIFACTS.parent / SHOWN[language]).read_text())
    assert shown == [f"{name}.{language}.png" for name in SHOWN_PAGES]

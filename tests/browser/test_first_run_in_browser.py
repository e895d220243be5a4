"""The first hour of somebody who never saw the product: an empty data folder, an OLT, a mistake, and the first ONUs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_olt, make_user
from browser.conftest import DESKTOP, PHONE, Visit, Visitor
from browser.running_demo import PATIENCE_MS, embedded_environ, read_line, started
from facho.accounts.roles import Role

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ONUS = 32
PORTUGUESE = pytest.param("pt-br", marks=pytest.mark.thorough)


@pytest.fixture
def simulated_port() -> Iterator[str]:
    """The port of a Huawei that listens to the community `lectura`."""
    arguments = ["simulate", "--vendor", "huawei_smartax", "--onus", str(ONUS), "--community", "lectura"]
    with started(arguments, dict(os.environ)) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        yield words[words.index("127.0.0.1") + 1]


@pytest.fixture
def setup_link(tmp_path: Path) -> Iterator[str]:
    """The link that `facho run` prints on an empty data folder."""
    with started(["run", "--bind", "127.0.0.1:0"], embedded_environ(tmp_path / "data")) as process:
        yield read_line(process, "setup: ")


def look(visit: Visit, name: str) -> None:
    """Keep the page as a desk and as a phone show it; both have to hold it."""
    language = visit.page.locator("html").get_attribute("lang")
    for width in (DESKTOP, PHONE):
        visit.page.set_viewport_size({"width": width, "height": 900})
        visit.keep(f"first-run-{name}-{language}-{width}")
        assert visit.width() == width
    assert visit.faults() == []
    visit.page.set_viewport_size({"width": DESKTOP, "height": 900})


def become_administrator(visit: Visit, link: str) -> None:
    visit.page.goto(link)
    look(visit, "1-administrator")
    visit.page.fill("[name=username]", "ana")
    visit.page.fill("[name=password1]", PASSWORD)
    visit.page.fill("[name=password2]", PASSWORD)
    visit.page.click("main button[type=submit]")


def add_olt(visit: Visit, port: str, community: str) -> None:
    visit.page.click("#add-first")
    look(visit, "3-add")
    visit.page.fill("[name=name]", "Norte")
    visit.page.fill("[name=host]", "127.0.0.1")
    visit.page.fill("[name=port]", port)
    visit.page.fill("[name=community]", community)
    visit.page.click(".details button[type=submit]")


@pytest.mark.parametrize("language", ["es", PORTUGUESE])
def test_a_newcomer_goes_from_an_empty_product_to_the_first_onus(
    setup_link: str, simulated_port: str, visitor: Visitor, language: str
) -> None:
    visit = visitor(language=language)
    become_administrator(visit, setup_link)
    look(visit, "2-empty")
    add_olt(visit, simulated_port, "wrong")

    expect(visit.page.locator(".line-of-test .now")).to_be_visible()
    expect(visit.page.locator("#test-again")).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page.locator(".diagnosis")).to_contain_text("127.0.0.1")
    look(visit, "4-diagnosis")

    visit.page.click("#correct")
    visit.page.fill("[name=community]", "lectura")
    visit.page.click(".details button[type=submit]")
    expect(visit.page.locator("#bill")).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page.locator(".recognised")).to_contain_text("Huawei")
    total = visit.page.locator(".total").inner_text()
    visit.page.fill("[name=onus]", "2000")
    visit.page.locator("[name=onus]").blur()
    expect(visit.page.locator(".total")).not_to_have_text(total)
    look(visit, "5-jobs")

    # Closed and opened again: the rows know where one was.
    address = visit.page.url
    visit.page.goto("/".join(address.split("/")[:3]))
    visit.page.click("a[id^=finish-]")
    visit.page.click("form[hx-get] button[type=submit]")
    expect(visit.page.locator(".found")).to_contain_text(str(ONUS), timeout=PATIENCE_MS)
    expect(visit.page.locator(".first-runs .done").first).to_be_visible(timeout=PATIENCE_MS)
    look(visit, "6-data")

    visit.page.click("#to-olt")
    expect(visit.page.locator("h1")).to_contain_text("Norte")
    assert visit.complaints == []
    assert visit.strangers(address[:17]) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", ["en", PORTUGUESE])
def test_only_what_the_chosen_version_needs_is_asked_for_and_a_stranger_can_be_named(
    live_server: LiveServer, visitor: Visitor, language: str
) -> None:
    make_user(Role.ADMIN, "ana")
    olt = make_olt("Sur", sys_object_id="1.3.6.1.4.1.99999.1", vendor="generic", sys_descr="<script>alert(1)</script>")
    visit = visitor(dark=True, language=language)
    visit.log_in(live_server.url, "ana", PASSWORD)

    visit.page.click("#add-olt")
    expect(visit.page.locator("[name=v3_user]")).to_be_hidden()
    visit.page.check("[name=version][value='3']")
    expect(visit.page.locator("[name=community]")).to_be_hidden()
    visit.page.click(".details button[type=submit]")
    expect(visit.page.locator("#field-name .errors")).to_be_visible()
    look(visit, "v3")

    visit.page.goto(f"{live_server.url}/olts/add/{olt.id}/")
    expect(visit.page.locator(".known")).to_contain_text("<script>alert(1)</script>")
    look(visit, "stranger")
    visit.page.select_option("#vendor", "huawei_smartax")
    visit.page.click(".choice button")
    expect(visit.page.locator("#bill")).to_be_visible()
    visit.page.fill("[name=onus]", "20000")
    visit.page.locator("[name=onus]").blur()
    expect(visit.page.locator(".total.over")).to_be_visible()
    look(visit, "too-much")
    assert visit.complaints == []

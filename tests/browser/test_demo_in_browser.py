"""The demo as a newcomer sees it: one command, a browser, and ONUs that appear and change by themselves."""

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.running_demo import OLTS, ONUS, PATIENCE_MS, Demo

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_onus_appear_and_change_without_the_page_being_loaded_again(demo: Demo, visitor: Visitor) -> None:
    visit = visitor()
    visit.log_in(demo.url, demo.user, demo.password)
    visit.page.evaluate("window.sameDocument = true")

    expect(visit.page.locator(".onus tbody tr").first).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page.locator(".numbers")).to_contain_text(f"/{OLTS * ONUS}", timeout=PATIENCE_MS)
    expect(visit.page.locator("tr.up")).to_have_count(OLTS, timeout=PATIENCE_MS)
    seen = visit.page.locator("#live").inner_text()
    visit.page.wait_for_function(
        "seen => document.querySelector('#live').innerText !== seen", arg=seen, timeout=PATIENCE_MS
    )

    assert visit.page.evaluate("window.sameDocument") is True
    assert visit.complaints == []
    assert visit.strangers(demo.url) == []

"""Who never saw the product finds the cause of a cut fibre by what is to be seen on the pages."""

import pytest
from playwright.sync_api import expect

from browser.conftest import DESKTOP, PHONE, Visitor
from browser.running_demo import Demo

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# What somebody would click who looks for the reason, by its words, in that order.
WAYS = {
    "what is wrong": ["fibre cut"],
    "the list of outages": ["Outages", "fibre cut"],
    "the OLT": ["olt-001", "fibre cut"],
}


@pytest.mark.parametrize("width", [pytest.param(DESKTOP, marks=pytest.mark.thorough), PHONE])
@pytest.mark.parametrize("way", WAYS)
def test_the_cause_of_a_cut_is_three_clicks_away(cut_demo: Demo, visitor: Visitor, way: str, width: int) -> None:
    visit = visitor(width=width)
    visit.log_in(cut_demo.url, cut_demo.user, cut_demo.password)

    for words in WAYS[way]:
        visit.page.get_by_role("link", name=words).first.click()

    assert len(WAYS[way]) <= 3
    expect(visit.page.locator("h1")).to_contain_text("fibre cut")
    expect(visit.page.get_by_text("the fibre is cut or unplugged")).to_be_visible()
    expect(visit.page.get_by_text("ONUs lost the signal (LOS)")).to_be_visible()
    expect(visit.page.get_by_text("None sent a dying gasp")).to_be_visible()

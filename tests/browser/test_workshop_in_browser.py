"""Five daily tasks by mouse, finger and keys, in every language, on a desk and on a phone; their steps are counted.

A step is a click, a key or a field that is filled in. The login is not counted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import DESKTOP, PHONE, Visit, open_visit
from browser.running_demo import PATIENCE_MS, Demo

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WINDOWS = [
    ("es", PHONE),
    ("en", DESKTOP),
    pytest.param(("es", DESKTOP), marks=pytest.mark.thorough),
    pytest.param(("en", PHONE), marks=pytest.mark.thorough),
    pytest.param(("pt-br", PHONE), marks=pytest.mark.thorough),
]
CUSTOMERS = 1_000
TAGGED = 200


@dataclass
class Hand:
    """Does what a person does, and counts it."""

    visit: Visit
    steps: int = 0

    @property
    def width(self) -> int:
        size = self.visit.page.viewport_size
        return size["width"] if size else 0

    def click(self, selector: str) -> None:
        self.steps += 1
        self.visit.page.locator(selector).first.click()

    def fill(self, selector: str, text: str) -> None:
        self.steps += 1
        self.visit.page.fill(selector, text)

    def press(self, key: str) -> None:
        self.steps += 1
        self.visit.page.keyboard.press(key)

    def sees(self, selector: str, text: str) -> None:
        expect(self.visit.page.locator(selector).first).to_contain_text(text, timeout=30_000)

    def is_well(self) -> None:
        """Claim that nothing is too wide, keeps anybody out or complains."""
        assert self.visit.width() <= self.width
        assert self.visit.faults() == []
        assert self.visit.complaints == []


@pytest.fixture(params=WINDOWS, ids=lambda window: f"{window[0]}-{window[1]}")
def hand(request: pytest.FixtureRequest, demo: Demo, browser: Browser) -> Iterator[Hand]:
    language, width = request.param
    visit = open_visit(browser, language=language, width=width, dark=False)
    visit.log_in(demo.url, demo.user, demo.password)
    visit.page.goto(f"{demo.url}/onus/")
    visit.page.wait_for_selector("tr[data-row]", timeout=PATIENCE_MS)
    yield Hand(visit)
    visit.page.context.close()


def test_a_thousand_customers_are_imported_in_four_steps(hand: Hand, demo: Demo) -> None:
    window = f"{hand.width}-{hand.visit.page.evaluate('navigator.language')}"
    onus = [onu for page in (1, 2) for onu in demo.ask(f"onus/?page_size=500&page={page}")]
    known = [f"{onu['serial']},{onu['mac']},Ana {window} {onu['id']},310 {onu['id']:07}" for onu in onus]
    strangers = [f"FHTT{number:08X},,Nobody,1" for number in range(CUSTOMERS - len(known))]

    hand.click("#to-import")
    hand.fill("#id_text", "\n".join(["serial,mac,label,phone", *known, *strangers]))
    hand.click("#import-preview")
    hand.visit.page.wait_for_selector("#import-confirm")
    hand.is_well()
    hand.visit.keep(f"import-{window}")
    hand.click("#import-confirm")

    hand.sees(".banner", str(len(known)))
    assert hand.steps == 4


def test_two_hundred_onus_are_tagged_in_six_steps_and_one_undoes_it(hand: Hand) -> None:
    if hand.width == PHONE:
        hand.click(".narrow > summary")
    hand.fill("#onu-rx_min", "-17")
    hand.visit.page.wait_for_url("**rx_min=-17**")
    hand.click("#bulk-box > summary")
    hand.click("#pick-found")
    hand.fill("#bulk-tag", "norte")
    hand.click("#bulk-add")
    hand.sees("form.banner", "norte")
    tagged = re.sub(r"\D", "", hand.visit.page.locator("form.banner").inner_text())
    assert int(tagged) >= TAGGED
    hand.is_well()
    assert hand.steps == (6 if hand.width == PHONE else 5)

    hand.click("#undo")

    expect(hand.visit.page.locator("#undo")).to_have_count(0)


def test_a_month_of_a_port_is_seen_in_three_steps(hand: Hand) -> None:
    hand.click("tr[data-row] th a")
    hand.click("#onu-port")
    hand.click("#span-month")

    hand.visit.page.wait_for_url("**span=month**")
    expect(hand.visit.page.locator("#span-month")).to_have_attribute("aria-current", "true")
    expect(hand.visit.page.locator("#plot-area path").first).to_be_attached()
    hand.is_well()
    hand.visit.keep(f"month-{hand.width}-{hand.visit.page.evaluate('navigator.language')}")
    assert hand.steps == 3


def test_a_customer_is_found_by_the_digits_of_the_phone(hand: Hand, demo: Demo) -> None:
    onu = demo.ask("onus/?page_size=1&state=online")[0]
    given = {"customers": [{"serial": onu["serial"], "label": "Zoila Quispe", "phone": "(601) 777-88 99"}]}
    demo.put("customers/", given)

    hand.fill("#search-text", "6017778899")
    hand.press("Enter")

    hand.sees("#customer-title ~ dl", "Zoila Quispe")
    assert hand.steps == 2


def test_one_onu_is_read_now_by_keyboard_or_finger(hand: Hand) -> None:
    if hand.width == PHONE:
        hand.click("tr[data-row] th a")
    else:
        hand.press("j")
        hand.press("Enter")
    hand.click("#read-now")

    expect(hand.visit.page.locator("#reading .progress")).not_to_be_empty(timeout=30_000)
    assert hand.steps <= 3


def test_a_view_is_saved_in_three_steps_and_opened_in_two(hand: Hand) -> None:
    hand.click("#views-tool > summary")
    hand.fill("#view-name", f"All {hand.width}")
    hand.click("#view-save")
    hand.sees(".banner.warn", f"All {hand.width}")
    hand.click("#views-tool > summary")
    with hand.visit.page.expect_navigation():
        hand.click(f"#views-tool a:has-text('All {hand.width}')")

    hand.is_well()
    assert hand.steps == 5


def test_keys_go_through_the_rows_and_their_selection_outlives_a_refresh(hand: Hand) -> None:
    page = hand.visit.page
    for key in ("j", "j", "x"):
        hand.press(key)
    chosen = page.locator("tr[data-row]").nth(1).locator("input")
    expect(chosen).to_be_checked()

    with page.expect_response(lambda answer: "page=" in answer.url):
        pass

    expect(page.locator("tr[data-row] input:checked")).to_have_count(1)
    hand.press("?")
    expect(page.locator("#keys")).to_be_visible()
    hand.is_well()

"""Pages that stay open, in a real Chromium: badge, times and lists agree, little moves, the wall turns."""

import re
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Response, expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_leader, make_olt, make_onu, make_pollers, make_user
from browser.conftest import DESKTOP, PHONE, Visit, Visitor
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role
from facho.onus.models import OnuCustomer, OnuReading, Outage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PATIENCE_MS = 30_000
# Names rows in which the text of one cell covers that of another.
OVERLAPS = """rows => rows.filter((row) => {
  const boxes = [...row.cells].map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getBoundingClientRect();
  }).filter((box) => box.width);
  return boxes.some((one, at) => boxes.slice(at + 1).some((other) =>
    one.left < other.right - 1 && other.left < one.right - 1 &&
    one.top < other.bottom - 1 && other.top < one.bottom - 1));
}).map((row) => row.innerText)"""


@pytest.fixture
def url(live_server: LiveServer) -> str:
    make_user(Role.VIEWER, "ana")
    make_leader(timezone.now() + timedelta(days=1))
    make_pollers(2)
    olt = make_olt("North", reachability="up", vendor="huawei_smartax")
    for number in range(12):
        since = timezone.now() - timedelta(seconds=5)
        onu = make_onu(olt, (0, 1, 3, number), run_state="online", rx_power_cdbm=-2000 - 90 * number, state_since=since)
        OnuCustomer.objects.create(onu=onu, label="Javier Figueroa Villalba")
    long_ago = timezone.now() - timedelta(days=40)
    make_onu(olt, (0, 1, 3, 40), run_state="offline", last_down_cause="loss_of_ack", state_since=long_ago)
    return str(live_server.url)


def open_list(url: str, visit: Visit) -> Counter[int]:
    """Open the list of ONUs, and count how its refreshes are answered."""
    answers: Counter[int] = Counter()

    def count(response: Response) -> None:
        if response.request.headers.get("hx-request"):
            answers[response.status] += 1

    visit.log_in(url, "ana", PASSWORD)
    visit.page.on("response", count)
    visit.page.goto(f"{url}/onus/")
    visit.complaints.clear()
    return answers


def test_a_list_that_stays_open_agrees_with_the_badge_and_moves_little(url: str, visitor: Visitor) -> None:
    visit = visitor()
    answers = open_list(url, visit)
    expect(visit.page.locator("#unseen-outages")).to_be_hidden()
    # Counted on in the browser while the server has nothing new to say.
    for _second in range(6):
        seen = visit.page.locator("tbody time").first.text_content()
        visit.page.wait_for_function("seen => document.querySelector('tbody time').textContent !== seen", arg=seen)

    make_outage(OnuReading.objects.all()[0].onu.olt)
    expect(visit.page.locator("#unseen-outages.badge")).to_contain_text("1", timeout=PATIENCE_MS)
    assert answers[304] > answers[200]
    OnuReading.objects.filter(rx_power_cdbm=-2000).update(rx_power_cdbm=-2345)
    expect(visit.page.locator("tbody")).to_contain_text("-23.45", timeout=PATIENCE_MS)
    Outage.objects.update(ended_at=timezone.now())

    expect(visit.page.locator("#unseen-outages")).to_be_hidden(timeout=PATIENCE_MS)
    assert visit.complaints == []


@pytest.mark.parametrize(
    ("width", "language", "dark"),
    [
        pytest.param(DESKTOP, "en", True, marks=pytest.mark.thorough),
        pytest.param(PHONE, "es", False, marks=pytest.mark.thorough),
        pytest.param(PHONE, "pt-br", False, marks=pytest.mark.thorough),
        (1920, "es", False),
    ],
)
def test_the_wall_turns_and_can_be_stopped(url: str, visitor: Visitor, width: int, language: str, dark: bool) -> None:
    visit = visitor(width=width, language=language, dark=dark)
    visit.log_in(url, "ana", PASSWORD)
    visit.complaints.clear()

    visit.page.goto(f"{url}/wall/")
    expect(visit.page.locator("#wall-network")).to_be_visible()
    expect(visit.page.locator(".bar")).to_be_hidden()
    expect(visit.page.locator("#wall-outages")).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page.locator("#wall-network")).to_be_hidden()
    visit.page.click("#wall-pause")
    visit.page.click("#wall-slides a[href='#wall-light']")

    expect(visit.page.locator("#wall-light")).to_contain_text(re.compile("-29[.,]90"))
    visit.keep(f"wall-{language}-{width}")
    assert visit.page.url.endswith("#wall-light")
    assert visit.width() == width
    assert visit.faults() == []
    assert visit.complaints == []


def test_rows_of_onus_are_compact_on_a_phone(url: str, visitor: Visitor) -> None:
    visit = visitor(width=PHONE, language="es")
    open_list(url, visit)

    heights = visit.page.eval_on_selector_all("#onus tbody tr", "rows => rows.map((row) => row.offsetHeight)")
    overlaps = visit.page.eval_on_selector_all("#onus tbody tr", OVERLAPS)

    visit.keep("onus-phone")
    # Three lines, and one more where the name is long or the light weak.
    assert sorted(heights)[len(heights) // 2] <= 80
    assert max(heights) <= 100
    assert overlaps == []
    assert visit.width() == PHONE

"""What OLTs said, in a real Chromium: on the page of traps, in the first steps, and as evidence of an outage."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_leader, make_node, make_olt, make_onu, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from browser.test_trouble_pages_in_browser import HOSTILE, look
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role
from facho.onus.models import OnuEvent
from facho.traps.models import Trap, TrapSender
from facho.traps.store import switch

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def url(live_server: LiveServer) -> str:
    """A power cut that only traps reported as one, a lie, a trap that no definition knows, and a storm."""
    now = timezone.now()
    make_user(Role.ADMIN, "ana")
    make_leader(now + timedelta(days=1))
    olt = make_olt("North", reachability="up", vendor="huawei_smartax")
    make_node(olt)
    cut = make_outage(olt, affected=6, down=6)
    for number in range(6):
        onu = make_onu(olt, (0, 1, 3, number), run_state="offline", outage=cut)
        place = {"olt": olt, "pon_port": onu.pon_port, "onu": onu, "onu_number": number}
        OnuEvent.objects.create(**place, at=cut.started_at, kind="down", cause="los")
        message = {"meaning": "onu_dying_gasp", "oid": "1.3.6.1", "name": "gasp", "frame": 0, "slot": 1, "port": 3}
        read = {"outcome": "confirmed", "settled_at": cut.started_at + timedelta(seconds=1.3)}
        Trap.objects.create(**place, **message, **read, heard_at=cut.started_at)
    healthy = make_onu(olt, (0, 1, 4, 0), run_state="online")
    Trap.objects.create(olt=olt, onu=healthy, meaning="onu_los", oid="1.3.6.1", heard_at=now, outcome="not_confirmed")
    values = [["1.3.6.1.4.1.99999.7.1", "0x04", HOSTILE]]
    Trap.objects.create(olt=olt, meaning="other", oid="1.3.6.1.4.1.99999.0.9", heard_at=now, values=values)
    make_olt("Silent", vendor="zte_c300_c320")
    for address, reason, count in (("192.0.2.9", "unknown_sender", 12), ("0.0.0.0", "buffer", 88_000)):  # noqa: S104
        times = {"first_heard_at": now, "last_heard_at": now}
        TrapSender.objects.create(address=address, reason=reason, count=count, **times)
    return str(live_server.url)


@pytest.mark.parametrize(
    ("width", "language", "dark"),
    [(DESKTOP, "en", True), (PHONE, "es", False), pytest.param(DESKTOP, "es", True, marks=pytest.mark.thorough)],
)
def test_the_page_of_traps_is_readable_and_what_was_opened_stays_open(
    url: str, visitor: Visitor, width: int, language: str, dark: bool
) -> None:
    switch(is_on=True)
    visit = visitor(width=width, language=language, dark=dark)
    visit.log_in(url, "ana", PASSWORD)
    visit.page.goto(f"{url}/traps/")
    visit.page.click("#list details summary")
    with visit.page.expect_response(lambda answer: "/traps/" in answer.url):
        pass
    expect(visit.page.locator("#list details pre")).to_contain_text("names: {9: my_trap}")
    expect(visit.page.locator("#list details")).to_have_attribute("open", "")

    look(visit, f"traps-{language}", width)


@pytest.mark.parametrize(("width", "language"), [(DESKTOP, "es"), (PHONE, "en")])
def test_the_first_steps_and_an_outage_speak_of_traps(url: str, visitor: Visitor, width: int, language: str) -> None:
    visit = visitor(width=width, language=language)
    visit.log_in(url, "ana", PASSWORD)
    visit.page.click(".trouble tbody th a")
    expect(visit.page.locator("#why")).to_contain_text("trap")
    look(visit, f"announced-{language}", width)

    olt = Trap.objects.values_list("olt_id", flat=True)[0]
    Trap.objects.all().delete()
    visit.page.goto(f"{url}/olts/add/{olt}/")
    look(visit, f"trap-offer-{language}", width)
    visit.page.click("#trap-offer button")
    visit.page.click("#trap-lines summary")
    expect(visit.page.locator("#trap-lines pre")).to_contain_text("trap enable")
    look(visit, f"trap-lines-{language}", width)

"""An OLT that means harm, from its UDP port to the screen: what it says of its ONUs stays text, and fits a phone."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_user
from browser.conftest import PHONE, Visitor
from facho.accounts.roles import Role
from facho.onus.models import Onu, OnuEvent
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL, Chassis
from truth.polled_fleet import polled

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

HARM = "<script>alert(1)</script><img src=x onerror=alert(2)>=cmd()|' /C calc'!A0 \x1b[31m\x07\u202e\x9b31m"
TEN_KB = HARM + "A" * 10_000
CONFIG = SimulatorConfig(vendor="huawei_smartax", onus=8, offline_share=0.0, life=STILL, chassis=Chassis(1, 4, 1))


def poll_a_hostile_olt() -> None:
    """Poll ONUs, let them be described anew, the first at great length, and poll them again."""
    try:
        with polled(CONFIG) as fleet:
            world = fleet.olts[0].world
            for number, onu in enumerate(world.onus):
                world.describe(onu, f"={number}{HARM if number else TEN_KB}")
                onu.model = HARM
            fleet.poll()
    finally:
        connections.close_all()


def test_what_a_hostile_olt_says_is_text_and_nothing_else(
    live_server: LiveServer, visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    make_user(Role.ADMIN, "ana")
    with caplog.at_level(logging.DEBUG, "facho"), ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(poll_a_hostile_olt).result()
    onus = list(Onu.objects.order_by("onu_id"))
    reported = [onu.description for onu in onus] + list(OnuEvent.objects.values_list("after", flat=True))

    visit = visitor(width=PHONE)
    visit.log_in(live_server.url, "ana", PASSWORD)
    widths = []
    olt, compared = f"/olts/{onus[0].olt_id}/", f"?with={','.join(str(onu.id) for onu in onus[1:5])}"
    of_port = f"{olt}ports/{onus[0].pon_port}/"
    pages = ("/", "/onus/", f"/onus/{onus[0].id}/", "/events/", olt, "/search/?q=script")
    for path in (*pages, f"/onus/{onus[0].id}/{compared}", f"{of_port}{compared}", f"{olt}history/"):
        visit.page.goto(live_server.url + path)
        visit.keep(f"hostile{path.partition('?')[0].replace('/', '-').rstrip('-')}")
        widths.append(visit.width())

    assert sum(HARM[:40] in text for text in reported) >= 2 * len(onus)
    assert [text for text in reported if not text.isprintable()] == []
    assert [line for line in caplog.messages if not line.isprintable()] == []
    assert set(widths) == {PHONE}
    assert visit.complaints == []

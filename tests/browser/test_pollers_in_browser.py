"""The load of the pollers in a browser: both drawings, whatever the width, and nobody is kept out."""

from datetime import timedelta
from math import sin

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_leader, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from facho.accounts.roles import Role
from facho.zabbix_pollers.models import PollerStats

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def store_six_hours() -> None:
    now = timezone.now()
    for minute in range(360):
        if not 100 < minute < 130:
            busy = 50 + 45 * sin(minute / 40)
            row = PollerStats.objects.create(
                total_pollers=10, busy_percentage=busy, queue_size=max(busy - 60, 0), is_saturated=busy > 75
            )
            PollerStats.objects.filter(pk=row.pk).update(timestamp=now - timedelta(minutes=minute))


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_load_is_drawn_and_readable(live_server: LiveServer, visitor: Visitor, width: int) -> None:
    make_user(Role.ADMIN, "ana")
    make_leader(timezone.now() + timedelta(days=1))
    store_six_hours()
    visit = visitor(language="es", width=width)
    visit.log_in(str(live_server.url), "ana", PASSWORD)

    visit.page.goto(f"{live_server.url}/pollers/")
    visit.page.wait_for_selector(".curve.rx")
    visit.keep(f"pollers-{width}")

    assert visit.width() <= width
    assert visit.faults() == []
    assert visit.complaints == []
    visit.page.click("#span-month")
    visit.page.wait_for_selector("#span-month[aria-current]")

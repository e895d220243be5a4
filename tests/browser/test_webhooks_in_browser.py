"""A webhook made, tested and sent again in a real Chromium, in every language, on a desk and on a phone."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from playwright.sync_api import expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alerts.outbox_rows import KEY, StillClock
from alerts.sinks import http_sink
from api.rows import PASSWORD, make_user
from browser.conftest import EVERY_WINDOW, Visit, Visitor
from facho.accounts.roles import Role
from facho.alerts.sender import read_networks
from facho.hosts.models import OltGroup
from facho.neighbours.models import Webhook, WebhookDelivery
from neighbours.webhook_rows import NOW, Network, Office, reported

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def send(at: datetime) -> None:
    """Send in a thread of its own: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(Office(StillClock(at)).send).result()


def look(visit: Visit, name: str, width: int) -> None:
    """Keep a picture; the page fits its window and keeps nobody out."""
    visit.keep(f"webhooks-{name}-{width}")
    assert (visit.width(), visit.faults(), visit.complaints) == (width, [], [])


@EVERY_WINDOW
def test_a_webhook_is_made_tested_and_sent_again(
    live_server: LiveServer, visitor: Visitor, settings: Settings, language: str, width: int
) -> None:
    settings.FACHO_WEBHOOK_ALLOW = read_networks(["127.0.0.0/8"])
    OltGroup.objects.create(name="Norte")
    make_user(Role.ADMIN, "ana")
    visit = visitor(language=language, width=width)
    visit.log_in(live_server.url, "ana", PASSWORD)
    page = visit.page
    page.goto(f"{live_server.url}/settings/webhooks/")
    look(visit, f"none-{language}", width)
    page.click("#add-webhook")
    with http_sink() as sink:
        page.fill("[name=name]", "CRM de facturación")
        page.fill("[name=url]", f"{sink.url}/in")
        page.click("#save")
        expect(page.locator("#field-signing_key .errors")).to_be_visible()
        look(visit, f"wrong-{language}", width)
        page.fill("[name=signing_key]", KEY)
        page.click("#save")
        expect(page.locator("#test")).to_contain_text("…")
        send(WebhookDelivery.objects.get().created_at)
        expect(page.locator("#test-sent")).to_be_visible()
        network = Network()
        network.event("down", at=NOW)
        send(NOW)
        page.reload()
        page.fill("[name=since]", "2026-02-01T00:00")
        page.click("#replay")
        expect(page.locator("#waiting")).to_contain_text("1")
        look(visit, f"again-{language}", width)
        sink.status = 503
        send(NOW)
    page.reload()
    expect(page.locator("#failing")).to_contain_text("503")
    look(visit, f"failing-{language}", width)
    page.click("#back")
    look(visit, f"list-{language}", width)
    page.click(f"#webhook-{Webhook.objects.get().pk}")
    page.click("#delete")
    look(visit, f"delete-{language}", width)
    page.click("#delete")

    assert not Webhook.objects.exists()
    assert [event["replayed"] for event in reported(sink)] == [False, True]

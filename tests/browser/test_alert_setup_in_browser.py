"""Two of the tasks of a day in a real Chromium, without the admin: a channel and its rule, and acknowledging.

Each is driven in every language, on a desk and on a phone, and its steps are counted: every click and every input.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alerts.alert_world import add_onus, answering_olt, cut
from alerts.outbox_rows import LOOPBACK, Post, StillClock, deliver, make_channel
from alerts.sinks import smtp_sink
from api.rows import PASSWORD, make_user
from browser.conftest import DESKTOP, EVERY_WINDOW, PHONE, Visit, Visitor
from facho.accounts.roles import Role
from facho.alerts.engine import run_pass
from facho.alerts.links import save_public_address
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
from facho.alerts.sender import read_networks
from facho.alerts.store import offer_default_rules
from facho.onus.models import OnuCustomer
from factories import NOW

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# From the overview: three clicks to the form, six inputs, one press that saves and tests, two to the rule.
STEPS_TO_CHANNEL_AND_RULE = 12
# Open the link of the message, press the button.
STEPS_TO_ACKNOWLEDGE = 2


@dataclass
class Steps:
    """Drives a page and counts what a person does."""

    visit: Visit
    number: int = 0

    def click(self, selector: str) -> None:
        self.visit.page.click(selector)
        self.number += 1

    def fill(self, name: str, text: str) -> None:
        self.visit.page.fill(f"[name={name}]", text)
        self.number += 1

    def choose(self, name: str, value: str) -> None:
        self.visit.page.select_option(f"[name={name}]", value)
        self.number += 1

    def open(self, address: str) -> None:
        self.visit.page.goto(address)
        self.number += 1


def send_waiting(at: datetime) -> None:
    """Deliver in a thread of its own: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(deliver, Post(StillClock(at), LOOPBACK)).result()


def look(visit: Visit, name: str, width: int) -> None:
    """Keep a picture; the page fits its window and keeps nobody out."""
    visit.keep(f"alerts-{name}-{width}")
    assert (visit.width(), visit.faults(), visit.complaints) == (width, [], [])


@EVERY_WINDOW
def test_a_channel_and_its_rule(
    live_server: LiveServer, visitor: Visitor, settings: Settings, language: str, width: int
) -> None:
    settings.FACHO_WEBHOOK_ALLOW = read_networks(["127.0.0.0/8"])
    AlertRule.objects.all().delete()
    offer_default_rules()
    make_user(Role.ADMIN, "ana")
    rule = AlertRule.objects.get(kind="pon_outage")
    visit = visitor(language=language, width=width)
    visit.log_in(live_server.url, "ana", PASSWORD)
    steps, page = Steps(visit), visit.page

    with smtp_sink() as sink:
        steps.click("a[href='/alerts/']")
        steps.click("#go-channels")
        look(visit, f"channels-{language}", width)
        steps.click("#add-email")
        for name, text in (
            ("name", "Guardia"),
            ("recipient", "noc@isp.example"),
            ("sender", "facho@isp.example"),
            ("server", "127.0.0.1"),
            ("port", str(sink.port)),
        ):
            steps.fill(name, text)
        steps.choose("security", "none")
        look(visit, f"email-{language}", width)
        steps.click("#save")
        expect(page.locator("#test")).to_contain_text("…")
        send_waiting(Notice.objects.get().created_at)
        expect(page.locator("#test-sent")).to_be_visible()
        look(visit, f"tested-{language}", width)
    steps.click("#choose-rules")
    steps.click(f"#rule-{rule.pk} td.ticks label")
    expect(page.locator(f"#saved-{rule.pk} .up")).to_be_visible()
    look(visit, f"matrix-{language}", width)

    assert list(rule.channels.values_list("name", flat=True)) == ["Guardia"]
    assert len(sink.received) == 1
    assert steps.number == STEPS_TO_CHANNEL_AND_RULE
    assert "/admin/" not in " ".join(visit.requests)


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_wrong_cell_is_marked_and_nothing_typed_is_lost(
    live_server: LiveServer, visitor: Visitor, width: int
) -> None:
    AlertRule.objects.all().delete()
    rule = AlertRule.objects.create(name="Weak light", kind="weak_light")
    AlertChannel.objects.create(name="night shift")
    make_user(Role.ADMIN, "ana")
    visit = visitor(width=width)
    visit.log_in(live_server.url, "ana", PASSWORD)
    page = visit.page
    page.goto(f"{live_server.url}/settings/rules/")
    cell = page.locator(f"#id_rule{rule.pk}-threshold")

    cell.fill("-99")
    page.locator(f"#id_rule{rule.pk}-hold_minutes").focus()
    expect(page.locator(f"#id_rule{rule.pk}-threshold-fault")).to_have_text("Enter a number from -40 to 0.")
    look(visit, "wrong-cell", width)
    assert cell.input_value() == "-99"
    cell.fill("-25")
    page.locator(f"#id_rule{rule.pk}-hold_minutes").focus()
    expect(page.locator(f"#saved-{rule.pk} .up")).to_be_visible()
    expect(page.locator(f"#id_rule{rule.pk}-threshold-fault")).to_be_empty()

    assert AlertRule.objects.get().threshold == -25
    page.goto(f"{live_server.url}/settings/channels/add/email/")
    page.fill("[name=name]", "Boss")
    page.click("#save")
    expect(page.locator("#field-recipient .errors")).to_be_visible()
    look(visit, "wrong-channel", width)
    assert page.input_value("[name=name]") == "Boss"


@EVERY_WINDOW
def test_acknowledging_from_a_message(
    live_server: LiveServer, visitor: Visitor, settings: Settings, language: str, width: int
) -> None:
    settings.FACHO_WEBHOOK_ALLOW = read_networks(["127.0.0.0/8"])
    save_public_address(live_server.url)
    AlertRule.objects.all().delete()
    rule = AlertRule.objects.create(name="Ports", kind="pon_outage", severity="critical")
    olt = answering_olt()
    onus = add_onus(olt, 12)
    OnuCustomer.objects.bulk_create(OnuCustomer(onu=onu, label=f"Cliente {onu.onu_id}") for onu in onus)
    with smtp_sink() as sink:
        rule.channels.add(make_channel(f"mailto://127.0.0.1:{sink.port}?from=a@isp.example&to=b@isp.example"))
        AlertChannel.objects.update(language=language)
        cut(olt, onus)
        run_pass(NOW)
        # Links expire by the clock of the browser's visit.
        Notice.objects.update(created_at=timezone.now(), next_try_at=timezone.now())
        send_waiting(timezone.now())
    [mail] = sink.received
    body = next(iter(mail.iter_parts())).get_content()
    link = next(word for word in body.split() if "/acknowledge/" in word)
    visit = visitor(language=language, width=width)
    steps = Steps(visit)

    steps.open(link)
    look(visit, f"acknowledge-{language}", width)
    assert Alert.objects.get().acknowledged_at is None
    steps.click("#acknowledge")
    expect(visit.page.locator("#acknowledge")).to_have_count(0)
    look(visit, f"acknowledged-{language}", width)

    assert Alert.objects.get().acknowledged_at is not None
    assert steps.number == STEPS_TO_ACKNOWLEDGE

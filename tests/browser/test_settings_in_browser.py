"""The settings in a real Chromium, in every language, on a desk and on a phone, without entering the administration.

Steps are what a person does: a page opened, a click that leads on, a form saved. The counts are those of the tasks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_execution, make_node, make_olt, make_onu, make_user
from browser.conftest import DESKTOP, EVERY_WINDOW, PHONE, Visit, Visitor
from facho.accounts.roles import Role, role_of
from facho.accounts.scope import scope_of
from facho.alerts.store import offer_default_rules
from facho.hosts.models import Olt, OltGroup, Pause, Reachability
from facho.hosts.store import active_pauses
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# A push has each language and each width.


@dataclass
class Task:
    """Counts the steps of a person, and looks at each page that they lead to."""

    visit: Visit
    name: str
    width: int
    steps: int = 0

    def do(self, act: Callable[[], object]) -> None:
        act()
        self.steps += 1
        self.visit.page.wait_for_load_state()
        assert "/admin/" not in self.visit.page.url
        self.visit.keep(f"settings-{self.name}-{self.steps}-{self.width}")
        assert self.visit.width() == self.width
        assert self.visit.faults() == []

    def click(self, selector: str) -> None:
        self.do(lambda: self.visit.page.click(selector))


def begin(visitor: Visitor, server: LiveServer, name: str, language: str, width: int) -> Task:
    make_user(Role.ADMIN, "ana")
    visit = visitor(language=language, width=width)
    visit.log_in(server.url, "ana", PASSWORD)
    return Task(visit, f"{name}-{language}", width)


def make_polled(name: str, group: OltGroup | None = None) -> Olt:
    now = timezone.now()
    olt = make_olt(name, group=group, reachability=Reachability.UP, last_answer_at=now, vendor="huawei_smartax")
    node = make_node(olt, name="Read states", slug=f"states_{olt.id}", next_run_at=now + timedelta(minutes=2))
    make_execution(node, ExecutionState.SUCCESS, at=now - timedelta(minutes=3), duration_ms=42_000)
    WorkflowNode.objects.filter(id=node.id).update(last_run_at=now)
    make_onu(olt)
    return olt


@EVERY_WINDOW
def test_an_olt_is_added_and_the_interval_of_a_job_changed(
    live_server: LiveServer, visitor: Visitor, language: str, width: int
) -> None:
    task = begin(visitor, live_server, "interval", language, width)
    page = task.visit.page
    OltGroup.objects.create(name="Norte")

    task.click("#go-settings")
    task.click("#settings-add-olt")
    page.fill("[name=name]", "Centro")
    page.fill("[name=host]", "127.0.0.1")
    page.fill("[name=community]", "lectura")
    task.click(".details button[type=submit]")
    added = Olt.objects.get()
    node = make_node(added, name="Read states", slug="states")
    make_execution(node, ExecutionState.SUCCESS, duration_ms=42_000)
    WorkflowNode.objects.filter(id=node.id).update(last_run_at=timezone.now())
    added_steps = task.steps

    page.goto(f"{live_server.url}/olts/{added.id}/")
    task.click(f"#change-{node.id}")
    cost = page.locator("#job-cost").inner_text()
    page.locator("[name=interval_seconds]").fill("")
    page.locator("[name=interval_seconds]").press_sequentially("30s")
    expect(page.locator("#job-cost")).not_to_have_text(cost)
    expect(page.locator("#job-cost .cost.over")).to_be_visible()
    task.visit.keep(f"settings-{task.name}-cost-{width}")
    page.fill("[name=interval_seconds]", "15m")
    expect(page.locator("#job-cost .cost:not(.over)")).to_be_visible()
    task.click("#save-job")

    assert WorkflowNode.objects.get(id=node.id).interval_seconds == 900
    assert (added_steps, task.steps - added_steps) == (3, 2)
    assert task.visit.complaints == []


@EVERY_WINDOW
def test_a_limited_user_is_added_and_sees_only_their_group(
    live_server: LiveServer, visitor: Visitor, language: str, width: int
) -> None:
    north = OltGroup.objects.create(name="Norte")
    make_polled("Norte-1", north), make_polled("Sur-1")
    task = begin(visitor, live_server, "person", language, width)
    page = task.visit.page

    task.click("#go-settings")
    task.click(".settings-menu [href='/settings/people/']")
    task.click("#add-person")
    page.fill("[name=username]", "vera")
    page.check("[name=role][value=operator]")
    page.check("[name=olt_groups]")
    task.click("#save-person")
    link = page.input_value("#person-link")
    page.click("[data-copy=person-link]")
    expect(page.locator("[data-copy=person-link]")).to_have_text(
        {"es": "Copiado", "pt-br": "Copiado", "en": "Copied"}[language]
    )

    vera = User.objects.get(username="vera")
    assert (role_of(vera), scope_of(vera).group_ids) == (Role.OPERATOR, frozenset({north.id}))
    assert task.steps == 4
    guest = visitor(language=language, width=width)
    guest.page.goto(link)
    guest.page.fill("[name=new_password1]", PASSWORD)
    guest.page.fill("[name=new_password2]", PASSWORD)
    guest.page.click("main button[type=submit]")
    expect(guest.page.locator("#live")).to_contain_text("Norte-1")
    expect(guest.page.locator("body")).not_to_contain_text("Sur-1")
    assert task.visit.complaints == guest.complaints == []


@EVERY_WINDOW
def test_an_olt_is_silenced_tonight_from_its_page(
    live_server: LiveServer, visitor: Visitor, language: str, width: int
) -> None:
    olt = make_polled("Norte-1")
    task = begin(visitor, live_server, "silence", language, width)
    task.visit.page.goto(f"{live_server.url}/olts/{olt.id}/")

    task.click("#olt-maintenance")
    task.visit.page.fill("[name=note]", "trabajos de fibra")
    task.click("#plan-window")

    planned = Pause.objects.get()
    assert (planned.olt_id, planned.keeps_polling, planned.note) == (olt.id, True, "trabajos de fibra")
    assert planned.ends_at - planned.starts_at <= timedelta(hours=8)
    assert not active_pauses(timezone.now())
    expect(task.visit.page.locator("#windows")).to_contain_text("Norte-1")
    assert task.steps == 2
    assert task.visit.complaints == []


@pytest.mark.parametrize(("language", "dark"), [("es", False), pytest.param("pt-br", True, marks=pytest.mark.thorough)])
def test_every_page_of_the_settings_and_the_administration_has_the_frame_of_the_product(
    live_server: LiveServer, visitor: Visitor, language: str, dark: bool
) -> None:
    north = OltGroup.objects.create(name="Norte")
    olt, other = make_polled("Norte-1", north), make_polled("Sur-1")
    offer_default_rules()
    Olt.objects.filter(id=other.id).update(enabled=False)
    make_user(Role.ADMIN, "ana")
    visit = visitor(language=language, dark=dark)
    visit.log_in(live_server.url, "ana", PASSWORD)
    addresses = {
        "olts": "/settings/olts/",
        "olt": f"/settings/olts/{olt.id}/",
        "olt-off": f"/settings/olts/{other.id}/",
        "delete": f"/settings/olts/{olt.id}/delete/",
        "groups": "/settings/groups/",
        "people": "/settings/people/",
        "person": f"/settings/people/{User.objects.get().id}/",
        "maintenance": "/settings/maintenance/",
        "job": f"/olts/{olt.id}/jobs/{WorkflowNode.objects.filter(workflow__olt=olt).get().id}/",
        "admin": "/admin/",
        "admin-jobs": "/admin/snmp_jobs/snmpjob/",
        "admin-job": "/admin/snmp_jobs/snmpjob/add/",
        "admin-import": "/admin/hosts/olt/import/",
    }
    for name, address in addresses.items():
        for width in (DESKTOP, PHONE):
            visit.page.set_viewport_size({"width": width, "height": 900})
            visit.page.goto(f"{live_server.url}{address}")
            visit.keep(f"settings-{name}-{language}-{'dark' if dark else 'light'}-{width}")
            assert visit.page.locator("header.bar #go-settings[aria-current]").count() == (name != "job"), name
            assert visit.width() == width, name
        assert visit.faults() == [], name
    assert visit.complaints == []


def test_a_new_token_is_copied_by_its_button(live_server: LiveServer, visitor: Visitor) -> None:
    make_user(Role.ADMIN, "ana")
    visit = visitor(language="es")
    visit.log_in(live_server.url, "ana", PASSWORD)
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    visit.page.goto(f"{live_server.url}/account/")
    visit.page.fill("[name=name]", "Grafana")
    visit.page.click("[action$='/account/tokens/'] button")
    token = visit.page.input_value("#new-token")
    visit.page.click("[data-copy=new-token]")

    expect(visit.page.locator("[data-copy=new-token]")).to_have_text("Copiado")
    assert visit.page.evaluate("navigator.clipboard.readText()") == token
    assert visit.complaints == []

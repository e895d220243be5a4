"""Operating an OLT in a real Chromium: no refresh swallows a click or takes the focus away."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_node, make_olt, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from facho.accounts.roles import Role
from facho.snmp_jobs.models import WorkflowNode

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


ENGLISH = ("en", "Light: Queued", "The pause has ended.")
PORTUGUESE = ("pt-br", "Light: Na fila", "A pausa terminou.")


@pytest.mark.parametrize(
    ("width", "dark", "words"),
    [
        (DESKTOP, False, ENGLISH),
        (PHONE, True, ENGLISH),
        pytest.param(PHONE, False, PORTUGUESE, marks=pytest.mark.thorough),
    ],
)
def test_a_click_is_heard_and_the_focus_stays(
    live_server: LiveServer, visitor: Visitor, width: int, dark: bool, words: tuple[str, str, str]
) -> None:
    language, queued, has_ended = words
    make_user(Role.OPERATOR, "ana")
    node = make_node(make_olt("North"), name="Light")
    visit = visitor(language=language, width=width, dark=dark)
    visit.log_in(live_server.url, "ana", PASSWORD)
    page = visit.page
    page.goto(f"{live_server.url}/olts/{node.workflow.olt_id}/")
    run = page.locator(f"#run-{node.id}")
    state, work = (reverse("olt-part", args=[node.workflow.olt_id, name]) for name in ("state", "work"))

    run.hover()
    page.mouse.down()
    for _refresh in range(2):
        page.wait_for_event("requestfinished", lambda request: request.url.endswith(state))
    page.mouse.up()
    expect(page.locator("#olt-said")).to_contain_text(queued)
    page.wait_for_event("requestfinished", lambda request: request.url.endswith(work))
    expect(run).to_be_focused()
    assert WorkflowNode.objects.get(id=node.id).run_requested_at is not None

    page.click("#olt-pause")
    expect(page.locator("#olt-said span")).to_be_focused()
    visit.keep(f"olt-acts-{language}-{width}-{'dark' if dark else 'light'}")
    assert (visit.width(), visit.complaints, visit.faults()) == (width, [], [])
    page.click("#olt-pause-end")
    expect(page.locator("#olt-said")).to_contain_text(has_ended)

"""One's own account in a real Chromium: a token is made, seen once and revoked, on a desk and on a phone."""

import pytest
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("width", "dark"), [(DESKTOP, False), (PHONE, True)])
def test_a_token_is_made_seen_once_and_revoked(
    live_server: LiveServer, visitor: Visitor, width: int, dark: bool
) -> None:
    make_user(Role.OPERATOR, "ana")
    OltGroup.objects.create(name="North")
    visit = visitor(width=width, dark=dark)
    visit.log_in(live_server.url, "ana", PASSWORD)
    page = visit.page

    page.goto(f"{live_server.url}/account/")
    page.fill("#token-name", "Grafana")
    page.get_by_label("North").check()
    page.get_by_role("button", name="Create the token").click()
    text = page.input_value("#new-token")
    visit.keep(f"account-{width}-{'dark' if dark else 'light'}")

    assert text.startswith("facho_")
    assert (visit.width(), visit.complaints, visit.faults()) == (width, [], [])
    page.locator("summary", has_text="Revoke").click()
    page.get_by_role("button", name="Revoke permanently").click()
    expect(page.locator("main")).to_contain_text("The token was revoked.")
    expect(page.locator("#new-token")).to_have_count(0)

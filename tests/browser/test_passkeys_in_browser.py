"""Passkeys in a real Chromium, with the authenticator that it plays itself."""

from typing import Any

import pytest
from playwright.sync_api import expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_user
from browser.conftest import DESKTOP, PHONE, Visit, Visitor
from facho.accounts.models import LoginSession, Passkey, SecondFactorDuty, WayIn
from facho.accounts.roles import Role

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Key:
    """Chromium's own authenticator, plugged into one window."""

    def __init__(self, visit: Visit) -> None:
        self.devtools = visit.page.context.new_cdp_session(visit.page)
        self.devtools.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
        }
        made = self.devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        self.id = made["authenticatorId"]

    def credentials(self) -> list[dict[str, Any]]:
        found = self.devtools.send("WebAuthn.getCredentials", {"authenticatorId": self.id})
        credentials: list[dict[str, Any]] = found["credentials"]
        return credentials

    def take(self, credential: dict[str, Any]) -> None:
        """Hold a credential as another authenticator held it: a copy."""
        self.devtools.send("WebAuthn.addCredential", {"authenticatorId": self.id, "credential": credential})

    def refuse_owner(self) -> None:
        self.devtools.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": False})


def add_at_account(visit: Visit, url: str, name: str) -> None:
    page = visit.page
    page.goto(f"{url}/account/")
    page.fill("[name=name][id=passkey-name]", name)
    page.fill("#passkey-password", PASSWORD)
    page.locator("form[action='/account/passkeys/add/'] button[type=submit]").click()
    page.locator("button[data-passkey-options]").click()


def test_a_passkey_is_made_lets_in_and_is_removed(live_server: LiveServer, visitor: Visitor) -> None:
    make_user(Role.ADMIN, "ana")
    desk = visitor()
    key, page, seen = Key(desk), desk.page, []
    desk.log_in(live_server.url, "ana", PASSWORD)

    add_at_account(desk, live_server.url, "laptop")
    expect(page.locator("#recovery-codes code")).to_have_count(10)
    assert len(key.credentials()) == 1
    page.goto(f"{live_server.url}/account/")
    seen.append((desk.width(), desk.faults()))
    desk.keep("account-passkeys-1280-light")
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{live_server.url}/login/")
    seen.append((desk.width(), desk.faults()))
    desk.keep("login-passkey-1280-light")
    page.get_by_role("button", name="Log in with a passkey").click()
    page.wait_for_selector("#live")

    assert LoginSession.objects.get().way == WayIn.PASSKEY
    page.goto(f"{live_server.url}/account/")
    page.locator("summary", has_text="laptop").click()
    page.get_by_role("button", name="Remove, confirmed by a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("The passkey was removed")
    assert not Passkey.objects.exists()
    assert seen == [(DESKTOP, [])] * 2
    assert desk.complaints == []


def test_a_role_that_must_have_a_factor_makes_a_passkey_at_the_log_in_and_is_asked_for_it(
    live_server: LiveServer, visitor: Visitor
) -> None:
    make_user(Role.ADMIN, "ana")
    SecondFactorDuty.objects.create(role="admin")
    phone = visitor(width=PHONE, dark=True, language="es")
    key, page, seen = Key(phone), phone.page, []

    def give_password() -> None:
        page.goto(f"{live_server.url}/login/")
        page.fill("[name=username]", "ana")
        page.fill("[name=password]", PASSWORD)
        page.locator("main form").first.locator("button[type=submit]").click()

    give_password()
    seen.append((phone.width(), phone.faults()))
    phone.keep("passkey-duty-360-dark")
    page.fill("#passkey-name", "teléfono")
    page.locator("form[action='/account/passkeys/add/'] button").click()
    page.locator("button[data-passkey-options]").wait_for()
    seen.append((phone.width(), phone.faults()))
    phone.keep("passkey-new-360-dark")
    page.locator("button[data-passkey-options]").click()
    expect(page.locator("#recovery-codes code")).to_have_count(10)

    page.context.clear_cookies()
    give_password()
    phone.keep("passkey-asked-360-dark")
    seen.append((phone.width(), phone.faults()))
    page.locator("button[data-passkey]").click()
    page.wait_for_selector("#live")
    page.goto(f"{live_server.url}/account/")
    phone.keep("account-passkeys-360-dark")
    seen.append((phone.width(), phone.faults()))

    assert key.credentials()[0]["signCount"] == Passkey.objects.get().counter > 0
    assert seen == [(PHONE, [])] * 4
    assert phone.complaints == []


def test_a_key_that_does_not_verify_its_owner_a_copy_and_another_host_are_refused(
    live_server: LiveServer, visitor: Visitor, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    make_user(Role.ADMIN, "ana")
    desk, thief = visitor(), visitor()
    key, copy = Key(desk), Key(thief)
    desk.log_in(live_server.url, "ana", PASSWORD)
    add_at_account(desk, live_server.url, "laptop")
    expect(desk.page.locator("#recovery-codes code")).to_have_count(10)
    copy.take(key.credentials()[0])
    for _ in range(2):
        desk.page.context.clear_cookies()
        desk.page.goto(f"{live_server.url}/login/")
        desk.page.get_by_role("button", name="Log in with a passkey").click()
        desk.page.wait_for_selector("#live")

    # Its counter is behind by one.
    thief.page.goto(f"{live_server.url}/login/")
    thief.page.get_by_role("button", name="Log in with a passkey").click()
    expect(thief.page.get_by_role("alert")).to_contain_text("This passkey was not accepted")
    thief.keep("passkey-refused-1280-light")
    # Under another name of the same machine the browser finds none.
    elsewhere = live_server.url.replace("localhost", "other.localhost")
    thief.page.goto(f"{elsewhere}/login/")
    thief.page.get_by_role("button", name="Log in with a passkey").click()
    expect(thief.page.get_by_role("alert")).to_contain_text("No passkey answered")
    key.refuse_owner()
    desk.page.context.clear_cookies()
    desk.page.goto(f"{live_server.url}/login/")
    desk.page.get_by_role("button", name="Log in with a passkey").click()
    expect(desk.page.get_by_role("alert")).to_contain_text("No passkey answered")
    desk.page.goto(f"{live_server.url}/")

    expect(desk.page.locator("[name=username]")).to_be_visible()

"""Sign-on in a real Chromium, through a provider's own pages and back."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from browser.conftest import DESKTOP, PHONE, Visit, Visitor
from facho.dashboard.account.sign_on import documents
from servers.openid_provider import CLIENT, CLIENT_SECRET, OpenIdProvider, openid_provider
from servers.slapd import GROUPS, PEOPLE, private_slapd

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def provider(settings: Settings, tmp_path: Path) -> Iterator[OpenIdProvider]:
    (tmp_path / "secret").write_text(CLIENT_SECRET)
    with openid_provider() as provider:
        settings.FACHO_OIDC_ISSUER = provider.issuer
        settings.FACHO_OIDC_CLIENT_ID = CLIENT
        settings.FACHO_OIDC_CLIENT_SECRET_FILE = tmp_path / "secret"
        settings.FACHO_SIGN_ON_ROLES = (("operator", "noc"),)
        documents.clear()
        yield provider


def stay_on_this_machine(visit: Visit) -> None:
    """The provider's pages want a style sheet from elsewhere."""
    visit.page.route(re.compile(r"^https?://(?!127\.0\.0\.1|localhost)"), lambda route: route.abort())


def test_somebody_signs_on_through_the_provider_until_the_group_is_gone(
    live_server: LiveServer, visitor: Visitor, provider: OpenIdProvider
) -> None:
    provider.set_person("sub-ana", preferred_username="ana", groups=["noc"])
    desk, phone = visitor(), visitor(width=PHONE, dark=True, language="es")
    for visit in (desk, phone):
        stay_on_this_machine(visit)
    desk.page.goto(f"{live_server.url}/onus/")
    desk.keep("sign-on-1280-light")
    seen = [(desk.width(), desk.complaints.copy(), desk.faults())]

    desk.page.get_by_role("link", name="Sign on with your company account").click()
    desk.page.fill("[name=sub]", "sub-ana")
    desk.page.get_by_role("button", name="Authorize").click()
    expect(desk.page).to_have_url(f"{live_server.url}/onus/")

    provider.set_person("sub-ana", preferred_username="ana", groups=[])
    phone.page.goto(f"{live_server.url}/login/")
    phone.page.get_by_role("link", name="Entrar con la cuenta de la empresa").click()
    phone.page.fill("[name=sub]", "sub-ana")
    phone.page.get_by_role("button", name="Authorize").click()
    expect(phone.page.get_by_role("alert")).to_contain_text("Ninguno de sus grupos")
    phone.keep("sign-on-refused-360-dark")
    seen.append((phone.width(), [], phone.faults()))
    desk.page.goto(f"{live_server.url}/onus/")

    expect(desk.page.locator("[name=password]")).to_be_visible()
    assert seen == [(DESKTOP, [], []), (PHONE, [], [])]


def test_a_disabled_account_stays_outside_whatever_the_provider_says(
    live_server: LiveServer, visitor: Visitor, provider: OpenIdProvider
) -> None:
    provider.set_person("sub-ana", preferred_username="ana", groups=["noc"])
    desk, phone = visitor(), visitor(width=PHONE, language="pt-br")
    sign_on(desk, live_server.url)
    expect(desk.page.locator("#live")).to_be_visible()

    User.objects.filter(username="ana").update(is_active=False)
    sign_on(phone, live_server.url)

    expect(phone.page.get_by_role("alert")).to_contain_text("Esta conta está desabilitada")
    phone.keep("sign-on-disabled-360-light")
    assert (phone.width(), phone.faults()) == (PHONE, [])
    desk.page.goto(f"{live_server.url}/onus/")
    expect(desk.page.locator("[name=password]")).to_be_visible()


def test_a_way_back_that_was_used_opens_nothing_for_whoever_copied_it(
    live_server: LiveServer, visitor: Visitor, provider: OpenIdProvider
) -> None:
    """Also not with the cookie in which the sign-on began, and not to the person again."""
    provider.set_person("sub-ana", preferred_username="ana", groups=["noc"])
    desk, thief = visitor(), visitor(width=PHONE, language="pt-br")
    copied = sign_on(desk, live_server.url)
    expect(desk.page.locator("#live")).to_be_visible()
    [used] = [address for address in desk.requests if "/sign-on/back/" in address]

    thief.page.context.add_cookies(copied)
    thief.page.goto(used)
    refusal = thief.page.get_by_role("alert").inner_text()
    thief.page.goto(f"{live_server.url}/onus/")
    desk.page.context.clear_cookies(name="sessionid")
    desk.page.goto(used)

    assert "Não foi possível entrar" in refusal
    for visit in (thief, desk):
        expect(visit.page.locator("[name=password]")).to_be_visible()


def sign_on(visit: Visit, url: str) -> list[Any]:
    """Sign on as Ana; return the cookies from before she consents."""
    stay_on_this_machine(visit)
    visit.page.goto(f"{url}/sign-on/")
    visit.page.fill("[name=sub]", "sub-ana")
    cookies = visit.page.context.cookies()
    assert [cookie["name"] for cookie in cookies if cookie["name"] == "facho_sign_on"]
    visit.page.get_by_role("button", name="Authorize").click()
    return cookies


@pytest.mark.parametrize("how", ["signature", "expired"])
def test_a_token_that_cannot_be_trusted_is_refused(
    live_server: LiveServer, visitor: Visitor, provider: OpenIdProvider, how: str
) -> None:
    provider.set_person("sub-ana", preferred_username="ana", groups=["noc"])
    provider.spoil(how)
    visit = visitor()
    stay_on_this_machine(visit)
    page = visit.page

    page.goto(f"{live_server.url}/sign-on/")
    page.fill("[name=sub]", "sub-ana")
    page.get_by_role("button", name="Authorize").click()

    expect(page.get_by_role("alert")).to_contain_text("Sign-on failed")
    # The code is used, and the cookie gone: the same address opens nothing.
    page.reload()
    expect(page.locator("[name=password]")).to_be_visible()


def test_somebody_logs_in_with_the_password_of_the_directory(
    live_server: LiveServer, visitor: Visitor, settings: Settings, tmp_path: Path
) -> None:
    with private_slapd(tmp_path) as directory:
        settings.FACHO_LDAP_URL = f"ldap://localhost:{directory.port}"
        settings.FACHO_LDAP_CA_FILE = directory.ca_file
        settings.FACHO_LDAP_USER_BASE, settings.FACHO_LDAP_GROUP_BASE = PEOPLE, GROUPS
        directory.add_person("ana", "ana's own password")
        group = directory.add_group("noc", "ana")
        settings.FACHO_SIGN_ON_ROLES = (("operator", group),)
        desk, phone = visitor(), visitor(width=PHONE, language="es")

        desk.log_in(live_server.url, "ana", "ana's own password")
        directory.leave(group, "ana")
        phone.page.goto(f"{live_server.url}/login/")
        phone.page.fill("[name=username]", "ana")
        phone.page.fill("[name=password]", "ana's own password")
        phone.page.click("main button[type=submit]")

        expect(phone.page.get_by_role("alert")).to_contain_text("Ninguno de sus grupos")
        assert (phone.width(), phone.complaints, phone.faults()) == (PHONE, [], [])
        desk.page.goto(f"{live_server.url}/onus/")
        expect(desk.page.locator("[name=password]")).to_be_visible()


def test_an_account_that_the_directory_locked_is_refused(
    live_server: LiveServer, visitor: Visitor, settings: Settings, tmp_path: Path
) -> None:
    with private_slapd(tmp_path) as directory:
        settings.FACHO_LDAP_URL = f"ldap://localhost:{directory.port}"
        settings.FACHO_LDAP_CA_FILE = directory.ca_file
        settings.FACHO_LDAP_USER_BASE, settings.FACHO_LDAP_GROUP_BASE = PEOPLE, GROUPS
        directory.add_person("ana", "ana's own password")
        settings.FACHO_SIGN_ON_ROLES = (("operator", directory.add_group("noc", "ana")),)
        visitor().log_in(live_server.url, "ana", "ana's own password")
        phone = visitor(width=PHONE, language="pt-br")

        directory.lock("ana")
        phone.page.goto(f"{live_server.url}/login/")
        phone.page.fill("[name=username]", "ana")
        phone.page.fill("[name=password]", "ana's own password")
        phone.page.click("main button[type=submit]")

        expect(phone.page.get_by_role("alert")).to_be_visible()
        phone.keep("directory-locked-360-light")
        assert (phone.width(), phone.complaints, phone.faults()) == (PHONE, [], [])
        phone.page.goto(f"{live_server.url}/onus/")
        expect(phone.page.locator("[name=password]")).to_be_visible()

"""Sign-on in a real Chromium, through a provider's own pages and back."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
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
    seen = [(desk.width(), desk.complaints.copy(), desk.barriers())]

    desk.page.get_by_role("link", name="Sign on with your company account").click()
    desk.page.fill("[name=sub]", "sub-ana")
    desk.page.get_by_role("button", name="Authorize").click()
    expect(desk.page).to_have_url(f"{live_server.url}/onus/")

    provider.set_person("sub-ana", preferred_username="ana", groups=[])
    phone.page.goto(f"{live_server.url}/login/")
    phone.page.get_by_role("link", name="Entrar con la cuenta de la empresa").click()
    phone.page.fill("[name=sub]", "sub-ana")
    phone.page.get_by_role("button", name="Authorize").click()
    expect(phone.page.get_by_role("alert")).to_contain_text("No pertenece a ningún grupo")
    phone.keep("sign-on-refused-360-dark")
    seen.append((phone.width(), [], phone.barriers()))
    desk.page.goto(f"{live_server.url}/onus/")

    expect(desk.page.locator("[name=password]")).to_be_visible()
    assert seen == [(DESKTOP, [], []), (PHONE, [], [])]


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

    expect(page.get_by_role("alert")).to_contain_text("The sign-on did not succeed")
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

        expect(phone.page.get_by_role("alert")).to_contain_text("No pertenece a ningún grupo")
        assert (phone.width(), phone.complaints, phone.barriers()) == (PHONE, [], [])
        desk.page.goto(f"{live_server.url}/onus/")
        expect(desk.page.locator("[name=password]")).to_be_visible()

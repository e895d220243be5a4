"""The second factor in a real Chromium: its set-up, the recovery codes, and the next log-in."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from facho.accounts.factors import STEP_SECONDS, code_at
from facho.accounts.models import SecondFactorDuty
from facho.accounts.roles import Role

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("pt-br", ("Este código está errado", "Restam 9 códigos")),
        pytest.param("es", ("Este código es incorrecto", "Quedan 9 códigos"), marks=pytest.mark.thorough),
    ],
)
def test_a_required_factor_is_set_up_and_asked_for(
    live_server: LiveServer, visitor: Visitor, language: str, words: tuple[str, str]
) -> None:
    make_user(Role.ADMIN, "ana")
    SecondFactorDuty.objects.create(role="admin")
    desk, phone = visitor(), visitor(width=PHONE, dark=True, language=language)
    seen = []
    for visit in (desk, phone):
        visit.page.goto(f"{live_server.url}/login/")
        visit.page.fill("[name=username]", "ana")
        visit.page.fill("[name=password]", PASSWORD)
        if visit is desk:
            visit.page.click("main button[type=submit]")
            key = re.sub(r"\s", "", visit.page.locator("main code").inner_text())
            seen.append((visit.width(), visit.faults()))
            visit.keep("factor-setup-1280-light")
            visit.page.fill("[name=code]", code_at(key, int(timezone.now().timestamp()) // STEP_SECONDS))
            visit.page.click("main button[type=submit]")
            codes = visit.page.locator("#recovery-codes code").all_inner_texts()
            seen.append((visit.width(), visit.faults()))
            visit.keep("recovery-codes-1280-light")
            visit.page.get_by_role("link", name="I have written them down").click()
            visit.page.goto(f"{live_server.url}/account/")
            visit.keep("account-factor-1280-light")
            seen.append((visit.width(), visit.faults()))
            visit.page.goto(f"{live_server.url}/settings/people/")
            seen.append((visit.width(), visit.faults()))
            visit.keep("people-factors-1280-light")
        else:
            visit.page.click("main button[type=submit]")
            visit.page.fill("[name=code]", "000000")
            visit.page.click("main button[type=submit]")
            expect(visit.page.locator("main")).to_contain_text(words[0])
            seen.append((visit.width(), visit.faults()))
            visit.keep("factor-asked-360-dark")
            visit.page.fill("[name=code]", codes[0])
            visit.page.click("main button[type=submit]")
            visit.page.wait_for_selector("#live")
            visit.page.goto(f"{live_server.url}/account/")
            expect(visit.page.locator("main")).to_contain_text(words[1])
            seen.append((visit.width(), visit.faults()))

    assert seen == [(DESKTOP, [])] * 4 + [(PHONE, [])] * 2
    assert desk.complaints == phone.complaints == []

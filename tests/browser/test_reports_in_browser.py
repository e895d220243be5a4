"""The reports in a real Chromium: every table fits, is read without eyes, asks nobody else, and the PDF is a file."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from facho.accounts.roles import Role
from facho.onus.models import Onu, OnuCustomer
from facho.plant.models import MonthRun
from facho.plant.months import compute_month
from facho.plant.report import load_runs
from history_world import make_onus, make_ports
from month_world import AFTERWARDS, OCTOBER, START, day, down, silent, steady, write_history

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TABLES = ("olts", "ports", "zones", "downtime", "interruptions", "light", "repairs", "customers")
# The widest of groups, of customers, and the one with sentences.
SOME = ("ports", "repairs", "customers")
WORDS = {
    "en": ("October 2026", "Availability"),
    "es": ("octubre de 2026", "Disponibilidad"),
    "pt-br": ("Outubro de 2026", "Disponibilidade"),
}


@pytest.fixture
def month(settings: LazySettings) -> MonthRun:
    """A month of a port: one customer is well, one was down, one is weak, one was repaired, and one was not read."""
    settings.FACHO_HISTORY_DAYS = 40
    (port,) = make_ports(1)
    onus = make_onus(port, 5, now=START - timedelta(days=90))
    stories = [
        steady(-20),
        down(steady(-22), day(3), day(4)),
        steady(-28.3),
        lambda at: (True, (-20.8 if at >= day(9) else -25.0) + 0.03 * (at.hour % 3)),
        silent(steady(-21), day(5), day(12)),
    ]
    write_history(onus, stories)
    for onu, name in zip(onus, ("Ana Rivas", "Panadería La Espiga de Oro y Hermanos, sucursal norte"), strict=False):
        OnuCustomer.objects.create(onu=onu, label=name)
    Onu.objects.filter(id=onus[2].id).update(description="x" * 120)
    return compute_month(OCTOBER, AFTERWARDS)


# Django's own test server speaks WSGI, to which it hands a streamed file with a warning.
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
@pytest.mark.parametrize(
    ("language", "width", "tables"),
    [
        pytest.param("es", PHONE, TABLES),
        pytest.param("en", DESKTOP, SOME),
        pytest.param("es", DESKTOP, SOME, marks=pytest.mark.thorough),
        pytest.param("en", PHONE, SOME, marks=pytest.mark.thorough),
        pytest.param("pt-br", PHONE, TABLES, marks=pytest.mark.thorough),
        pytest.param("en", DESKTOP, TABLES, marks=pytest.mark.thorough),
    ],
    ids=lambda value: "" if value is TABLES else "some" if value is SOME else str(value),
)
def test_every_table_of_a_month_is_fit_to_be_shown_and_its_pdf_is_a_file(
    live_server: LiveServer,
    visitor: Visitor,
    month: MonthRun,
    tmp_path: Path,
    language: str,
    width: int,
    tables: tuple[str, ...],
) -> None:
    visit = visitor(language=language, width=width)
    make_user(Role.OPERATOR, "ana")
    visit.log_in(live_server.url, "ana", PASSWORD)

    for by in tables:
        visit.page.goto(f"{live_server.url}/reports/?month=2026-10&by={by}")
        for words in WORDS[language]:
            expect(visit.page.locator("main")).to_contain_text(words)
        expect(visit.page.locator("[data-row]").first).to_be_visible()
        visit.page.click("#report-light summary")
        visit.keep(f"reports-{by}-{language}-{width}")
        assert visit.width() == width, by
        assert visit.faults() == [], by

    visit.page.goto(f"{live_server.url}/onus/{Onu.objects.order_by('id')[1].id}/")
    expect(visit.page.locator("#month-2026-10")).to_be_visible()
    visit.keep(f"reports-onu-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    visit.page.goto(f"{live_server.url}/reports/?month=2026-10")
    with visit.page.expect_download() as waiting:
        visit.page.click("#all-csv")
    waiting.value.save_as(tmp_path / "all.csv")
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + Onu.objects.count()
    with visit.page.expect_download() as waiting:
        visit.page.click("#report-pdf")
    saved = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    assert saved.name == "facho-2026-10.pdf"
    assert saved.read_bytes().startswith(b"%PDF-")
    assert visit.complaints == []
    assert visit.strangers(live_server.url) == []


def test_another_table_is_chosen_without_another_page_and_its_address_can_be_kept(
    live_server: LiveServer, visitor: Visitor, month: MonthRun
) -> None:
    visit = visitor()
    make_user(Role.VIEWER, "ana")
    visit.log_in(live_server.url, "ana", PASSWORD)
    visit.page.goto(f"{live_server.url}/reports/?month=2026-10")
    expect(visit.page.locator("#report-renew")).to_have_count(0)

    visit.page.select_option("#filter-by", "repairs")

    repair = visit.page.locator("[data-row] a").first
    expect(repair).to_contain_text("light +4.2 dB since")
    visit.page.wait_for_url("**/reports/?*by=repairs*")
    visit.page.reload()
    repair.click()
    visit.page.wait_for_url("**/onus/*/?from=2026-10-02*#light")
    assert visit.complaints == []
    assert [run.month for run in load_runs()] == [month.month]

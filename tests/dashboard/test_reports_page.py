"""The page of reports: a month and its tables, each figure with its plot, as files and as PDF, within the scope."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from api.rows import make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.dashboard.reports.views import _usual_month
from facho.hosts.models import OltGroup
from facho.onus.models import Onu, OnuCustomer
from facho.plant.models import MonthRun
from facho.plant.months import compute_month, compute_some, zone
from facho.polling.domain.availability import Month
from history_world import make_onus, make_ports
from month_world import OCTOBER, START, day, down, steady, write_history

pytestmark = pytest.mark.django_db


def content(client: Client, path: str) -> str:
    answer: Any = client.get(path)
    assert answer.status_code == 200, path

    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    return " ".join((async_to_sync(read)() if answer.streaming else answer.content).decode().split())


@pytest.fixture
def onus(settings: LazySettings) -> list[Onu]:
    """A port with a customer that is well, one that was down for a day, and one that was repaired."""
    settings.FACHO_HISTORY_DAYS = 40
    (port,) = make_ports(1)
    its = make_onus(port, 3, now=START - timedelta(days=90))
    rise = lambda at: (True, (-20.8 if at >= day(3) else -25.0) + 0.03 * (at.hour % 3))  # noqa: E731
    write_history(its, [steady(-20), down(steady(-28), day(3), day(4)), rise])
    OnuCustomer.objects.create(onu=its[1], label="Ana <b>Rivas</b>")
    compute_month(OCTOBER, day(33))
    return its


def test_a_month_shows_its_numbers_and_leads_to_the_plots(viewer: Client, onus: list[Onu]) -> None:
    page = content(viewer, "/reports/?month=2026-10&by=downtime")

    assert "October 2026" in page
    assert "98.924" in page
    assert "Ana &lt;b&gt;Rivas&lt;/b&gt;" in page
    plot = page.partition(f'id="row-onu-{onus[1].id}" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert viewer.get(plot).status_code == 200
    assert "from=2026-10-01" in plot


@pytest.mark.parametrize("asked", ["", "?month=2026-10", "?month=1999-01"])
def test_the_form_shows_the_month_that_the_page_does(viewer: Client, onus: list[Onu], asked: str) -> None:
    month = "2026-10" if "10" in asked else _usual_month([OCTOBER, Month.of(timezone.now(), zone())], timezone.now())

    page = content(viewer, f"/reports/{asked}")

    assert f'<option value="{month}" selected>' in page


def test_every_figure_of_a_month_opens_to_the_rows_it_is_counted_from(viewer: Client, onus: list[Onu]) -> None:
    page = content(viewer, f"/reports/?month=2026-10&olt={onus[0].olt_id}")

    first = {}
    for number in range(1, 7):
        address = page.partition(f'id="figure-{number}" href="')[2].partition('"')[0].replace("&amp;", "&")
        assert f"olt={onus[0].olt_id}" in address
        first[number] = content(viewer, address).partition('id="row-')[2].partition('"')[0]
    down, weakest, repaired = onus[1], onus[1], onus[2]
    assert (first[1], first[3], first[5]) == (f"onu-{down.id}", f"onu-{down.id}", f"onu-{weakest.id}")
    assert first[2] == f"onu-{onus[0].id}"
    assert first[4] != f"onu-{down.id}"
    assert first[6] == f"repair-{repaired.id}"


def link(page: str, link_id: str) -> str:
    assert f'id="{link_id}"' in page, link_id
    return page.partition(f'id="{link_id}" href="')[2].partition('"')[0].replace("&amp;", "&")


def test_shares_and_bars_open_to_all_customers_in_their_order(
    viewer: Client, onus: list[Onu], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facho.dashboard.reports.views.ROWS_PER_PAGE", 1)
    page = content(viewer, f"/reports/?month=2026-10&olt={onus[0].olt_id}")

    first = {
        name: content(viewer, link(page, name)).partition('id="row-')[2].partition('"')[0]
        for name in ("share-down", "share-up", "light-step-28", "light-step-21", "light-step-20")
    }

    assert first["share-down"] == f"onu-{onus[1].id}" != first["share-up"]
    # The repaired one has some light of before: it is a step weaker than the one that is well.
    bars = [first[f"light-step-{dbm}"] for dbm in (28, 21, 20)]
    assert bars == [f"onu-{onu.id}" for onu in (onus[1], onus[2], onus[0])]
    assert 'id="light-step-24"' not in page


@pytest.mark.parametrize("by", ["olts", "ports"])
def test_figures_of_outages_open_to_the_outages_of_that_month(viewer: Client, onus: list[Onu], by: str) -> None:
    port = onus[0].pon_port
    place = {"frame": port.frame, "slot": port.slot, "port": port.port}
    shown = make_outage(port.olt, started_at=day(2), ended_at=day(3), **place)
    later = make_outage(port.olt, started_at=day(32), ended_at=day(33), **place)
    page = content(viewer, f"/reports/?month=2026-10&by={by}")
    row_id = port.olt_id if by == "olts" else port.id

    lists = [content(viewer, link(page, f"row-{name}-{row_id}")) for name in ("outages", "outage_seconds")]

    for listed in lists:
        assert [f'href="/outages/{each.id}/"' in listed for each in (shown, later)] == [True, False]


@pytest.mark.parametrize("by", ["olts", "ports", "zones", "downtime", "interruptions", "light", "repairs", "customers"])
def test_every_table_is_drawn_sorted_and_saved(viewer: Client, onus: list[Onu], by: str) -> None:
    path = f"/reports/?month=2026-10&by={by}"

    page, saved = content(viewer, path), content(viewer, f"{path}&export=csv")

    assert 'data-row="' in page
    head = saved.split(" ")[0]
    assert head.count(",") >= 6
    for column in ("down_seconds", "-light_dbm", "customer", "-name", "nonsense"):
        assert 'data-row="' in content(viewer, f"{path}&sort={column}")
    assert viewer.get(f"{path}&export=xlsx").status_code == 200


def test_a_repair_says_what_it_brought_and_opens_to_the_light_before_and_after(viewer: Client, onus: list[Onu]) -> None:
    page = content(viewer, "/reports/?month=2026-10&by=repairs")

    assert "light +4.2 dB since" in page
    plot = page.partition(f'id="row-repair-{onus[2].id}" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "from=2026-09-26" in plot
    assert viewer.get(plot).status_code == 200


def test_every_customer_is_in_the_list_and_in_the_file_of_a_month(
    viewer: Client, onus: list[Onu], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facho.dashboard.shared.table.BATCH", 2)
    monkeypatch.setattr("facho.dashboard.reports.views.ROWS_PER_PAGE", 2)
    front = content(viewer, "/reports/?month=2026-10")
    address = front.partition('id="all-csv" href="')[2].partition('"')[0].replace("&amp;", "&")

    saved, listed = (
        content(viewer, address),
        [content(viewer, f"/reports/?month=2026-10&by=customers&sort=-down_seconds&page={page}") for page in (1, 2)],
    )

    assert [f"{onu.pon_port}/{onu.onu_id}" in saved or onu.serial in saved for onu in onus] == [True] * 3
    shown = [[onu.id for onu in onus if f'id="row-onu-{onu.id}"' in page] for page in listed]
    assert [len(ids) for ids in shown] == [2, 1]
    assert {*shown[0], *shown[1]} == {onu.id for onu in onus}
    # The one that was down is first.
    assert onus[1].id in shown[0]


def test_an_onu_shows_its_months_and_leads_to_their_plots(viewer: Client, onus: list[Onu]) -> None:
    page = content(viewer, f"/onus/{onus[1].id}/")

    row = page.partition('id="month-2026-10"')[2].partition("</tr>")[0]
    assert "96.774" in row
    assert "-28.00" in row
    plot = row.partition('href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "from=2026-10-01" in plot
    assert viewer.get(plot.partition("#")[0]).status_code == 200


def test_a_pdf_is_a_file_of_the_month(viewer: Client, onus: list[Onu]) -> None:
    answer = viewer.get("/reports/pdf/?month=2026-10")

    assert answer["Content-Type"] == "application/pdf"
    assert answer.content.startswith(b"%PDF-")
    assert "facho-2026-10.pdf" in answer["Content-Disposition"]
    assert viewer.get("/reports/pdf/?month=2025-01").status_code == 404


def test_users_of_other_olts_see_nothing_of_it(client: Client, onus: list[Onu]) -> None:
    stranger = make_user(Role.VIEWER)
    Profile.objects.get_or_create(user=stranger)[0].olt_groups.add(OltGroup.objects.create(name="Elsewhere"))
    client.force_login(stranger)

    for by in ("olts", "ports", "zones", "downtime", "interruptions", "light", "repairs"):
        path = f"/reports/?month=2026-10&by={by}&olt={onus[0].olt_id}"
        assert 'data-row="' not in content(client, path)
        assert onus[0].olt.name not in content(client, f"{path}&export=csv")
    assert b"%PDF" in client.get("/reports/pdf/?month=2026-10").content


def test_a_month_is_computed_again_for_operators_alone(client: Client, onus: list[Onu]) -> None:
    month = str(Month.of(timezone.now(), zone()))
    client.force_login(make_user(Role.VIEWER))
    refused = client.post("/reports/renew/", {"month": month})
    client.force_login(make_user(Role.OPERATOR))

    taken = client.post("/reports/renew/", {"month": month})

    assert (refused.status_code, taken.status_code) == (403, 302)
    assert MonthRun.objects.filter(wanted_at__isnull=False).count() == 1
    compute_some(timezone.now())
    assert MonthRun.objects.filter(wanted_at__isnull=False).count() == 0
    assert client.post("/reports/renew/", {"month": "2019-01"}).status_code == 404
    assert client.post("/reports/renew/", {"month": "x"}).status_code == 404


def test_before_any_month_is_computed_the_page_says_so(viewer: Client) -> None:
    assert "not computed yet" in content(viewer, "/reports/")


def test_a_page_costs_the_same_queries_whatever_its_size(
    viewer: Client, onus: list[Onu], django_assert_max_num_queries: Callable[..., object]
) -> None:
    for by in ("olts", "ports", "downtime", "repairs", "customers"):
        with django_assert_max_num_queries(20):  # type: ignore[attr-defined]
            viewer.get(f"/reports/?month=2026-10&by={by}")

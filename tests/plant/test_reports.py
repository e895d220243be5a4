"""The report of a month: sums that hold together, the worst, repairs; and the same as PDF, read back."""

import io
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.utils import translation
from pypdf import PdfReader

from facho.accounts.scope import NOTHING, OltScope
from facho.hosts.models import OltGroup, Pause
from facho.onus.models import Onu, OnuCustomer, Outage
from facho.onus.words import OutageCauses, OutageScopes
from facho.plant.models import AttachmentSources, Box, OnuAttachment, Zone
from facho.plant.months import compute_month
from facho.plant.report import (
    WORST,
    ReportQuestion,
    load_histogram,
    load_longest_down,
    load_most_interrupted,
    load_olts,
    load_onus,
    load_ports,
    load_repairs,
    load_summary,
    load_weakest,
    load_zones,
    shape_onus,
)
from facho.plant.report_pdf import duration, load_report, printable, write_pdf
from history_world import make_onus, make_ports
from month_world import AFTERWARDS, OCTOBER, START, Story, day, down, steady, write_history

pytestmark = pytest.mark.django_db
HOUR, DAY, MONTH = 3_600, 86_400, 31 * 86_400
HOSTILE = "Ñandú ção \x00\x1b[2J \u202eevil\u202c 💥 日本 (Parenthesis) \\ " + "long " * 100


@pytest.fixture(autouse=True)
def long_kept_samples(settings: LazySettings) -> None:
    settings.FACHO_HISTORY_DAYS = 40


def month_of(*stories: Story, ports: int = 1) -> tuple[ReportQuestion, list[Onu]]:
    """So many ports of one OLT with these ONUs each, and October computed."""
    onus: list[Onu] = []
    for port in make_ports(ports):
        its = make_onus(port, len(stories), now=START - timedelta(days=90))
        write_history(its, stories)
        onus += its
    return ReportQuestion(compute_month(OCTOBER, AFTERWARDS)), onus


def repaired(at_day: int, db: float) -> Story:
    return lambda at: (True, (-25.0 + db if at >= day(at_day) else -25.0) + 0.03 * (at.hour % 3))


def pages_of(question: ReportQuestion, installation: str = "Fibra Ñandú") -> list[str]:
    content = write_pdf(load_report(question), installation=installation, about="")
    return [" ".join(page.extract_text().split()) for page in PdfReader(io.BytesIO(content)).pages]


def test_olts_ports_and_zones_are_sums_of_their_customers() -> None:
    question, onus = month_of(steady(-20), down(steady(-24), day(3), day(4)), ports=2)
    zone = Zone.objects.create(name="Centro")
    box = Box.objects.create(name="CTO 1", zone=zone)
    OnuAttachment.objects.create(onu=onus[1], box=box, source=AttachmentSources.HAND)

    summary = load_summary(question)

    assert (summary.onus, summary.interruptions, summary.onus_without_interruption) == (4, 2, 2)
    assert (summary.times.up, summary.times.down) == (4 * MONTH - 2 * DAY, 2 * DAY)
    [olt] = load_olts(question)
    assert (olt.times, olt.onus, olt.light_dbm) == (summary.times, 4, -22.0)
    ports = load_ports(question)
    assert [port.place for port in ports] == [(0, 1, 0), (0, 1, 1)]
    assert sum(port.times.up for port in ports) == summary.times.up
    named, without = load_zones(question)
    assert (named.name, named.onus, named.times.down) == ("Centro", 1, DAY)
    assert (without.id, without.onus) == (0, 3)
    assert load_summary(ReportQuestion(question.run, zone_id=zone.id)).onus == 1
    assert load_histogram(question) == [(-24, 2), (-23, 0), (-22, 0), (-21, 0), (-20, 2)]


def test_the_worst_are_listed_by_time_by_count_and_by_light() -> None:
    cut = down(down(down(steady(-20), day(2), day(2, 2)), day(4), day(4, 2)), day(6), day(6, 2))
    question, (well, often, long, dark) = month_of(steady(-20), cut, down(steady(-21), day(10), day(12)), steady(-28.4))

    assert [row.id for row in load_longest_down(question)] == [long.id, often.id]
    assert [(row.id, row.interruptions) for row in load_most_interrupted(question)] == [(often.id, 3), (long.id, 1)]
    assert [(row.id, row.light_dbm, row.weak_days) for row in load_weakest(question)] == [(dark.id, -28.4, 31)]
    assert load_longest_down(question)[0].times.availability == 93.548
    assert [row.id for row in shape_onus(load_onus(question))] == [well.id, often.id, long.id, dark.id]


def test_of_more_than_fifty_bad_customers_exactly_the_worst_fifty_are_listed() -> None:
    stories = [
        down(steady(-27.5 - 0.05 * number), day(3), day(3) + timedelta(hours=1 + number)) for number in range(WORST + 4)
    ]
    question, onus = month_of(*stories)

    worst = [load(question) for load in (load_longest_down, load_most_interrupted, load_weakest)]

    assert WORST == 50
    expected = [onu.id for onu in onus[::-1][:WORST]]
    assert [[row.id for row in rows] for rows in worst] == [expected] * 3


def test_a_repair_is_of_one_customer_or_of_all_that_share_it() -> None:
    question, (alone, *others) = month_of(repaired(3, 4.2), repaired(9, 3.1), repaired(9, 3.0), repaired(9, 3.2))

    shared, single = load_repairs(question)

    assert (shared.onus, shared.gain_db) == (tuple(onu.id for onu in others), pytest.approx(3.1, abs=0.05))
    assert (single.id, single.on.day, single.gain_db) == (alone.id, 3, pytest.approx(4.2, abs=0.05))


def test_outages_of_port_card_and_olt_at_once_count_once_and_without_maintenance() -> None:
    question, (onu, _other) = month_of(steady(-20), ports=2)
    common = {"olt": onu.olt, "affected": 9, "down": 0, "cause": OutageCauses.FIBRE}
    for scope, slot, start, end in (
        (OutageScopes.PON, 1, day(2), day(2, 6)),
        (OutageScopes.CARD, 1, day(2, 4), day(2, 8)),
        (OutageScopes.OLT, 0, START - timedelta(days=2), day(1, 3)),
    ):
        Outage.objects.create(scope=scope, slot=slot, started_at=start, resumed_at=start, ended_at=end, **common)
    Pause.objects.create(olt=onu.olt, starts_at=day(2, 7), ends_at=day(2, 9))

    first, second = load_ports(question)

    assert (first.outages, first.outage_seconds) == (3, 10 * HOUR)
    assert (second.outages, second.outage_seconds) == (2, 6 * HOUR)
    assert load_olts(question)[0].outage_seconds == 10 * HOUR


def test_an_outage_that_is_still_open_lasts_to_the_end_of_what_was_computed() -> None:
    question, (onu,) = month_of(steady(-20))
    common = {"olt": onu.olt, "affected": 9, "down": 9, "cause": OutageCauses.OLT, "scope": OutageScopes.OLT}
    broken = [[day(31, 6).isoformat(), day(31, 18).isoformat()]]
    Outage.objects.create(started_at=day(31), resumed_at=day(31, 18), breaks=broken, **common)

    assert load_ports(question)[0].outage_seconds == 12 * HOUR


def test_a_scope_sees_its_own_olts_alone() -> None:
    question, (onu,) = month_of(down(steady(-28), day(3), day(4)))
    group = OltGroup.objects.create(name="North")

    for scope in (NOTHING, OltScope(frozenset({group.id}))):
        hidden = ReportQuestion(question.run, scope)
        assert load_summary(hidden).onus == 0
        lists = (load_olts, load_ports, load_zones, load_longest_down, load_weakest, load_repairs, load_histogram)
        assert [load(hidden) for load in lists] == [[]] * len(lists)  # type: ignore[operator]
        assert load_onus(hidden).count() == 0
    onu.olt.group = group
    onu.olt.save()
    assert load_summary(ReportQuestion(question.run, OltScope(frozenset({group.id})))).onus == 1


def test_a_pdf_has_every_table_its_pages_and_the_names_of_customers() -> None:
    question, onus = month_of(repaired(3, 4.2), down(steady(-28), day(3), day(4)))
    OnuCustomer.objects.create(onu=onus[1], label="José Muñoz Conceição")

    text = " ".join(pages_of(question))

    for words in (
        "Report of October 2026",
        "Fibra Ñandú",
        "José Muñoz Conceição",
        "light +4.2 dB since",
        "Page 1 of 1",
    ):
        assert words in text
    assert "Availability 98.387 %" in text or "98.387 % Availability" in text


def test_a_pdf_in_spanish_has_its_letters() -> None:
    question, _onus = month_of(down(steady(-28), day(3), day(4)))

    with translation.override("es"):
        text = " ".join(pages_of(question))

    assert "octubre de 2026" in text
    assert "Página 1 de" in text
    assert "Clientes con más tiempo sin servicio" in text


def test_headings_of_a_table_are_repeated_on_each_page() -> None:
    question, _onus = month_of(*[down(steady(-20 - number / 10), day(3), day(4)) for number in range(60)])

    pages = pages_of(question)

    assert len(pages) >= 3
    assert all(f"Page {number} of {len(pages)}" in page for number, page in enumerate(pages, 1))
    assert all("OLT" in page and "Port" in page for page in pages[1:])


def test_the_same_data_gives_the_same_bytes() -> None:
    data = load_report(month_of(repaired(3, 4.2))[0])

    assert write_pdf(data, installation="x", about="") == write_pdf(data, installation="x", about="")


def test_hostile_names_neither_break_the_pdf_nor_leave_their_cell() -> None:
    question, onus = month_of(down(steady(-28), day(3), day(4)))
    Onu.objects.update(description=HOSTILE.replace("\x00", "")[:255], serial="﷽" * 8)
    OnuCustomer.objects.create(onu=onus[0], label=HOSTILE.replace("\x00", "")[:120])

    text = " ".join(pages_of(question, HOSTILE))

    assert "Ñandú ção [2J evil" in text
    assert not {"\x1b", "\u202e", "💥"} & set(text)
    assert "…" in text


def test_an_empty_month_has_a_pdf_too() -> None:
    question, _onus = month_of(steady(-20))
    question = ReportQuestion(question.run, NOTHING)

    assert "Availability" in " ".join(pages_of(question))


@pytest.mark.parametrize(
    ("given", "shown"),
    [("a\tb\n", "a b"), ("\u202eabc", "abc"), ("€ ñ ã – …", "€ ñ ã – …"), ("e\u0301", "é"), ("日", "?")],  # noqa: RUF001
)
def test_only_letters_of_the_font_are_printed(given: str, shown: str) -> None:
    assert printable(given) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0 s"), (40, "1 min"), (300, "5 min"), (3_660, "1 h 01 min"), (26 * HOUR, "1 d 2 h")]
)
def test_lengths_of_time_are_short(seconds: int, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_report_costs_the_same_queries_whatever_its_size(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    question, _onus = month_of(repaired(3, 4.2), down(steady(-28), day(3), day(4)), ports=3)

    with django_assert_num_queries(22):
        load_report(question)

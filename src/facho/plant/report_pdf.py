"""Writes the report of a month as PDF, A4, in the active language; the same data gives the same bytes.

Its font is one of those that every reader has, with the letters of Western Europe and the Americas. Other letters of
devices and people become question marks.
"""

import io
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.utils.formats import date_format, number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from reportlab.lib.colors import Color, HexColor
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from facho.plant.report import (
    WORST,
    ReportGroup,
    ReportOnu,
    ReportQuestion,
    ReportRepair,
    ReportSummary,
    ReportTimes,
    load_histogram,
    load_longest_down,
    load_most_interrupted,
    load_olts,
    load_ports,
    load_repairs,
    load_summary,
    load_weakest,
    load_zones,
)

Row = TypeVar("Row")
WIDTH, HEIGHT, MARGIN = 595.0, 842.0, 42.0
INSIDE = WIDTH - 2 * MARGIN
PLAIN, BOLD = "Helvetica", "Helvetica-Bold"
LINE, SMALL = 13.0, 7.5
INK, GREY, RULE, BAND = HexColor(0x1B2430), HexColor(0x5B6672), HexColor(0xC9D0D8), HexColor(0xEEF1F5)
UP, DOWN, UNKNOWN, PLANNED = HexColor(0x2F9E62), HexColor(0xC8372D), HexColor(0xB4BCC6), HexColor(0x4C78C8)
WEAK = HexColor(0xD98A1F)
# Longer names are cut anyway; this bounds the work on hostile ones.
MAX_LETTERS = 120
_WEAKEST_DBM = -27


@dataclass(frozen=True, slots=True)
class PdfStyle:
    font: str = PLAIN
    size: float = SMALL
    colour: Color = INK


FAINT = PdfStyle(colour=GREY)


def printable(text: str) -> str:
    """Keep what the font has; control characters and marks of direction become spaces, other letters question marks."""
    cut = unicodedata.normalize("NFC", text[:MAX_LETTERS])
    kept = "".join(" " if unicodedata.category(letter)[0] == "C" else letter for letter in cut)
    return " ".join(kept.encode("cp1252", "replace").decode("cp1252").split())


def fitted(text: str, width: float, style: PdfStyle) -> str:
    """Cut a text so that it fits, with an ellipsis."""
    clean = printable(text)
    if stringWidth(clean, style.font, style.size) <= width:
        return clean
    while clean and stringWidth(f"{clean}…", style.font, style.size) > width:
        clean = clean[:-1]
    return f"{clean.rstrip()}…"


def duration(seconds: float) -> str:
    """Write a length of time with signs that all languages share."""
    minutes = round(seconds / 60)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60:02} min" if hours else f"{minutes} min" if minutes else f"{round(seconds)} s"


def percent(value: float | None) -> str:
    return "—" if value is None else f"{number_format(value, 3)} %"


def dbm(value: float | None) -> str:
    return "—" if value is None else number_format(value, 2)


@dataclass(frozen=True, slots=True)
class PdfColumn:
    """A column: its share of the width, its title, and what is written in it; numbers stand at the right."""

    title: str
    share: float
    text: Callable[[Any], str]
    is_number: bool = False


class ReportSheet:
    """Pages that fill from above; each has a head and, if it is known, the number of all pages."""

    def __init__(self, out: io.BytesIO, title: str, pages: int) -> None:
        self.canvas = Canvas(out, pagesize=(WIDTH, HEIGHT), invariant=1, pageCompression=1)
        self.canvas.setTitle(printable(title))
        self.canvas.setAuthor("Facho")
        self.title, self.pages, self.number = title, pages, 0
        self.y = 0.0
        self.turn()

    def turn(self) -> None:
        if self.number:
            self.canvas.showPage()
        self.number += 1
        self.y = HEIGHT - MARGIN
        self.write(self.title, MARGIN, 24, FAINT, width=INSIDE - 80)
        page = _("Page %(number)s of %(pages)s") % {"number": self.number, "pages": self.pages}
        self.write(page, WIDTH - MARGIN, 24, FAINT, is_right=True)

    def close(self) -> None:
        self.canvas.save()

    def room(self, height: float) -> bool:
        return self.y - height >= MARGIN

    def write(
        self, text: str, x: float, y: float, style: PdfStyle, *, width: float = INSIDE, is_right: bool = False
    ) -> None:
        self.canvas.setFillColor(style.colour)
        self.canvas.setFont(style.font, style.size)
        draw = self.canvas.drawRightString if is_right else self.canvas.drawString
        draw(x, y, fitted(text, width, style))

    def line(self, text: str, style: PdfStyle) -> None:
        if not self.room(style.size + 5):
            self.turn()
        self.y -= style.size + 5
        self.write(text, MARGIN, self.y, style)

    def box(self, x: float, y: float, width: float, height: float, colour: Color) -> None:
        self.canvas.setFillColor(colour)
        self.canvas.rect(x, y, width, height, stroke=0, fill=1)

    def heading(self, text: str, *, follows: float = 3 * LINE) -> None:
        """Write a heading; what follows it must fit on the same page."""
        if not self.room(30 + follows):
            self.turn()
        self.y -= 14
        self.line(text, PdfStyle(BOLD, 11))
        self.y -= 4

    def table(self, columns: Sequence[PdfColumn], rows: Iterable[Any]) -> None:
        """Write rows; each page begins with the titles again."""
        self._titles(columns)
        for number, row in enumerate(rows):
            if not self.room(LINE):
                self.turn()
                self._titles(columns)
            self.y -= LINE
            if number % 2:
                self.box(MARGIN, self.y - 3, INSIDE, LINE, BAND)
            self._cells(columns, [column.text(row) for column in columns], PdfStyle())

    def _titles(self, columns: Sequence[PdfColumn]) -> None:
        self.y -= LINE
        self._cells(columns, [column.title for column in columns], PdfStyle(BOLD, colour=GREY))
        self.canvas.setStrokeColor(RULE)
        self.canvas.line(MARGIN, self.y - 3, WIDTH - MARGIN, self.y - 3)

    def _cells(self, columns: Sequence[PdfColumn], texts: Sequence[str], style: PdfStyle) -> None:
        x, whole = MARGIN, sum(column.share for column in columns)
        for column, text in zip(columns, texts, strict=True):
            width = INSIDE * column.share / whole
            at = x + width - 3 if column.is_number else x + 3
            self.write(text, at, self.y, style, width=width - 6, is_right=column.is_number)
            x += width


@dataclass(frozen=True, slots=True)
class ReportData:
    question: ReportQuestion
    summary: ReportSummary
    histogram: list[tuple[int, int]]
    olts: list[ReportGroup]
    ports: list[ReportGroup]
    zones: list[ReportGroup]
    down: list[ReportOnu]
    interrupted: list[ReportOnu]
    weak: list[ReportOnu]
    repairs: list[ReportRepair]


def load_report(question: ReportQuestion) -> ReportData:
    """Load a whole report; the same number of queries whatever its size."""
    return ReportData(
        question=question,
        summary=load_summary(question),
        histogram=load_histogram(question),
        olts=load_olts(question),
        ports=load_ports(question),
        zones=load_zones(question),
        down=load_longest_down(question),
        interrupted=load_most_interrupted(question),
        weak=load_weakest(question),
        repairs=load_repairs(question),
    )


def month_words(question: ReportQuestion) -> str:
    return date_format(question.run.month, "YEAR_MONTH_FORMAT")


def report_title(question: ReportQuestion) -> str:
    return _("Report of %(month)s") % {"month": month_words(question)}


def write_pdf(data: ReportData, *, installation: str, about: str) -> bytes:
    """Write the report; `installation` names whose it is, `about` which OLTs are in it."""
    pages = 0
    # Once to count the pages, once with their number on each.
    for _time in range(2):
        out = io.BytesIO()
        sheet = ReportSheet(out, f"{report_title(data.question)} · {installation}", pages)
        _front(sheet, data, installation, about)
        _tables(sheet, data)
        pages = sheet.number
        sheet.close()
    return out.getvalue()


def _moment(moment: datetime) -> str:
    return f"{localtime(moment):%Y-%m-%d %H:%M}"


def coverage_words(question: ReportQuestion) -> list[str]:
    """Say what the figures cover and how they were read."""
    run = question.run
    times = {"start": _moment(question.start), "end": _moment(run.covers_until), "zone": localtime().tzname()}
    lines = [_("From %(start)s to %(end)s (%(zone)s).") % times]
    if run.hourly_until and run.hourly_until > question.start:
        lines.append(_("Until %(time)s from averages by the hour.") % {"time": _moment(run.hourly_until)})
    if run.finished_at is None:
        lines.append(_("Not all ports are computed yet."))
    elif not run.is_final:
        lines.append(_("The month is not over."))
    return lines


def _front(sheet: ReportSheet, data: ReportData, installation: str, about: str) -> None:
    sheet.line(report_title(data.question), PdfStyle(BOLD, 20))
    sheet.y -= 4
    sheet.line(" · ".join(filter(None, (installation, about))), PdfStyle(size=11))
    sheet.line(" ".join(coverage_words(data.question)), PdfStyle(size=9, colour=GREY))
    sheet.y -= 12
    _tiles(sheet, summary_figures(data.summary))
    _share_bar(sheet, data.summary.times)
    note = _("Planned maintenance is neither up nor down. Unknown is time without readings: it does not count as up.")
    sheet.line(note, FAINT)
    if data.histogram:
        _histogram(sheet, data.histogram)


def summary_figures(summary: ReportSummary) -> list[tuple[str, str]]:
    return [
        (_("Availability"), percent(summary.times.availability)),
        (_("ONUs"), number_format(summary.onus, force_grouping=True)),
        (_("Interruptions"), number_format(summary.interruptions, force_grouping=True)),
        (_("ONUs without interruption"), number_format(summary.onus_without_interruption, force_grouping=True)),
        (_("ONUs with weak light"), number_format(summary.weak_onus, force_grouping=True)),
        (_("Repairs that helped"), number_format(summary.repairs, force_grouping=True)),
    ]


def _tiles(sheet: ReportSheet, figures: Sequence[tuple[str, str]]) -> None:
    width, height = INSIDE / 3, 44.0
    for number, (words, figure) in enumerate(figures):
        x = MARGIN + width * (number % 3)
        if number % 3 == 0:
            sheet.y -= height + 6
        sheet.box(x, sheet.y, width - 6, height, BAND)
        sheet.write(figure, x + 8, sheet.y + 23, PdfStyle(BOLD, 14), width=width - 22)
        sheet.write(words, x + 8, sheet.y + 9, PdfStyle(size=8, colour=GREY), width=width - 22)


def _share_bar(sheet: ReportSheet, times: ReportTimes) -> None:
    sheet.y -= 30
    x = MARGIN
    words = (pgettext("state", "up"), pgettext("state", "down"), _("unknown"), _("planned"))
    for share, colour in zip(times.shares, (UP, DOWN, UNKNOWN, PLANNED), strict=True):
        # A share that there is has to be seen.
        width = max(INSIDE * share / 100, 0.8) if share else 0.0
        sheet.box(x, sheet.y, min(width, WIDTH - MARGIN - x), 12, colour)
        x += INSIDE * share / 100
    sheet.y -= 14
    x = MARGIN
    for word, share, colour in zip(words, times.shares, (UP, DOWN, UNKNOWN, PLANNED), strict=True):
        sheet.box(x, sheet.y, 7, 7, colour)
        sheet.write(f"{word} {number_format(share, 2)} %", x + 11, sheet.y, PdfStyle(size=8))
        x += INSIDE / 4


def _histogram(sheet: ReportSheet, steps: Sequence[tuple[int, int]]) -> None:
    sheet.heading(_("ONUs by light, in dBm"), follows=120)
    height, most = 90.0, max(number for _step, number in steps)
    width = min(INSIDE / len(steps), 32.0)
    sheet.y -= height + 14
    for place, (step, number) in enumerate(steps):
        x, tall = MARGIN + place * width, height * number / most
        sheet.box(x + 1, sheet.y, width - 2, max(tall, 0.8 if number else 0), WEAK if step < _WEAKEST_DBM else UP)
        if number:
            label = number_format(number)
            sheet.write(label, x + (width - stringWidth(label, PLAIN, 6)) / 2, sheet.y + tall + 2, PdfStyle(size=6))
        sheet.write(
            str(step), x + (width - stringWidth(str(step), PLAIN, 6)) / 2, sheet.y - 8, PdfStyle(size=6, colour=GREY)
        )
    sheet.y -= 14


def _time_columns() -> list[PdfColumn]:
    return [
        PdfColumn(_("Availability"), 11, lambda row: percent(row.times.availability), is_number=True),
        PdfColumn(pgettext("length", "Down"), 10, lambda row: duration(row.times.down), is_number=True),
        PdfColumn(pgettext("length", "Unknown"), 10, lambda row: duration(row.times.unknown), is_number=True),
        PdfColumn(pgettext("length", "Planned"), 10, lambda row: duration(row.times.planned), is_number=True),
    ]


def _group_columns(name: PdfColumn, *, has_outages: bool) -> list[PdfColumn]:
    outages = [
        PdfColumn(_("Outages"), 9, lambda row: str(row.outages), is_number=True),
        PdfColumn(_("Outage time"), 12, lambda row: duration(row.outage_seconds), is_number=True),
    ]
    return [
        name,
        PdfColumn(_("ONUs"), 7, lambda row: str(row.onus), is_number=True),
        *_time_columns(),
        *(outages if has_outages else ()),
        PdfColumn(_("Light, dBm"), 11, lambda row: dbm(row.light_dbm), is_number=True),
        PdfColumn(pgettext("ONUs", "Weak"), 7, lambda row: str(row.weak_onus), is_number=True),
    ]


def _onu_columns(*figures: PdfColumn) -> list[PdfColumn]:
    return [
        PdfColumn(_("Customer"), 24, lambda row: row.customer or row.description),
        PdfColumn(_("ONU"), 16, lambda row: row.code),
        PdfColumn(_("OLT"), 14, lambda row: row.olt),
        PdfColumn(_("Port"), 8, lambda row: row.port),
        *figures,
    ]


def _tables(sheet: ReportSheet, data: ReportData) -> None:
    sheet.heading(_("OLTs"))
    sheet.table(_group_columns(PdfColumn(_("OLT"), 20, lambda row: row.name), has_outages=True), data.olts)
    if any(group.id for group in data.zones):
        sheet.heading(_("Zones"))
        name = PdfColumn(_("Zone"), 22, lambda row: row.name or _("without a zone"))
        sheet.table(_group_columns(name, has_outages=False), data.zones)
    ports = sorted(data.ports, key=lambda port: (-port.times.down, port.id))[:WORST]
    sheet.heading(_("PON ports, most time down first"))
    place = PdfColumn(_("Port"), 22, lambda row: f"{row.olt} {row.name}")
    sheet.table(_group_columns(place, has_outages=True), ports)
    if len(ports) < len(data.ports):
        sheet.line(_("%(shown)s of %(all)s ports.") % {"shown": len(ports), "all": len(data.ports)}, FAINT)
    interruptions = PdfColumn(_("Interruptions"), 11, lambda row: str(row.interruptions), is_number=True)
    longest = PdfColumn(_("Longest"), 11, lambda row: duration(row.longest_down_seconds), is_number=True)
    light = PdfColumn(_("Light, dBm"), 10, lambda row: dbm(row.light_dbm), is_number=True)
    lowest = PdfColumn(_("Lowest day"), 10, lambda row: dbm(row.lowest_day_dbm), is_number=True)
    days = PdfColumn(_("Weak days"), 10, lambda row: str(row.weak_days), is_number=True)
    availability, down, *_rest = _time_columns()
    for title, columns, rows in (
        (_("Customers longest down"), (availability, down, longest), data.down),
        (_("Customers with most interruptions"), (interruptions, down, longest), data.interrupted),
        (_("Customers with the weakest light"), (light, lowest, days), data.weak),
    ):
        sheet.heading(title)
        if rows:
            sheet.table(_onu_columns(*columns), rows)
        else:
            sheet.line(pgettext("customers", "None."), FAINT)
    _repairs(sheet, data.repairs)


def repair_words(repair: ReportRepair) -> str:
    gain = number_format(repair.gain_db, 1)
    day = date_format(repair.on, "SHORT_DATE_FORMAT")
    if len(repair.onus) == 1:
        return _("light +%(db)s dB since %(day)s") % {"db": gain, "day": day}
    text = ngettext(
        "light +%(db)s dB for %(onus)s ONU since %(day)s",
        "light +%(db)s dB for %(onus)s ONUs since %(day)s",
        len(repair.onus),
    )
    return text % {"db": gain, "onus": len(repair.onus), "day": day}


def _repairs(sheet: ReportSheet, repairs: Sequence[ReportRepair]) -> None:
    sheet.heading(_("Repairs that helped"))
    if not repairs:
        sheet.line(_("No lasting improvement."), FAINT)
        return
    columns = [
        PdfColumn(_("What"), 30, repair_words),
        PdfColumn(_("Customer"), 22, lambda row: row.customer if len(row.onus) == 1 else ""),
        PdfColumn(_("ONU"), 16, lambda row: row.code if len(row.onus) == 1 else ""),
        PdfColumn(_("OLT"), 14, lambda row: row.olt),
        PdfColumn(_("Port"), 8, lambda row: row.port),
        PdfColumn(_("Before, dBm"), 12, lambda row: dbm(row.before_dbm), is_number=True),
        PdfColumn(_("After, dBm"), 12, lambda row: dbm(row.after_dbm), is_number=True),
    ]
    sheet.table(columns, repairs)

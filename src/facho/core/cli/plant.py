"""`facho plant …`: zones, boxes and the ONUs on them, as files; `facho report …`: months, as a table or PDF."""

import sys
from argparse import Namespace
from gettext import gettext as _

from django.conf import settings
from django.utils import timezone
from django.utils.translation import override

from facho.accounts.audit import console
from facho.accounts.scope import EVERYTHING
from facho.alerts.links import load_public_address
from facho.core.cli.output import (
    NOTHING,
    cell,
    file_failures,
    find_olt,
    print_rows,
    problem_line,
    read_csv,
    refused,
)
from facho.core.product import OperatorError
from facho.hosts.inventory import InventoryError, RowVerdict
from facho.plant import report
from facho.plant.files import import_plant, plan_file, write_file
from facho.plant.months import compute_month, is_kept, zone
from facho.plant.report_pdf import load_report, write_pdf
from facho.polling.domain.availability import Month


def import_file(arguments: Namespace) -> int:
    """Import a file of any kind; who is left out is named on standard error. A dry run shows each change."""
    content = read_csv(arguments.file)
    if arguments.dry_run:
        return show_plan(content, arguments)
    try:
        saved = import_plant(content, who=console(), source=str(arguments.file), now=timezone.now())
    except InventoryError as error:
        raise refused(arguments.file, error) from None
    for problem in saved.left_out:
        print(f"facho: {problem_line(arguments.file, problem)}", file=sys.stderr)
    counts = {"written": saved.written, "unchanged": saved.unchanged, "left_out": len(saved.left_out)}
    print(_("%(written)s written, %(unchanged)s unchanged, %(left_out)s left out") % counts)
    return 0


def show_plan(content: bytes, arguments: Namespace) -> int:
    """Print what a file would change, a line each; 1 if it would be refused."""
    plan = plan_file(content, EVERYTHING)
    for row in plan.rows:
        if row.verdict is not RowVerdict.UNCHANGED:
            words = "; ".join(row.in_words)
            print(f"{row.line or NOTHING}  {cell(row.name)}  {row.verdict.label}  {cell(words)}".rstrip())
    counts = {"new": plan.counts[RowVerdict.NEW], "changed": plan.counts[RowVerdict.CHANGED]}
    print(_("%(new)s new, %(changed)s changed; nothing was written") % counts)
    return 0 if plan.is_good else 1


def export_file(arguments: Namespace) -> None:
    for part in write_file(arguments.kind, EVERYTHING):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


_GROUPS = {"olts": report.load_olts, "ports": report.load_ports, "zones": report.load_zones}
_WORST = {
    "downtime": report.load_longest_down,
    "interruptions": report.load_most_interrupted,
    "light": report.load_weakest,
}
_TIMES = (
    "availability",
    "up_seconds",
    "down_seconds",
    "unknown_seconds",
    "planned_seconds",
    "interruptions",
    "light_dbm",
)
GROUP_COLUMNS = ("olt", "name", "onus", *_TIMES, "weak_onus", "outages", "outage_seconds")
ONU_COLUMNS = ("id", "serial", "customer", "olt", "port", *_TIMES, "longest_down_seconds", "weak_days")
REPAIR_COLUMNS = ("day", "onus", "id", "serial", "customer", "olt", "port", "gain_db", "before_dbm", "after_dbm")


def show(arguments: Namespace) -> None:
    question = _question(arguments)
    by, as_json = arguments.by, arguments.as_json
    if by in _GROUPS:
        print_rows(GROUP_COLUMNS, [_group_row(row) for row in _GROUPS[by](question)], as_json=as_json)
    elif by in _WORST:
        print_rows(ONU_COLUMNS, [_onu_row(row) for row in _WORST[by](question)], as_json=as_json)
    else:
        rows = [
            (
                row.on.isoformat(), len(row.onus), row.id, row.code, row.customer, row.olt, row.port, row.gain_db,
                row.before_dbm, row.after_dbm,
            )
            for row in report.load_repairs(question)
        ]  # fmt: skip
        print_rows(REPAIR_COLUMNS, rows, as_json=as_json)


def save_pdf(arguments: Namespace) -> None:
    """Write a PDF in the language that was asked for, else that of the installation."""
    question = _question(arguments)
    with override(arguments.language or settings.LANGUAGE_CODE):
        about = arguments.olt or ""
        installation = load_public_address().partition("://")[2] or "Facho"
        content = write_pdf(load_report(question), installation=installation, about=about)
    with file_failures(arguments.file):
        arguments.file.write_bytes(content)


def compute(arguments: Namespace) -> None:
    now = timezone.now()
    month = _month(arguments)
    if not is_kept(month, now):
        raise OperatorError(_("The history has no averages by the hour of %s: it cannot be computed.") % month)
    run = compute_month(month, now)
    print(_("%(month)s is computed until %(time)s") % {"month": month, "time": run.covers_until.isoformat()})


def _month(arguments: Namespace) -> Month:
    if not arguments.month:
        return Month.of(timezone.now(), zone()).shifted(-1)
    try:
        return Month.parse(arguments.month)
    except ValueError:
        arguments.usage_error(_("--month is a month such as 2026-10"))
        raise


def _question(arguments: Namespace) -> report.ReportQuestion:
    month = _month(arguments)
    run = report.load_run(month)
    if run is None:
        raise OperatorError(_("%(month)s is not computed: `facho report compute --month %(month)s`") % {"month": month})
    return report.ReportQuestion(run, olt_id=find_olt(arguments.olt).id if arguments.olt else None)


def _time_values(row: report.ReportGroup | report.ReportOnu) -> tuple[object, ...]:
    times = row.times
    seconds = (times.up, times.down, times.unknown, times.planned)
    return times.availability, *seconds, row.interruptions, row.light_dbm


def _group_row(row: report.ReportGroup) -> tuple[object, ...]:
    return row.olt, row.name, row.onus, *_time_values(row), row.weak_onus, row.outages, row.outage_seconds


def _onu_row(row: report.ReportOnu) -> tuple[object, ...]:
    who = (row.id, row.code, row.customer or row.description, row.olt, row.port)
    return *who, *_time_values(row), row.longest_down_seconds, row.weak_days

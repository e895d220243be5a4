"""`facho olt …`: the inventory of OLTs."""

import sys
from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from gettext import gettext as _
from pathlib import Path

from django.utils import timezone

from facho.accounts.audit import Action, console, record_each
from facho.core.cli import user
from facho.core.cli.output import cell, file_failure, print_record, print_rows, read_csv, refused, tell_site, write_down
from facho.core.cli.parser import STDOUT
from facho.core.data_folder import write_for_owner
from facho.core.product import OperatorError
from facho.core.wiring import OltBusy, probe_olt
from facho.hosts import csv
from facho.hosts.csv import plan_file, write_entries
from facho.hosts.inventory import InventoryError, Saved, add_olt, export_entries, stored_olts
from facho.hosts.models import Olt
from facho.hosts.olt_entry import SECRET_COLUMNS, OltEntry
from facho.infrastructure.secrets import Secret
from facho.polling.domain.probe_finding import ProbeFinding
from facho.snmp_get.diagnosis_words import diagnose, place_of
from facho.snmp_jobs.models import Workflow
from facho.snmp_jobs.ready_made import apply_ready_made_jobs


def add(arguments: Namespace) -> int:
    def after_save(olt: Olt) -> None:
        _give_jobs(olt, with_jobs=not arguments.no_jobs)
        write_down("ADDED", [olt])

    try:
        olt = add_olt(_entry(arguments), after_save=after_save)
    except InventoryError as error:
        reasons = [problem.reason for problem in error.problems]
        raise OperatorError(*(cell(reason[:1].upper() + reason[1:]) + "." for reason in reasons)) from None
    place = {"name": olt.name, "address": olt.address, "port": olt.port}
    print(_("OLT %(name)s added: %(address)s port %(port)s") % place)
    return 0


def _give_jobs(olt: Olt, *, with_jobs: bool) -> None:
    if with_jobs:
        apply_ready_made_jobs(olt, now=timezone.now())
    else:
        # An OLT with a workflow, even an empty one, gets no jobs when its vendor is recognised later.
        Workflow.objects.get_or_create(olt=olt)


def _entry(arguments: Namespace) -> OltEntry:
    is_v3 = arguments.version == "3"
    community = auth_key = priv_key = ""
    if is_v3:
        wanted = (arguments.auth_protocol, arguments.priv_protocol)
        prompts = (_("Authentication key"), _("Privacy key"))
        if arguments.keys_stdin:
            auth, priv = (user.read_line() if protocol else "" for protocol in wanted)
        elif not any(wanted):
            auth = priv = ""
        elif user.is_interactive():
            auth, priv = (
                user.ask(prompt) if protocol else "" for protocol, prompt in zip(wanted, prompts, strict=True)
            )
        else:
            raise OperatorError(
                _("The SNMPv3 keys are needed: give them with --keys-stdin, or run this in a terminal.")
            )
        auth_key, priv_key = auth, priv
    elif arguments.community_stdin:
        community = user.read_line()
    elif user.is_interactive():
        community = user.ask(_("Community"))
    else:
        raise OperatorError(_("The community is needed: give it with --community-stdin, or run this in a terminal."))
    return OltEntry(
        name=arguments.name,
        host=arguments.host,
        port=str(arguments.port),
        vendor=arguments.vendor,
        version=arguments.version,
        community=Secret(community),
        v3_user=arguments.v3_user,
        v3_auth_protocol=arguments.auth_protocol,
        v3_auth_key=Secret(auth_key),
        v3_priv_protocol=arguments.priv_protocol,
        v3_priv_key=Secret(priv_key),
        poller_group=arguments.poller_group,
    )


@dataclass(frozen=True, slots=True)
class OltListRow:
    name: str
    host: str
    address: str
    port: int
    vendor: str
    version: str
    enabled: bool
    reachability: str
    last_answer_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A row of a file, and what importing it would do."""

    line: int | None
    name: str
    what: str
    details: str


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """What an OLT said of itself; `error` is why it said nothing, or why it will not be polled."""

    olt: str
    answered: bool
    sys_name: str
    sys_descr: str
    sys_object_id: str
    vendor: str
    model: str
    round_trip_ms: float | None
    error: str


def import_file(arguments: Namespace) -> int:
    """Import a CSV file, or show what importing it would do."""
    if arguments.dry_run:
        # Print the table; a file with a bad row fails as importing it would.
        plan = plan_file(read_csv(arguments.file))
        rows = [
            PlanRow(
                row.line,
                row.name,
                row.verdict.value if arguments.as_json else str(row.verdict.label),
                "; ".join(row.in_words),
            )
            for row in plan.rows
        ]
        print_rows(PlanRow, rows, as_json=arguments.as_json)
        return 0 if plan.is_good else 1
    if arguments.as_json:
        arguments.usage_error(_("--json goes with --dry-run"))

    def finish(saved: Saved) -> None:
        changes = (
            (row.olt, Action.ADDED if row.is_new else Action.CHANGED, f"{arguments.file} · {row.planned.audit_words}")
            for row in saved.rows
        )
        record_each(console(), changes)

    try:
        saved = csv.import_file(
            read_csv(arguments.file), after_save=partial(_give_jobs, with_jobs=not arguments.no_jobs), finish=finish
        )
    except InventoryError as error:
        raise refused(arguments.file, error) from None
    print(_("%(added)s OLTs added, %(updated)s updated") % {"added": len(saved.added), "updated": len(saved.updated)})
    return 0


def export(arguments: Namespace) -> int:
    text = write_entries(export_entries())
    if arguments.file == STDOUT:
        sys.stdout.write(text)
        return 0
    try:
        write_for_owner(Path(arguments.file), text)
    except OSError as error:
        raise file_failure(arguments.file, error) from error
    return 0


def list_olts(arguments: Namespace) -> int:
    rows = [
        OltListRow(
            name=olt.name,
            host=olt.host,
            address=olt.address,
            port=olt.port,
            vendor=olt.vendor or "auto",
            version=olt.snmp_version,
            enabled=olt.enabled,
            reachability=olt.reachability,
            last_answer_at=olt.last_answer_at,
        )
        for olt in stored_olts()
    ]
    print_rows(OltListRow, rows, as_json=arguments.as_json)
    return 0


def probe(arguments: Namespace) -> int:
    """Ask one OLT who it is, under its claim like every other packet."""
    olt = Olt.objects.filter(name=arguments.name).defer(*SECRET_COLUMNS).first()
    if olt is None:
        raise OperatorError(_('There is no OLT "%s"; `facho olt list` shows them.') % arguments.name)
    tell_site(arguments.name, olt.poller_group)
    try:
        report = probe_olt(olt.id)
    except OltBusy as error:
        raise OperatorError(_("OLT %s is busy with a long run: try again later.") % arguments.name) from error
    identity = report.identity
    row = ProbeRow(
        olt=arguments.name,
        answered=report.answered,
        sys_name=identity.sys_name if identity else "",
        sys_descr=identity.sys_descr if identity else "",
        sys_object_id=identity.sys_object_id if identity else "",
        vendor=identity.vendor if identity else "",
        model=identity.model if identity else "",
        round_trip_ms=None if report.round_trip_ms is None else round(report.round_trip_ms, 1),
        error=report.failure.message if report.failure else _(report.refusal) if report.refusal else "",
    )
    print_record(row, as_json=arguments.as_json)
    if not row.answered:
        # Why it did not answer, and what to look at, as the guided steps of the pages say it.
        diagnosis = diagnose(report.finding or ProbeFinding.STOPPED, place_of(olt, asked_from=report.asked_from))
        checks = (f"- {check}" for check in diagnosis.checks)
        raise OperatorError(f"OLT {olt.name}: {diagnosis.title}. {diagnosis.meaning}", *checks)
    if row.error:
        raise OperatorError(_("OLT %(name)s is not polled. %(why)s") % {"name": row.olt, "why": row.error})
    if report.finding:
        diagnosis = diagnose(report.finding, place_of(olt, asked_from=report.asked_from))
        for line in (
            f"OLT {olt.name}: {diagnosis.title}. {diagnosis.meaning}",
            *(f"- {check}" for check in diagnosis.checks),
        ):
            print(cell(line), file=sys.stderr)
    return 0

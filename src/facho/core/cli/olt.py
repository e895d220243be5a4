"""`facho olt …`: the inventory of OLTs; `facho pause …`: maintenance, a time without polling that always ends."""

import sys
from argparse import Namespace
from functools import partial
from gettext import gettext as _
from pathlib import Path

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Coalesce, NullIf
from django.utils import timezone

from facho.accounts.audit import Action, console, record_each
from facho.core.cli import output, user
from facho.core.cli.parser import STDOUT
from facho.core.data_folder import write_for_owner
from facho.core.product import OperatorError
from facho.core.wiring import OltBusy, probe_olt
from facho.hosts import csv
from facho.hosts.csv import plan_file, write_entries
from facho.hosts.inventory import InventoryError, Saved, add_olt, export_entries, stored_olts
from facho.hosts.models import Olt
from facho.hosts.olt_entry import OltEntry
from facho.hosts.store import MAX_PAUSE_MINUTES, active_pauses, end_pauses, load_pause, pause, polling_pauses
from facho.infrastructure.secrets import Secret
from facho.polling.domain.execution_state import ProbeFinding
from facho.snmp_get.diagnosis import diagnose, place_of
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import Workflow


def add(arguments: Namespace) -> None:
    def after_save(olt: Olt) -> None:
        _give_jobs(olt, with_jobs=not arguments.no_jobs)
        output.write_down("ADDED", [olt])

    try:
        olt = add_olt(_entry(arguments), after_save=after_save)
    except InventoryError as error:
        reasons = [problem.reason for problem in error.problems]
        raise OperatorError(*(output.cell(reason[:1].upper() + reason[1:]) + "." for reason in reasons)) from None
    place = {"name": olt.name, "address": olt.address, "port": olt.port}
    print(_("OLT %(name)s added: %(address)s port %(port)s") % place)


def _give_jobs(olt: Olt, *, with_jobs: bool) -> None:
    if with_jobs:
        apply_ready_made_jobs(olt, now=timezone.now())
    else:
        # An OLT with a workflow, even an empty one, gets no jobs when its vendor is recognised later.
        Workflow.objects.get_or_create(olt=olt)


def _entry(arguments: Namespace) -> OltEntry:
    community = auth_key = priv_key = ""
    if arguments.version == "3":
        needed = _("The SNMPv3 keys are needed: give them with --keys-stdin, or run this in a terminal.")
        prompts = (_("Authentication key"), _("Privacy key"))
        auth_key, priv_key = (
            _read_secret(prompt, from_stdin=arguments.keys_stdin, otherwise=needed) if protocol else ""
            for protocol, prompt in zip((arguments.auth_protocol, arguments.priv_protocol), prompts, strict=True)
        )
    else:
        needed = _("The community is needed: give it with --community-stdin, or run this in a terminal.")
        community = _read_secret(_("Community"), from_stdin=arguments.community_stdin, otherwise=needed)
    same = ("name", "host", "vendor", "version", "v3_user", "poller_group")
    return OltEntry(
        **{name: getattr(arguments, name) for name in same},
        port=str(arguments.port),
        community=Secret(community),
        v3_auth_protocol=arguments.auth_protocol,
        v3_auth_key=Secret(auth_key),
        v3_priv_protocol=arguments.priv_protocol,
        v3_priv_key=Secret(priv_key),
    )


def _read_secret(prompt: str, *, from_stdin: bool, otherwise: str) -> str:
    if from_stdin:
        return user.read_line()
    if user.is_interactive():
        return user.ask(prompt)
    raise OperatorError(otherwise)


def import_file(arguments: Namespace) -> int:
    if arguments.dry_run:
        # Print the table; a file with a bad row fails as importing it would.
        plan = plan_file(output.read_csv(arguments.file))
        rows = [
            (
                row.line,
                row.name,
                row.verdict.value if arguments.as_json else str(row.verdict.label),
                "; ".join(row.in_words),
            )
            for row in plan.rows
        ]
        output.print_rows(("line", "name", "what", "details"), rows, as_json=arguments.as_json)
        return 0 if plan.is_good else 1
    if arguments.as_json:
        arguments.usage_error(_("--json needs --dry-run"))

    def finish(saved: Saved) -> None:
        changes = (
            (row.olt, Action.ADDED if row.is_new else Action.CHANGED, f"{arguments.file} · {row.planned.audit_words}")
            for row in saved.rows
        )
        record_each(console(), changes)

    try:
        saved = csv.import_file(
            output.read_csv(arguments.file),
            after_save=partial(_give_jobs, with_jobs=not arguments.no_jobs),
            finish=finish,
        )
    except InventoryError as error:
        raise output.refused(arguments.file, error) from None
    print(_("%(added)s OLTs added, %(updated)s updated") % {"added": len(saved.added), "updated": len(saved.updated)})
    return 0


def export(arguments: Namespace) -> None:
    text = write_entries(export_entries())
    if arguments.file == STDOUT:
        sys.stdout.write(text)
        return
    with output.file_failures(arguments.file):
        write_for_owner(Path(arguments.file), text)


def list_olts(arguments: Namespace) -> None:
    columns = ("name", "host", "address", "port", "vendor", "version", "enabled", "reachability", "last_answer_at")
    vendor = Coalesce(NullIf("vendor", Value("")), Value("auto"))
    fields = ("name", "host", "address", "port", vendor, "snmp_version", "enabled", "reachability", "last_answer_at")
    output.print_rows(columns, stored_olts().values_list(*fields), as_json=arguments.as_json)


def probe(arguments: Namespace) -> None:
    """Ask one OLT who it is, under its claim like every other packet."""
    olt = output.find_olt(arguments.name)
    output.warn_of_site(arguments.name, olt.poller_group)
    try:
        report = probe_olt(olt.id)
    except OltBusy as error:
        raise OperatorError(_("OLT %s is busy with a long run: try again later.") % arguments.name) from error
    identity = report.identity
    columns = ("sys_name", "sys_descr", "sys_object_id", "vendor", "model")
    why = report.failure.message if report.failure else _(report.refusal) if report.refusal else ""
    values = {
        "olt": arguments.name,
        "answered": report.answered,
        **{name: getattr(identity, name, "") for name in columns},
        "round_trip_ms": None if report.round_trip_ms is None else round(report.round_trip_ms, 1),
        "error": why,
    }
    output.print_record(values, as_json=arguments.as_json)
    # What is wrong, and what to look at, as the guided steps of the pages say it.
    diagnosis = diagnose(report.finding or ProbeFinding.STOPPED, place_of(olt, asked_from=report.asked_from))
    lines = (
        f"OLT {olt.name}: {diagnosis.title}. {diagnosis.meaning}",
        *(f"- {check}" for check in diagnosis.checks),
    )
    if not report.answered:
        raise OperatorError(*lines)
    if why:
        raise OperatorError(_("OLT %(name)s is not polled. %(why)s") % {"name": olt.name, "why": why})
    for line in lines if report.finding else ():
        print(output.cell(line), file=sys.stderr)


def add_pause(arguments: Namespace) -> None:
    if arguments.minutes > MAX_PAUSE_MINUTES:
        raise OperatorError(_("A pause lasts at most %s minutes; for longer, disable the OLT.") % MAX_PAUSE_MINUTES)
    with transaction.atomic():
        held = pause(_paused(arguments.olt), minutes=arguments.minutes, note=arguments.note, now=timezone.now())
        output.write_down("ADDED", [held])
    print(_("%(what)s paused until %(until)s") % {"what": _what(arguments.olt), "until": output.cell(held.ends_at)})


def list_pauses(arguments: Namespace) -> None:
    rows = polling_pauses().filter(ends_at__gt=timezone.now()).order_by("starts_at", "id")
    fields = rows.values_list("id", "olt__name", "starts_at", "ends_at", "note")
    output.print_rows(("id", "olt", "starts_at", "ends_at", "note"), fields, as_json=arguments.as_json)


def end_pause(arguments: Namespace) -> None:
    """End the pause, and say if something else still pauses the same OLT."""
    olt, now = _paused(arguments.olt), timezone.now()
    with transaction.atomic():
        output.write_down("CHANGED", active_pauses(now).filter(olt=olt), _("ended"))
        was_paused = end_pauses(olt, now=now)
    if not was_paused:
        raise OperatorError(_("%s is not paused; `facho pause list` shows what is.") % _what(arguments.olt))
    print(_("pause of %s ended") % _what(arguments.olt))
    if olt is not None and load_pause(olt.id, now) is not None:
        print(_("everything is paused, so %s stays paused: see `facho pause list`") % _what(arguments.olt))


def _paused(olt: str | None) -> Olt | None:
    return None if olt is None else output.find_olt(olt)


def _what(olt: str | None) -> str:
    return _("everything") if olt is None else _("OLT %s") % olt

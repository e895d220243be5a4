"""`facho vendor check|try`: a definition that is being written; `facho record`: a device as a file to give away."""

import asyncio
import errno
import os
import secrets
import sys
from argparse import Namespace
from dataclasses import asdict, astuple, fields
from gettext import gettext as _
from pathlib import Path

from facho.core import wiring
from facho.core.cli.output import cell, dump, file_failures, print_rows, warn_of_site
from facho.core.cli.snmp import olt_to_ask, stayed_busy
from facho.core.data_folder import write_for_owner
from facho.core.product import OperatorError
from facho.core.wiring import COMMAND_LINE, WAIT_SECONDS, OltBusy, open_parts
from facho.hosts.models import Olt
from facho.polling.vendors.anonymise import RecordingError, read_recording
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.review import Review, review_file
from facho.snmp_get.interactive import MAX_ROWS
from facho.snmp_get.reading import BUDGET_SECONDS
from facho.snmp_get.recording import Recording, RecordingStep
from facho.snmp_get.trial import (
    Trial,
    TrialBounds,
    TrialLine,
    describe_gaps,
    describe_recognition,
    describe_trial,
    try_on_recording,
)

FAULTY = 1


def check(arguments: Namespace) -> int:
    """Print every fault of the file, a line each, or what it leaves out; 0 if the product would load it."""
    review = _review(arguments)
    name, definition = arguments.file.name, review.definition
    if arguments.as_json:
        faults = [{"key": fault.path, "problem": fault.problem} for fault in review.faults]
        dump({"file": name, "faults": faults, "missing": list(review.gaps), "unread": list(review.unread)})
    elif definition is None:
        for fault in review.faults:
            print(cell(fault))
    else:
        words = {"columns": len(definition.columns), "tables": len(definition.tables), "jobs": len(definition.jobs)}
        fine = _("no faults; %(columns)s columns in %(tables)s tables, %(jobs)s jobs") % words
        for line in (fine, *describe_gaps(review)):
            print(cell(f"{name}: {line}"))
    return FAULTY if review.faults else 0


def try_(arguments: Namespace) -> None:
    """Read the OLT with the definition; what is suspicious is printed, and no failure."""
    review = _review(arguments)
    if review.definition is None:
        raise OperatorError(*map(cell, review.faults))
    bounds = TrialBounds(
        min(arguments.rows, MAX_ROWS), min(arguments.live, MAX_ROWS), min(arguments.seconds, BUDGET_SECONDS)
    )
    if arguments.recording:
        _print(_tried_on_recording(arguments, review.definition, bounds), None, review.definition, arguments)
        return
    olt = olt_to_ask(arguments.olt)
    warn_of_site(olt.name, olt.poller_group)
    try:
        trial = asyncio.run(_tried(olt, review.definition, bounds, arguments.wait))
    except OltBusy as error:
        raise stayed_busy(olt.name, arguments.wait) from error
    _print(trial, olt, review.definition, arguments)
    if trial.failure is not None:
        words = {"name": olt.name, "count": len(trial.columns), "reason": cell(trial.failure.message).rstrip(".")}
        raise OperatorError(_("OLT %(name)s answered for %(count)s columns, then: %(reason)s.") % words)


def _tried_on_recording(arguments: Namespace, definition: Definition, bounds: TrialBounds) -> Trial:
    try:
        with file_failures(arguments.recording):
            rows = read_recording(arguments.recording.read_text())
    except (RecordingError, UnicodeDecodeError) as error:
        raise OperatorError(cell(f"{arguments.recording}: {error}")) from error
    return try_on_recording(definition, rows, bounds)


def _print(trial: Trial, olt: Olt | None, definition: Definition, arguments: Namespace) -> None:
    lines = describe_trial(trial)
    unread = len(definition.columns) - len(lines)
    recognition = describe_recognition(definition, olt.sys_object_id, olt.sys_descr, trial) if olt else ""
    if arguments.as_json:
        columns = [asdict(line) for line in lines]
        dump({"olt": olt.name if olt else "", "recognition": recognition, "unread": unread, "columns": columns})
        return
    print_rows([field.name for field in fields(TrialLine)], map(astuple, lines), as_json=False)
    if recognition:
        print(cell(recognition), file=sys.stderr)
    if trial.is_out_of_time:
        text = _("Time is up: %s columns were not read. Hold the OLT longer with --seconds.")
        print(text % unread, file=sys.stderr)


def _review(arguments: Namespace) -> Review:
    if not arguments.file.is_file():
        arguments.usage_error(_("%s is not a file") % arguments.file)
    return review_file(arguments.file)


async def _tried(olt: Olt, definition: Definition, bounds: TrialBounds, wait_seconds: int) -> Trial:
    async with open_parts(COMMAND_LINE) as parts:
        return await wiring.try_definition(parts, olt.id, definition, bounds=bounds, wait_seconds=wait_seconds)


SALT_BYTES = 16


def record(arguments: Namespace) -> None:
    """Record one OLT; a recording that is not complete leaves no file."""
    olt = olt_to_ask(arguments.name)
    path: Path | None = arguments.output
    part = path and _reserve(path)
    warn_of_site(olt.name, olt.poller_group)
    try:
        recording = _recorded(olt, with_live=arguments.with_live)
        if recording.failure is not None:
            words = {"name": olt.name, "reason": cell(recording.failure.message).rstrip(".")}
            raise OperatorError(_("OLT %(name)s was not recorded: %(reason)s. Nothing was written; try again.") % words)
        # The salt is forgotten with this process, so no serial can be found by trying all of them.
        text = recording.text(salt=secrets.token_bytes(SALT_BYTES))
        if path and part:
            with file_failures(path):
                write_for_owner(part, text)
                part.replace(path)
        else:
            sys.stdout.write(text)
    finally:
        if part:
            part.unlink(missing_ok=True)
    if recording.is_cut:
        _print_status(_("The device has more rows than were read; these are enough for a report."))
    _print_status(_("%s lines recorded. Review them before you share the file.") % text.count("\n"))


def _recorded(olt: Olt, *, with_live: bool) -> Recording:
    def show_progress(step: RecordingStep) -> None:
        _print_status(_("%(number)s of %(of)s: %(part)s, %(values)s values") % step._asdict())

    async def run() -> Recording:
        async with open_parts(COMMAND_LINE) as parts:
            return await wiring.record(
                parts, olt.id, progress=show_progress, with_live=with_live, wait_seconds=WAIT_SECONDS
            )

    try:
        return asyncio.run(run())
    except OltBusy as error:
        raise OperatorError(_("OLT %s is busy with a long run: try again later.") % olt.name) from error


def _reserve(path: Path) -> Path:
    """Make a file under another name; a place that cannot be written fails before the OLT is asked."""
    with file_failures(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part = path.with_name(f"{path.name}.part")
        part.touch()
        return part


def _print_status(text: str) -> None:
    print(text, file=sys.stderr)

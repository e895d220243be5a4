"""`facho record`: a device as a file that can be given away, for a vendor definition and its tests."""

import asyncio
import errno
import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from gettext import gettext as _
from pathlib import Path

from facho.core import wiring
from facho.core.cli.output import cell, tell_site
from facho.core.cli.snmp import find_olt
from facho.core.data_folder import write_for_owner
from facho.core.product import OperatorError
from facho.core.wiring import COMMAND_LINE, WAIT_SECONDS, OltBusy, open_parts
from facho.hosts.models import Olt
from facho.snmp_get.recording import Recording, RecordingStep

SALT_BYTES = 16


def record(arguments: Namespace) -> int:
    """Record one OLT; a recording that is not complete leaves no file."""
    olt = find_olt(arguments.name)
    path: Path | None = arguments.output
    part = path and _reserve(path)
    tell_site(olt.name, olt.poller_group)
    try:
        recording = _recorded(olt, with_live=arguments.with_live)
        if recording.failure is not None:
            words = {"name": olt.name, "reason": cell(recording.failure.message).rstrip(".")}
            raise OperatorError(_("OLT %(name)s was not recorded: %(reason)s. Nothing was written; try again.") % words)
        # The salt is forgotten with this process, so no serial can be found by trying all of them.
        text = recording.text(salt=secrets.token_bytes(SALT_BYTES))
        if path and part:
            with _file_failures(path):
                write_for_owner(part, text)
                part.replace(path)
        else:
            sys.stdout.write(text)
    finally:
        if part:
            part.unlink(missing_ok=True)
    if recording.is_cut:
        _tell(_("The device has more than was read; what is there is enough for a report."))
    _tell(_("%s lines recorded. Look through them before you give them away.") % text.count("\n"))
    return 0


def _recorded(olt: Olt, *, with_live: bool) -> Recording:
    def tell(step: RecordingStep) -> None:
        _tell(_("%(number)s of %(of)s: %(part)s, %(values)s values") % step._asdict())

    async def run() -> Recording:
        async with open_parts(COMMAND_LINE) as parts:
            return await wiring.record(parts, olt.id, progress=tell, with_live=with_live, wait_seconds=WAIT_SECONDS)

    try:
        return asyncio.run(run())
    except OltBusy as error:
        raise OperatorError(_("OLT %s is busy with a long run: try again later.") % olt.name) from error


def _reserve(path: Path) -> Path:
    """Make a file under another name; a place that cannot be written fails before the OLT is asked."""
    with _file_failures(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part = path.with_name(f"{path.name}.part")
        part.touch()
        return part


@contextmanager
def _file_failures(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror}") from error


def _tell(text: str) -> None:
    print(text, file=sys.stderr)

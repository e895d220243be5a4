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
from typing import TYPE_CHECKING

from facho.core.cli.arguments import Subparsers, add_command
from facho.core.cli.failure import CliError
from facho.core.cli.output import cell
from facho.core.cli.product import database_command
from facho.core.cli.site import tell_site

if TYPE_CHECKING:
    from facho.hosts.models import Olt
    from facho.snmp_get.recording import Recording, Step

SALT_BYTES = 16


def register(subparsers: Subparsers) -> None:
    """Add `record`."""
    summary = _("record a device without its serials, names and addresses")
    command = add_command(subparsers, "record", summary, record)
    command.add_argument("name", metavar=_("NAME"))
    command.add_argument("--output", metavar=_("FILE"), type=Path, help=_("a .snmprec file (default: standard output)"))
    command.add_argument(
        "--no-live", action="store_false", dest="with_live", help=_("leave out what the OLT has to ask its ONUs for")
    )


@database_command
def record(arguments: Namespace) -> int:
    """Record one OLT; a recording that is not complete leaves no file."""
    olt = _find(arguments.name)
    path: Path | None = arguments.output
    part = path and _reserve(path)
    tell_site(olt.name, olt.poller_group)
    try:
        text = _text(olt, with_live=arguments.with_live)
        if path and part:
            _save(text, part, path)
        else:
            sys.stdout.write(text)
    finally:
        if part:
            part.unlink(missing_ok=True)
    _tell(_("%s lines recorded. Look through them before you give them away.") % text.count("\n"))
    return 0


def _find(name: str) -> "Olt":
    from facho.hosts.models import Olt

    olt = Olt.objects.filter(name=name).only("name", "vendor", "enabled", "poller_group").first()
    if olt is None:
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % name)
    if not olt.enabled:
        raise CliError(_("OLT %s is disabled, so it is not asked anything: enable it first.") % name)
    if not olt.vendor:
        raise CliError(
            _("The vendor of OLT %(name)s is not known yet: run `facho olt probe %(name)s`.") % {"name": name}
        )
    return olt


def _recorded(olt: "Olt", *, with_live: bool) -> "Recording":
    from facho.core.recognition import WAIT_SECONDS
    from facho.core.wiring import COMMAND_LINE, OltBusy, open_parts, record

    async def run() -> "Recording":
        async with open_parts(COMMAND_LINE) as parts:
            return await record(parts, olt.id, progress=_tell_step, with_live=with_live, wait_seconds=WAIT_SECONDS)

    try:
        return asyncio.run(run())
    except OltBusy as error:
        raise CliError(_("OLT %s is busy with a long run: try again later.") % olt.name) from error


def _text(olt: "Olt", *, with_live: bool) -> str:
    recording = _recorded(olt, with_live=with_live)
    if recording.failure is not None:
        words = {"name": olt.name, "reason": cell(recording.failure.message).rstrip(".")}
        raise CliError(_("OLT %(name)s was not recorded: %(reason)s. Nothing was written; try again.") % words)
    # The salt is forgotten with this process, so nobody can find a serial by trying all of them.
    return recording.text(salt=secrets.token_bytes(SALT_BYTES))


def _reserve(path: Path) -> Path:
    """Make a file under another name; a place that cannot be written fails before the OLT is asked."""
    with _file_failures(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part = path.with_name(f"{path.name}.part")
        part.touch()
        return part


def _save(text: str, part: Path, path: Path) -> None:
    with _file_failures(path):
        part.write_text(text, encoding="ascii", newline="\n")
        part.replace(path)


@contextmanager
def _file_failures(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error


def _tell_step(step: "Step") -> None:
    _tell(_("%(number)s of %(of)s: %(part)s, %(values)s values") % step._asdict())


def _tell(text: str) -> None:
    print(text, file=sys.stderr)

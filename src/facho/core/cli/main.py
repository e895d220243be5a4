"""The entry point of `facho`: parses the arguments, calls the command, and tells failures in one line."""

import os
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Sequence
from gettext import gettext as _
from types import TracebackType

from facho.core.cli import (
    backup,
    demo,
    distributed,
    doctor,
    execution,
    node,
    olt,
    onu,
    pause,
    record,
    run,
    simulate,
    snmp,
    token,
    user,
)
from facho.core.cli.failure import CliError
from facho.core.cli.language import use_language
from facho.core.cli.parser import CommandParser
from facho.core.cli.product import Handler
from facho.core.env import read_environment

GROUPS = (demo, run, distributed, simulate, olt, onu, node, execution, pause, snmp, record, user, token, doctor, backup)
FAILED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 failed; the parser exits with 2 on wrong use."""
    use_language(read_environment(os.environ)["FACHO_LANGUAGE"])
    sys.excepthook = tell_unexpected
    arguments = build_parser().parse_args(argv)
    handler: Handler = arguments.handler
    try:
        status = handler(arguments)
        sys.stdout.flush()
    except CliError as error:
        for line in error.lines:
            print(f"facho: {line}", file=sys.stderr)
        _show_traceback(error)
        return FAILED
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        return FAILED
    return status


def build_parser() -> ArgumentParser:
    """Put the commands together; imports no Django and reads no file."""
    parser = CommandParser(
        prog="facho", description=_("Polls GPON OLTs over SNMP, never two operations on one OLT."), allow_abbrev=False
    )
    subparsers = parser.add_subparsers(metavar=_("COMMAND"), required=True)
    for group in GROUPS:
        group.register(subparsers)
    return parser


def tell_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Name a failure that nobody foresaw; its own text is left out, since nobody knows what it holds."""
    print(
        "facho: " + _("unexpected error: %s. Run again with FACHO_LOG_LEVEL=DEBUG to see where.") % kind.__name__,
        file=sys.stderr,
    )
    _show_traceback(error)


def _show_traceback(error: BaseException) -> None:
    if read_environment(os.environ)["FACHO_LOG_LEVEL"] == "DEBUG":
        traceback.print_exception(error, file=sys.stderr)


def _reader_left() -> int:
    """End quietly when the other end of a pipe is closed, as with `facho olt list | head`."""
    # The interpreter flushes once more at its exit, which would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


if __name__ == "__main__":
    sys.exit(main())

"""Small parts from which every command's arguments are built."""

from argparse import Action, ArgumentParser, ArgumentTypeError
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.product import Handler
from facho.core.env import MAX_PORT, split_bind

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[ArgumentParser]
else:
    Subparsers = Action

MAX_WHOLE_NUMBER = 1_000_000
MAX_ROW_NUMBER = 2**63 - 1


def add_group(subparsers: Subparsers, name: str, summary: str) -> Subparsers:
    """Add a word that needs another one after it, such as `olt`."""
    parser = subparsers.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    return parser.add_subparsers(metavar=_("COMMAND"), required=True)


def add_command(subparsers: Subparsers, name: str, summary: str, handler: Handler) -> ArgumentParser:
    """Add a command that `handler` carries out."""
    parser = subparsers.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    parser.set_defaults(handler=handler, usage_error=parser.error)
    return parser


def add_json_flag(parser: ArgumentParser) -> None:
    """Let a command that prints a table print JSON."""
    parser.add_argument("--json", action="store_true", dest="as_json", help=_("print JSON instead of a table"))


def whole_number(text: str) -> int:
    """Read a number from 1; wrong use otherwise."""
    return _number_up_to(MAX_WHOLE_NUMBER, text)


def row_number(text: str) -> int:
    """Read the number of a row of a table that grows; wrong use otherwise."""
    return _number_up_to(MAX_ROW_NUMBER, text)


def bind_address(text: str) -> str:
    """Read HOST:PORT, port 0 for any free one; wrong use otherwise."""
    host_and_port(text)
    return text


def host_and_port(text: str) -> tuple[str, int]:
    """Read HOST:PORT into its parts; wrong use otherwise."""
    try:
        return split_bind(text)
    except ValueError as error:
        raise ArgumentTypeError(
            _("%(text)s is not HOST:PORT, the port being at most %(limit)s") % {"text": repr(text), "limit": MAX_PORT}
        ) from error


def port_number(text: str) -> int:
    """Read a port; wrong use otherwise."""
    return _number_up_to(MAX_PORT, text)


def _number_up_to(limit: int, text: str) -> int:
    # isdecimal alone accepts the digits of every script.
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(limit)) else 0
    if not 1 <= number <= limit:
        raise ArgumentTypeError(
            _("%(text)s is not a whole number from 1 to %(limit)s") % {"text": repr(text), "limit": limit}
        )
    return number

"""Reads secrets from standard input or from a person at a terminal; never from an argument, which others can see."""

import sys
from getpass import getpass
from gettext import gettext as _

from facho.core.cli.failure import CliError

# More than any community, key or password that a device or we accept.
MAX_LINE_BYTES = 4096


def read_line() -> str:
    """Read one line of standard input."""
    line = sys.stdin.buffer.readline(MAX_LINE_BYTES)
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        # The error's own text would hold the secret.
        raise CliError(_("Standard input is not UTF-8 text.")) from None


def is_interactive() -> bool:
    """Tell whether a person can be asked."""
    return sys.stdin.isatty()


def ask(prompt: str) -> str:
    """Ask without showing what is typed."""
    return getpass(f"{prompt}: ")


def ask_twice(prompt: str) -> str:
    """Ask for something new, where a typing error would lock its owner out."""
    first = ask(prompt)
    if ask(_("%s (again)") % prompt) != first:
        raise CliError(_("The two entries differ; nothing was changed."))
    return first

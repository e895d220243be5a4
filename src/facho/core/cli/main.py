"""The entry point of `facho`: parses the arguments, which needs no Django, and runs the command."""

import gc
import gettext
import os
import sys
import traceback
from collections.abc import Sequence
from gettext import gettext as _
from pathlib import Path
from types import TracebackType

from facho.core.cli.parser import build_parser
from facho.core.env import read_environment

# Django reads the same catalogue, since facho.core is one of its apps.
DOMAIN = "django"
LOCALE_FOLDER = Path(__file__).resolve().parents[1] / "locale"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 failed; the parser exits with 2 on wrong use."""
    use_language(read_environment(os.environ)["FACHO_LANGUAGE"])
    sys.excepthook = report_unexpected
    arguments = build_parser().parse_args(argv)
    if arguments.check:
        arguments.check(arguments)
    # It loads Django, which takes longer than any help, and a seventh longer while garbage is collected: there is none.
    gc.disable()
    from facho.core.cli.command import run_command

    return run_command(arguments)


def use_language(code: str) -> None:
    # The only way to choose the language of gettext, and so of argparse; its name for pt-br is pt_BR.
    language, _dash, country = code.partition("-")
    os.environ["LANGUAGE"] = f"{language}_{country.upper()}" if country else code
    gettext.bindtextdomain(DOMAIN, str(LOCALE_FOLDER))
    gettext.textdomain(DOMAIN)


def words_of_argparse() -> list[str]:
    """Name what argparse says in our commands."""
    _ = gettext.gettext
    return [
        _("usage: "),
        _("positional arguments"),
        _("options"),
        _("show this help message and exit"),
        _("%(prog)s: error: %(message)s\n"),
        _("argument %(argument_name)s: %(message)s"),
        _("expected one argument"),
        _("expected at least one argument"),
        _("invalid %(type)s value: %(value)r"),
        _("invalid choice: %(value)r (choose from %(choices)s)"),
        _("not allowed with argument %s"),
        _("one of the arguments %s is required"),
        _("the following arguments are required: %s"),
        _("unrecognized arguments: %s"),
    ]


def report_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Name a failure that was not foreseen; its own text is left out, since it may hold a secret."""
    print(
        "facho: " + _("unexpected error: %s. Run again with FACHO_LOG_LEVEL=DEBUG to see where.") % kind.__name__,
        file=sys.stderr,
    )
    if read_environment(os.environ)["FACHO_LOG_LEVEL"] == "DEBUG":
        traceback.print_exception(error, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

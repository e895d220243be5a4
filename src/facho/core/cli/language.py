"""Makes the standard library's gettext speak the operator's language, so that help needs no Django.

argparse takes its own words from there too; its msgids stand here, so that extraction finds them.
"""

import gettext
import os
from pathlib import Path

# Django reads the same catalogue, since facho.core is one of its apps.
DOMAIN = "django"
LOCALE_FOLDER = Path(__file__).resolve().parents[1] / "locale"


def use_language(code: str) -> None:
    """Let gettext answer in this language from now on."""
    # The one way to tell gettext, and so argparse, which language is meant.
    os.environ["LANGUAGE"] = code
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

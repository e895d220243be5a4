"""`facho doctor`: looks at the installation and says what to do."""

from argparse import Namespace
from gettext import gettext as _

from facho.core.cli.arguments import Subparsers, add_command, add_json_flag
from facho.core.cli.output import cell, print_json
from facho.core.cli.product import set_up_django

VERDICT_WIDTH = len("warning")


def register(subparsers: Subparsers) -> None:
    """Add `doctor`."""
    add_json_flag(add_command(subparsers, "doctor", _("check the installation and say what to do"), examine))


def examine(arguments: Namespace) -> int:
    """Print one line for each finding; fail when one is an error."""
    set_up_django()
    from django.utils import timezone

    from facho.core import doctor
    from facho.core.findings import Verdict

    findings = list(doctor.examine(timezone.now()))
    if arguments.as_json:
        print_json(findings)
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{finding.verdict:<{VERDICT_WIDTH}}  {finding.name:<{width}}  {cell(finding.text)}")
    return int(any(finding.verdict is Verdict.ERROR for finding in findings))

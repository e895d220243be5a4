"""What a command says before it asks an OLT of a site: commands ask from the machine on which they run."""

import sys
from gettext import gettext as _

from facho.core.cli.output import cell


def tell_site(name: str, group: str) -> None:
    """Say, where workers of a group poll the OLT, that this machine may not reach it."""
    from django.conf import settings

    from facho.core.env import Mode

    if group and settings.FACHO_MODE is Mode.DISTRIBUTED:
        text = _(
            "OLT %(name)s belongs to the poller group %(group)s: this machine asks it directly and may not reach it;"
            " if it does not answer, run the command on a machine of that group."
        )
        print(cell(text % {"name": name, "group": group}), file=sys.stderr)

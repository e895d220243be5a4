"""Tells wrong use in one line like every other failure; the whole usage is what `--help` prints."""

from argparse import ArgumentParser
from gettext import gettext as _
from typing import NoReturn

WRONG_USE = 2


class CommandParser(ArgumentParser):
    """The parser of `facho` and of each of its commands, which argparse makes of the same class."""

    def error(self, message: str) -> NoReturn:
        """End with 2, and name the fault and where the usage stands."""
        told = f"{message} ({_('usage: ')}{self.prog} --help)"
        self.exit(WRONG_USE, _("%(prog)s: error: %(message)s\n") % {"prog": self.prog, "message": told})

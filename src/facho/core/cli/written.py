"""Writes down what a command changed, in the name of the console: who sits there, only the machine knows."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from django.db.models import Model


def write_down(done: Literal["ADDED", "CHANGED", "DELETED"], rows: "Iterable[Model]", message: str = "") -> None:
    """Add an entry for each row to the audit; call it in the transaction of the change."""
    from facho.accounts.audit import Action, console, record

    who = console()
    for row in rows:
        record(who, row, Action[done], message)

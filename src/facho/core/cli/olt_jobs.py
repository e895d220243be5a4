"""Gives an OLT that comes into the inventory its vendor's ready-made jobs, or notes that it shall have none."""

from argparse import ArgumentParser, Namespace
from gettext import gettext as _
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from facho.hosts.inventory import AfterSave
    from facho.hosts.models import Olt


def add_jobs_flag(parser: ArgumentParser) -> None:
    """Let a command leave the jobs out."""
    parser.add_argument("--no-jobs", action="store_true", help=_("leave out the vendor's ready-made jobs"))


def give_jobs(arguments: Namespace) -> "AfterSave":
    """Return what is to happen with an OLT once it is saved."""
    return _leave_empty if arguments.no_jobs else _apply


def _apply(olt: "Olt") -> None:
    from django.utils import timezone

    from facho.snmp_jobs.ready_made import apply_ready_made_jobs

    apply_ready_made_jobs(olt, now=timezone.now())


def _leave_empty(olt: "Olt") -> None:
    """An OLT with a workflow, even an empty one, gets no jobs when its vendor is recognised later."""
    from facho.snmp_jobs.models import Workflow

    Workflow.objects.get_or_create(olt=olt)

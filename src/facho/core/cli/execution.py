"""`facho execution …`: what runs or waits to go on, and ending it."""

from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _

from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag, row_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import print_rows
from facho.core.cli.product import database_command
from facho.core.cli.written import write_down


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """An execution that is not over; `resumes` is when one that waits goes on."""

    id: int
    olt: str
    task: str
    origin: str
    status: str
    attempt: int
    poller: int | None
    started: datetime | None
    resumes: datetime | None


def register(subparsers: Subparsers) -> None:
    """Add `execution` with its commands."""
    executions = add_group(subparsers, "execution", _("executions: the runs of nodes"))
    add_json_flag(add_command(executions, "list", _("list what runs or waits to go on"), list_executions))
    command = add_command(executions, "cancel", _("end a run before its next packet"), cancel)
    command.add_argument("execution", metavar=_("NUMBER"), type=row_number, help=_("number of the execution"))


@database_command
def list_executions(arguments: Namespace) -> int:
    """List the executions that are not over."""
    from facho.executions.models import Execution

    fields = ("id", "olt__name", "task_type", "origin", "status", "attempt", "poller_id", "started_at", "resume_at")
    unfinished = Execution.objects.filter(finished_at__isnull=True).order_by("id").values_list(*fields)
    print_rows(ExecutionRow, [ExecutionRow(*row) for row in unfinished], as_json=arguments.as_json)
    return 0


@database_command
def cancel(arguments: Namespace) -> int:
    """Ask one execution to end; the rest of its chain is skipped."""
    from django.db import transaction
    from django.utils import timezone

    from facho.executions.models import Execution
    from facho.executions.waiting import cancel

    number = arguments.execution
    execution = Execution.objects.only("olt_id", "task_type").filter(id=number).first()
    if execution is None:
        raise CliError(_("There is no execution %s; `facho execution list` shows what runs.") % number)
    with transaction.atomic():
        if not cancel(number, now=timezone.now()):
            raise CliError(_("Execution %s is over already.") % number)
        write_down("CHANGED", [execution], _("cancelled"))
    print(_("execution %s ends before its next packet") % number)
    return 0

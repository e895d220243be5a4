"""`facho execution …`: lists and ends what runs or waits to continue."""

from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _

from django.db import transaction
from django.utils import timezone

from facho.core.cli.output import print_rows, write_down
from facho.core.product import OperatorError
from facho.executions import store
from facho.executions.models import Execution


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """An execution that is not over; `resumes` is when a waiting one continues."""

    id: int
    olt: str
    task: str
    origin: str
    status: str
    attempt: int
    poller: int | None
    started: datetime | None
    resumes: datetime | None


def list_executions(arguments: Namespace) -> int:
    fields = ("id", "olt__name", "task_type", "origin", "status", "attempt", "poller_id", "started_at", "resume_at")
    unfinished = Execution.objects.filter(finished_at__isnull=True).order_by("id").values_list(*fields)
    print_rows(ExecutionRow, [ExecutionRow(*row) for row in unfinished], as_json=arguments.as_json)
    return 0


def cancel(arguments: Namespace) -> int:
    """Ask one execution to end; the rest of its chain is skipped."""
    number = arguments.execution
    execution = Execution.objects.only("olt_id", "task_type").filter(id=number).first()
    if execution is None:
        raise OperatorError(_("There is no execution %s; `facho execution list` shows what runs.") % number)
    with transaction.atomic():
        if not store.cancel(number, now=timezone.now()):
            raise OperatorError(_("Execution %s is over already.") % number)
        write_down("CHANGED", [execution], _("cancelled"))
    print(_("execution %s ends before its next packet") % number)
    return 0

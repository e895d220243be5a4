"""The last runs of an OLT: each master with the chain that followed it, in order."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from facho.executions.failure_words import FAILURES_IN_SHORT
from facho.executions.models import Execution, ExecutionStates, Origin


@dataclass(frozen=True, slots=True)
class RunStep:
    """One execution of a group."""

    id: int
    name: str
    state: str
    state_words: str
    seconds: float
    attempt: int
    why: str
    error: str


@dataclass(frozen=True, slots=True)
class RunGroup:
    """A master's run and its chain under one poller."""

    created_at: datetime
    poller_id: int | None
    origin: str
    is_scheduled: bool
    steps: list[RunStep]

    @property
    def seconds(self) -> float:
        """How long they held the OLT together."""
        return sum(step.seconds for step in self.steps)


_COLUMNS = (
    "status",
    "task_type",
    "origin",
    "attempt",
    "poller_id",
    "master_execution_id",
    "created_at",
    "duration_ms",
    "failure_kind",
    "error",
    "node__job__name",
)


def load_run_groups(olt_id: int, count: int) -> list[RunGroup]:
    """Load the last `count` runs of masters with their chains, the latest first; two queries."""
    runs = Execution.objects.select_related("node__job").only(*_COLUMNS)
    masters = list(runs.filter(olt_id=olt_id, master_execution__isnull=True).order_by("-created_at", "-id")[:count])
    members: dict[int | None, list[Execution]] = defaultdict(list)
    ids = [master.id for master in masters]
    for member in runs.filter(master_execution_id__in=ids).order_by("chain_position", "id"):
        members[member.master_execution_id].append(member)
    return [_group(master, members[master.id]) for master in masters]


def _group(master: Execution, members: list[Execution]) -> RunGroup:
    return RunGroup(
        created_at=master.created_at,
        poller_id=master.poller_id,
        origin=str(Origin(master.origin).label),
        is_scheduled=master.origin == Origin.SCHEDULE,
        steps=[_step(run) for run in (master, *members)],
    )


def _step(run: Execution) -> RunStep:
    return RunStep(
        id=run.id,
        name=run.node.job.name if run.node else run.task_type,
        state=run.status,
        state_words=str(ExecutionStates(run.status).label),
        seconds=run.duration_ms / 1000,
        attempt=run.attempt,
        why=str(FAILURES_IN_SHORT.get(run.failure_kind, run.failure_kind)),
        error=run.error,
    )

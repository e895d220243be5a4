"""Puts an OLT's work into the values that prediction, packing and feasibility take."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from facho.execution_coordinator.durations import Length
from facho.execution_coordinator.state import OltRow, TaskRow
from facho.executions.models import Execution
from facho.polling.domain.execution_state import ACTIVE
from facho.polling.domain.feasibility import Need
from facho.polling.domain.packing import Load
from facho.polling.domain.prediction import Going, Master, Member
from facho.polling.domain.task_type import RANK, QueryType

_UNKNOWN = Length()


@dataclass(frozen=True, slots=True)
class Composite:
    """A master as its row tells, its chain in order, and how long each of them takes."""

    task: TaskRow
    chain: tuple[TaskRow, ...]
    lengths: Mapping[int, Length]

    @property
    def length(self) -> Length:
        """How long the master alone takes."""
        return self.lengths.get(self.task.node_id, _UNKNOWN)

    @property
    def seconds(self) -> float:
        """How long master and chain take, as far as it is known."""
        return sum(self.lengths.get(task.node_id, _UNKNOWN).seconds or 0.0 for task in (self.task, *self.chain))

    @property
    def holds_seconds(self) -> float:
        """For how long it keeps others waiting at most; a long read gives way at a port's border."""
        own, ports = self.length.seconds or 0.0, self.length.ports
        if ports == 1:
            return self.seconds
        return max(min(own, settings.FACHO_YIELD_SECONDS + own / ports), self.seconds - own)

    @property
    def as_need(self) -> Need:
        """What it needs of its OLT."""
        return Need(self.task.node_id, self.task.grid.interval_seconds, self.seconds, self.holds_seconds)

    @property
    def as_load(self) -> Load:
        """Its place on the grid; what has hours or gives way stays where it is.

        A long read is of live columns, which devices bear no more often than its interval says: it never moves closer.
        """
        grid = self.task.grid
        is_movable = grid.window is None and self.length.ports == 1
        return Load(
            self.task.node_id, grid.interval_seconds, grid.offset_seconds, self.holds_seconds, is_movable=is_movable
        )

    def as_master(self, next_run_at: datetime) -> Master:
        """Itself as the prediction takes it."""
        task = self.task
        return Master(
            node_id=task.node_id,
            grid=task.grid,
            next_run_at=next_run_at,
            rank=RANK[QueryType(task.task_type.partition("_")[0])],
            priority=task.priority,
            seconds=self.length.seconds,
            members=tuple(Member(t.node_id, self.lengths.get(t.node_id, _UNKNOWN).seconds) for t in self.chain),
            ports=self.length.ports,
        )


def composites_of(olt: OltRow, lengths: Mapping[int, Length]) -> list[Composite]:
    """Group an OLT's tasks into masters with their chains; a suspended member is passed over."""
    chains = defaultdict(list)
    for task in sorted(olt.tasks, key=lambda task: task.place):
        if task.master_id is not None and task.suspended_at is None:
            chains[task.master_id].append(task)
    return [Composite(task, tuple(chains[task.node_id]), lengths) for task in olt.tasks if task.master_id is None]


def masters_of(composites: Iterable[Composite]) -> list[Master]:
    """Return those that will run: a suspended master does not, nor one that never got a time."""
    return [
        composite.as_master(composite.task.next_run_at)
        for composite in composites
        if composite.task.next_run_at is not None and composite.task.suspended_at is None
    ]


def load_going(olt_ids: Collection[int], masters: Mapping[int, Master]) -> dict[int, list[Going]]:
    """Load what is not over on these OLTs, of these masters by their node; in one query."""
    going = defaultdict(list)
    rows = Execution.objects.filter(finished_at__isnull=True, olt_id__in=olt_ids).select_related("master_execution")
    columns = ("olt_id", "node_id", "slot_at", "status", "attempt", "duration_ms", "failure_kind", "resume_at")
    times = ("created_at", "started_at", "master_execution__node_id", "master_execution__created_at")
    for row in rows.only(*columns, *times).order_by():
        first = row.master_execution or row
        going[row.olt_id].append(_going(row, first, masters.get(first.node_id or 0)))
    return going


def _going(row: Execution, first: Execution, master: Master | None) -> Going:
    held_since = row.started_at or row.created_at
    is_retry = row.status not in ACTIVE and bool(row.failure_kind)
    # What failed tries took tells nothing about how far the run has come.
    done_seconds = 0.0 if row.attempt > 1 or is_retry else row.duration_ms / 1000
    return Going(
        node_id=first.node_id or 0,
        slot_at=first.slot_at,
        starts_at=first.created_at,
        seconds_left=max(_seconds_from(row, master) - done_seconds, 0.0),
        resume_at=row.resume_at or held_since,
        held_since=held_since if row.status in ACTIVE else None,
        ports_done=_ports_done(master, done_seconds),
        is_retry=is_retry,
    )


def _seconds_from(row: Execution, master: Master | None) -> float:
    """Return how long the composite takes from the beginning of this member on."""
    if master is None:
        return 0.0
    following = [member.node_id for member in master.members]
    if row.node_id not in following:
        return master.composite_seconds
    return sum(member.seconds or 0.0 for member in master.members[following.index(row.node_id) :])


def _ports_done(master: Master | None, done_seconds: float) -> int:
    if master is None or not master.seconds:
        return 0
    return min(round(done_seconds * master.ports / master.seconds), master.ports - 1)

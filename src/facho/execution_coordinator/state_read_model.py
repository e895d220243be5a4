"""What the coordinator sees of OLTs right now: their tasks, who holds them, who waits, and what was remembered."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from facho.execution_coordinator.models import OltState
from facho.execution_coordinator.state import OltRow, load_olts
from facho.polling.domain.planning import DueNode, WaitReason
from facho.zabbix_pollers.activity import Holder, load_holders
from facho.zabbix_pollers.queue_read_model import load_candidates


@dataclass(frozen=True, slots=True)
class WaitingNode:
    """A node in the queue; without a reason it starts at once."""

    node_id: int
    task_type: str
    due_at: datetime
    run_now: bool
    execution_id: int | None
    reason: WaitReason | None


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """One OLT; the hash and its time are those of the last pass that changed anything."""

    row: OltRow
    holder: Holder | None
    queue: tuple[WaitingNode, ...]
    state_hash: str | None
    saved_at: datetime | None


def load_states(olt_ids: Sequence[int], now: datetime) -> list[CoordinatorState]:
    """Load these OLTs in the order given; eight queries, however many there are."""
    rows, holders, queues = load_olts(list(olt_ids)), load_holders(olt_ids), _load_queues(now)
    remembered = {state.olt_id: state for state in OltState.objects.filter(olt_id__in=olt_ids).defer("state")}
    return [
        _state(rows[olt_id], holders.get(olt_id), queues.get(olt_id, []), remembered.get(olt_id))
        for olt_id in olt_ids
        if olt_id in rows
    ]


def _load_queues(now: datetime) -> Mapping[int, list[tuple[DueNode, WaitReason | None]]]:
    """Load who waits on which OLT, in the order of the queue."""
    candidates = load_candidates(now)
    queues = defaultdict(list)
    for node in candidates.due:
        queues[node.olt_id].append((node, candidates.reasons.get(node.node_id)))
    return queues


def _state(
    row: OltRow, holder: Holder | None, queue: Sequence[tuple[DueNode, WaitReason | None]], seen: OltState | None
) -> CoordinatorState:
    task_types = {task.node_id: task.task_type for task in row.tasks}
    return CoordinatorState(
        row=row,
        holder=holder,
        queue=tuple(
            WaitingNode(
                node_id=node.node_id,
                task_type=task_types.get(node.node_id, ""),
                due_at=node.due_at,
                run_now=node.is_run_now,
                execution_id=node.execution_id,
                reason=reason,
            )
            for node, reason in queue
        ),
        state_hash=seen.state_hash if seen else None,
        saved_at=seen.saved_at if seen else None,
    )

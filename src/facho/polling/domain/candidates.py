"""Who may start or go on at this moment: due nodes, runs that wait, and who of a silent OLT asks for all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from facho.polling.domain.clock import CLOCK_TOLERANCE
from facho.polling.domain.planning import DueNode
from facho.polling.domain.suspension import PROBE_PAUSES_SECONDS

# Nobody waits for a scout that asks later: a silent OLT is asked as often as one whose nodes are suspended.
SCOUT_ASKS_WITHIN = timedelta(seconds=max(PROBE_PAUSES_SECONDS))


@dataclass(frozen=True, slots=True)
class Waiting:
    """An execution that let go of its OLT and competes for it again from its `due_at` on."""

    node: DueNode
    is_retry: bool
    next_slot_at: datetime | None
    # Its hours are over: it goes on when they begin again, and no other run of its node starts meanwhile.
    is_held: bool = False

    def is_superseded(self, now: datetime) -> bool:
        """Tell whether the node's next slot has come: it runs instead of the retry."""
        return self.is_retry and self.next_slot_at is not None and self.next_slot_at <= now


@dataclass(frozen=True, slots=True)
class Candidates:
    """`ready` may start now, `later` waits for its time, and `superseded` ends because its next slot has come."""

    ready: tuple[DueNode, ...]
    later: tuple[DueNode, ...]
    superseded: tuple[Waiting, ...]


def silent_olts(due: Iterable[DueNode], waiting: Iterable[Waiting]) -> set[int]:
    """Return the silent OLTs that somebody wants to ask: their failed nodes have to be known to choose a scout."""
    return {node.olt_id for node in (*due, *(run.node for run in waiting)) if node.is_olt_silent}


def choose_candidates(due: Iterable[DueNode], waiting: Iterable[Waiting], now: datetime) -> Candidates:
    """Put due nodes beside waiting runs: a node whose run waits is in it once, as that run.

    Among `due` stand the failed nodes of `silent_olts` also when they are not due yet, as scouts of the others.
    """
    runs = list(waiting)
    going_on = {run.node.node_id: run for run in runs if not run.is_superseded(now)}
    known = [node for node in due if node.node_id not in going_on]
    known += [run.node for run in going_on.values() if not run.is_held]
    ready = [node for node in known if node.due_at <= now or node.is_run_now]
    later = [node for node in known if node.due_at > now and node.execution_id and not node.is_run_now]
    return Candidates(
        tuple(_hold_for_scouts(ready, choose_scouts(known, now))),
        tuple(sorted(later, key=lambda node: node.due_at)),
        tuple(run for run in runs if run.is_superseded(now)),
    )


def choose_scouts(nodes: Iterable[DueNode], now: datetime) -> dict[int, int]:
    """Name for each silent OLT the one node that asks again, so that the others keep their attempts.

    It is the one that failed most among those that ask soon: its last try decides for all.
    """
    scouts: dict[int, DueNode] = {}
    for node in nodes:
        if node.is_olt_silent and node.failures and node.due_at <= now + SCOUT_ASKS_WITHIN:
            best = scouts.get(node.olt_id, node)
            scouts[node.olt_id] = min(best, node, key=lambda n: (-n.failures, n.due_at, n.node_id))
    return {olt_id: node.node_id for olt_id, node in scouts.items()}


def ready_at(resume_at: datetime, *, longest_pause_seconds: float, now: datetime) -> datetime:
    """Return when what waits goes on; now, if it would wait for longer than it ever has to: the clock was set back."""
    longest_wait = timedelta(seconds=longest_pause_seconds) + CLOCK_TOLERANCE
    return resume_at if resume_at <= now + longest_wait else now


def _hold_for_scouts(ready: Sequence[DueNode], scouts: dict[int, int]) -> Sequence[DueNode]:
    if not scouts:
        return ready
    return [
        replace(node, waits_for_scout=not node.is_run_now and scouts.get(node.olt_id, node.node_id) != node.node_id)
        for node in ready
    ]

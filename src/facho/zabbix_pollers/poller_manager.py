"""Matches planned starts to pollers: claims them in the database and hands the winners to the executor."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from facho.accounts.scope import EVERYTHING, OltScope
from facho.executions.models import Execution
from facho.executions.onu_reads import load_wanted_reads
from facho.executions.run import Ending
from facho.executions.runner import Executor
from facho.executions.store import Active, Unfinished, end_waiting, load_unfinished
from facho.polling.domain.collection import Failure
from facho.polling.domain.execution_state import ExecutionState, FailureKind
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.domain.planning import (
    DEFAULT_GROUP,
    Assignment,
    DueNode,
    NodeQueue,
    ReadStart,
    WaitReason,
    choose_candidates,
    numbers_by_group,
    plan_groups,
    plan_reads,
    serving_group,
)
from facho.polling.domain.ports import DatabaseGateway
from facho.snmp_jobs.due import load_due_nodes
from facho.zabbix_pollers import store
from facho.zabbix_pollers.activity import active_executions
from facho.zabbix_pollers.composite_node import CompositeNode
from facho.zabbix_pollers.read_model import Overview, load_overview
from facho.zabbix_pollers.store import load_free_pollers

logger = logging.getLogger(__name__)


NOTHING_UNFINISHED = Unfinished((), ())
# What was claimed: reads, and nodes.
_Claimed = tuple[Sequence[Active], Sequence[tuple[DueNode, Active]]]


class PollerManager:
    """N pollers, and those of each group; at most one composite each, at most one per OLT. Rows hold the state."""

    def __init__(
        self,
        *,
        start_pollers: int,
        database: DatabaseGateway,
        executor: Executor,
        owner: str,
        groups: Mapping[str, int] | None = None,
        shard: Shard = WHOLE,
    ) -> None:
        self.start_pollers = start_pollers
        self._groups = groups or {}
        self._shard = shard
        self._numbers = shard.share(numbers_by_group(start_pollers, self._groups))
        self.queue = NodeQueue()
        self._waited: dict[int, WaitReason] = {}
        self._is_calm = False
        self._owner = owner
        self._database = database
        self._executor = executor

    async def prepare(self) -> None:
        """Have the rows of all pollers in the database; of several engines the first sees to it."""
        if self._shard.number == 1:
            await self._database.run(store.save_poller_count, self.start_pollers, self._groups)

    async def look_and_start(
        self, now: datetime, *, may_start: Callable[[Unfinished], bool]
    ) -> tuple[Unfinished, int | None]:
        """Load unfinished runs; start what fits if `may_start` allows, else return None as the count.

        One call, because a second one would make the idle poller wait again for a thread and the event loop. If the
        last look found nothing, one cheap query first checks whether there is any work.
        """

        def look() -> tuple[Unfinished, _Claimed | None]:
            is_calm = self._is_calm and not store.has_work(now, self._shard)
            unfinished = NOTHING_UNFINISHED if is_calm else load_unfinished(now, self._shard)
            if not may_start(unfinished):
                self._is_calm = False
                return unfinished, None
            claimed: _Claimed = ((), ()) if is_calm else self._plan_and_claim(unfinished, now)
            found = (unfinished.active, unfinished.waiting, self.queue.qsize(), *claimed)
            self._is_calm = not any(found)
            return unfinished, claimed

        unfinished, claimed = await self._database.run(look)
        return unfinished, None if claimed is None else self._start(claimed, now)

    async def start_due_nodes(self, unfinished: Unfinished, now: datetime) -> int:
        """Start what has a place, reads that people wait for first; the rest is the queue. Returns how many."""
        return self._start(await self._database.run(self._plan_and_claim, unfinished, now), now)

    def _start(self, claimed: _Claimed, now: datetime) -> int:
        reads, starts = claimed
        for claim in reads:
            self._executor.start(claim.execution_id, claim.token)
        for node, claim in starts:
            self.assign_node(CompositeNode(node, seen_at=now), claim)
        return len(reads) + len(starts)

    def assign_node(self, composite: CompositeNode, claimed: Active) -> None:
        """Let the poller that was claimed for it run master and chain; a plain function, so it waits for nothing."""
        composite.execute(self._executor, claimed)

    def send_again(self, execution_id: int, token: int) -> None:
        """Hand out again what was not taken: a message may get lost, a claim does not."""
        self._executor.start(execution_id, token)

    def cancel(self, execution_id: int) -> None:
        """Let a run end before its next packet."""
        self._executor.cancel(execution_id, "cancelled")

    @staticmethod
    def has_free_poller(group: str = DEFAULT_GROUP, shard: Shard = WHOLE) -> bool:
        """Return whether a poller could take a composite of the group and the shard now."""
        return PollerManager.get_free_poller(group, shard) is not None

    @staticmethod
    def get_free_poller(group: str = DEFAULT_GROUP, shard: Shard = WHOLE) -> int | None:
        """Return the lowest free poller of a group and a shard; where no groups are set up all share the pollers."""
        free = shard.share(load_free_pollers(active_executions().values_list("poller_id", flat=True)))
        return next(iter(free.get(serving_group(group, free), ())), None)

    @staticmethod
    def is_olt_busy(olt_id: int) -> bool:
        return active_executions().filter(olt_id=olt_id).exists()

    @staticmethod
    def get_stats(now: datetime, *, queue_count: int = 0, scope: OltScope = EVERYTHING) -> Overview:
        """Return every poller with all executions of what it runs, the first nodes of the queue, and the sums."""
        return load_overview(now, queue_count=queue_count, scope=scope)

    def _plan_and_claim(self, unfinished: Unfinished, now: datetime) -> _Claimed:
        planned, assignments = self._plan(unfinished, now)
        reads = store.claim_read_starts(planned, owner=self._owner, now=now) if planned else []
        claimed = store.claim_assignments(assignments, owner=self._owner, now=now) if assignments else []
        due: dict[int | None, DueNode] = {assignment.node.node_id: assignment.node for assignment in assignments}
        return reads, [(due[claim.node_id], claim) for claim in claimed]

    def _plan(self, unfinished: Unfinished, now: datetime) -> tuple[Sequence[ReadStart], Sequence[Assignment]]:
        candidates = choose_candidates(load_due_nodes(now, self._shard), unfinished.waiting, now)
        if ids := [run.execution_id for run in candidates.superseded if run.execution_id]:
            superseded_by_slot = Ending(ExecutionState.FAILED, Failure(FailureKind.TIMEOUT, "its next slot came first"))
            end_waiting(Execution.objects.filter(id__in=ids), superseded_by_slot, now=now)
        reads = plan_reads(
            load_wanted_reads(now, self._shard),
            free_pollers=self._free(unfinished.busy_pollers),
            busy_olts=unfinished.busy_olts,
        )
        plan = plan_groups(
            candidates.ready,
            free_pollers=self._free(unfinished.busy_pollers | {start.poller_id for start in reads}),
            busy_olts=unfinished.busy_olts | {start.read.olt_id for start in reads},
            now=now,
        )
        starting = [replace(start, waited_because=self._waited.get(start.node.node_id)) for start in plan.start]
        self.queue = NodeQueue(node for node, _ in plan.waiting)
        self._waited = {node.node_id: reason for node, reason in plan.waiting}
        return reads, starting

    def _free(self, busy: set[int]) -> dict[str, list[int]]:
        return {group: [n for n in numbers if n not in busy] for group, numbers in self._numbers.items()}

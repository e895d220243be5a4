"""Matches planned starts to pollers: claims them in the database and hands the winners to the executor."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from facho.executions import store as executions
from facho.executions.executor import Executor
from facho.executions.models import Execution
from facho.executions.onu_reads import load_wanted_reads
from facho.executions.outcome import Ending
from facho.executions.store import Claimed
from facho.executions.waiting import Unfinished, end_waiting
from facho.polling.domain.candidates import Waiting, choose_candidates
from facho.polling.domain.collection import Failure
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.node_queue import NodeQueue
from facho.polling.domain.onu_reads import ReadStart, plan_reads
from facho.polling.domain.planning import Assignment, DueNode, WaitReason, plan_groups
from facho.polling.domain.poller_groups import DEFAULT_GROUP, numbers_by_group
from facho.snmp_jobs.due import load_due_nodes
from facho.zabbix_pollers import store
from facho.zabbix_pollers.composite_node import CompositeNode
from facho.zabbix_pollers.poller import load_free_pollers
from facho.zabbix_pollers.read_model import Overview, load_overview

logger = logging.getLogger(__name__)


class PollerManager:
    """N pollers, and those of each group; at most one composite each, at most one per OLT."""

    def __init__(
        self,
        *,
        start_pollers: int,
        database: DatabaseGateway,
        executor: Executor,
        owner: str,
        groups: Mapping[str, int] | None = None,
    ) -> None:
        self.start_pollers = start_pollers
        self._groups = groups or {}
        self._numbers = numbers_by_group(start_pollers, self._groups)
        self.queue = NodeQueue()
        self._waited: dict[int, WaitReason] = {}
        self._owner = owner
        self._database = database
        self._executor = executor

    async def prepare(self) -> None:
        """Have the rows of our pollers in the database."""
        await self._database.run(store.save_poller_count, self.start_pollers, self._groups)

    async def start_due_nodes(self, unfinished: Unfinished, now: datetime) -> int:
        """Start what is due and has a place; what waits becomes the queue. Returns how many started.

        First come the reads that people wait for: what a claim takes from a node, the node takes in the next tick.
        """
        reads, nodes = await self._database.run(self._plan, unfinished, now)
        return await self._start_reads(reads, now) + await self.assign(nodes, now)

    async def assign(self, assignments: Sequence[Assignment], now: datetime) -> int:
        """Claim each start and hand the claims that won to the executor; never waits for a run."""
        if not assignments:
            return 0
        claimed = await self._database.run(store.claim_assignments, assignments, owner=self._owner, now=now)
        return self._hand_over(claimed)

    async def _start_reads(self, starts: Sequence[ReadStart], now: datetime) -> int:
        if not starts:
            return 0
        claimed = await self._database.run(store.claim_read_starts, starts, owner=self._owner, now=now)
        return self._hand_over(claimed)

    def _hand_over(self, claimed: Sequence[Claimed]) -> int:
        for claim in claimed:
            self._executor.start(claim.execution_id, claim.token)
        return len(claimed)

    async def assign_node(self, composite: CompositeNode, now: datetime) -> bool:
        """Start one composite now, unless its OLT or every poller is taken; never waits for a run."""
        group = composite.due.group if self._groups else DEFAULT_GROUP
        poller_id = await self._database.run(self.get_free_poller, group)
        if poller_id is None:
            return False
        assignments = [Assignment(composite.due, poller_id, group=group)]
        claimed = await self._database.run(store.claim_assignments, assignments, owner=self._owner, now=now)
        for claim in claimed:
            composite.execute(self._executor, claim)
        return bool(claimed)

    def send_again(self, execution_id: int, token: int) -> None:
        """Hand out once more what nobody took: a message may get lost, a claim does not."""
        self._executor.start(execution_id, token)

    def cancel(self, execution_id: int) -> None:
        """Let a run end before its next packet."""
        self._executor.cancel(execution_id, "cancelled")

    def has_free_poller(self, group: str = DEFAULT_GROUP) -> bool:
        """Tell whether a composite of the group could start now; asks the database."""
        return self.get_free_poller(group) is not None

    def get_free_poller(self, group: str = DEFAULT_GROUP) -> int | None:
        """Return the lowest free poller of a group; asks the database."""
        return next(iter(load_free_pollers(self._numbers.get(group, range(0)))), None)

    def is_olt_busy(self, olt_id: int) -> bool:
        """Tell whether an active execution holds the OLT; asks the database."""
        return olt_id in executions.load_busy_olts()

    def get_stats(self, now: datetime) -> Overview:
        """Return every poller with all executions of what it runs, and their sums; asks the database."""
        return load_overview(now)

    def _plan(self, unfinished: Unfinished, now: datetime) -> tuple[Sequence[ReadStart], Sequence[Assignment]]:
        reads = plan_reads(
            load_wanted_reads(now),
            free_pollers=self._free(unfinished.busy_pollers),
            busy_olts=unfinished.busy_olts,
        )
        plan = plan_groups(
            _load_candidates(unfinished.waiting, now),
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


def _load_candidates(waiting: Sequence[Waiting], now: datetime) -> Sequence[DueNode]:
    """Load due nodes beside waiting runs, and end the runs whose next slot has come."""
    candidates = choose_candidates(load_due_nodes(now), waiting, now)
    _give_up(candidates.superseded, now)
    return candidates.ready


def _give_up(superseded: Sequence[Waiting], now: datetime) -> None:
    if superseded:
        ids = [run.node.execution_id for run in superseded if run.node.execution_id]
        superseded_by_slot = Ending(ExecutionState.FAILED, Failure(FailureKind.TIMEOUT, "its next slot came first"))
        end_waiting(Execution.objects.filter(id__in=ids), superseded_by_slot, now=now)

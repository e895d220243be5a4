"""Matches planned starts to pollers: claims them in the database and hands the winners to the executor."""

from collections.abc import Sequence
from datetime import datetime

from facho.executions.executor import Executor
from facho.executions.store import load_busy_olts
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.node_queue import NodeQueue
from facho.polling.domain.planning import Assignment, plan_tick
from facho.snmp_jobs.store import load_due_nodes
from facho.zabbix_pollers import store


class PollerManager:
    """N pollers, at most one composite each, at most one per OLT."""

    def __init__(self, *, start_pollers: int, database: DatabaseGateway, executor: Executor, owner: str) -> None:
        self.start_pollers = start_pollers
        self._owner = owner
        self.queue = NodeQueue()
        self._database = database
        self._executor = executor

    async def prepare(self) -> None:
        """Have the rows of our pollers in the database."""
        await self._database.run(store.save_poller_count, self.start_pollers)

    async def start_due_nodes(self, now: datetime) -> int:
        """Start what is due and has a place; what waits becomes the queue. Returns how many started."""
        return await self.assign(await self._database.run(self._plan, now), now)

    async def assign(self, assignments: Sequence[Assignment], now: datetime) -> int:
        """Claim each start and hand the claims that won to the executor; never waits for a run."""
        if not assignments:
            return 0
        claimed = await self._database.run(store.claim_assignments, assignments, owner=self._owner, now=now)
        for claim in claimed:
            self._executor.start(claim.execution_id, claim.token)
        return len(claimed)

    def _plan(self, now: datetime) -> Sequence[Assignment]:
        plan = plan_tick(
            load_due_nodes(now),
            free_pollers=store.load_free_pollers(self.start_pollers),
            busy_olts=load_busy_olts(),
            now=now,
        )
        self.queue = NodeQueue(node for node, _ in plan.waiting)
        return plan.start

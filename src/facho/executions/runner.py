"""Carries out one composite: takes the claim, collects, stores, hands over to the chain, and always lets go."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction

from facho.executions import store
from facho.executions.claim import Claim
from facho.executions.store import Renewal, Run
from facho.polling.domain.clock import Clock
from facho.polling.domain.collection import Collected, Collector, Failure
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.lease import HeldLease
from facho.polling.snmp.errors import OwnershipLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

logger = logging.getLogger(__name__)

# Three chances to renew before the lease is over.
RENEWALS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class Finished:
    """A member that ended, and the member that follows it under the same poller, if any."""

    run: Run
    state: ExecutionState
    failure: Failure | None
    was_heard: bool
    following: Run | None


# What else happens in the finishing transaction: the schedule, the poller, the OLT's health.
FinishingStep = Callable[["Finished", "datetime"], None]


@dataclass(frozen=True, slots=True)
class NodeRunner:
    """Runs a claimed execution and its chain to the end, here, on this event loop."""

    collector: Collector
    database: DatabaseGateway
    clock: Clock
    owner: str
    lease_seconds: float
    finishing_steps: Sequence[FinishingStep]

    async def run(self, execution_id: int, token: int) -> None:
        """Run the master and then each chain member in turn; end early when the claim is lost."""
        began_at = self.clock.monotonic()
        run = await self.database.run(store.take, execution_id, token, owner=self.owner, now=self.clock.now())
        while run is not None:
            logger.info("node.started olt=%s node=%s execution=%s", run.olt_id, run.node_id, run.execution_id)
            run, began_at = await self._run_member(run, began_at)

    async def _run_member(self, run: Run, began_at: float) -> tuple[Run | None, float]:
        claim = Claim(run.execution_id, run.token, HeldLease(self.lease_seconds, began_at), self.clock)
        async with self._renewing(claim):
            collected = await self._collect(run, claim)
        began_at = self.clock.monotonic()
        finished = await self.database.run(self._finish, run, collected)
        if finished is None:
            logger.warning("node.result_refused olt=%s execution=%s", run.olt_id, run.execution_id)
            return None, began_at
        _log_end(finished)
        return finished.following, began_at

    async def _collect(self, run: Run, claim: Claim) -> Collected:
        try:
            claim.check()
            return await self.collector.collect(run.request, claim)
        except OwnershipLost as error:
            return Collected(failure=Failure(FailureKind.CANCELLED, str(error)))
        except Exception as error:  # the runner boundary: a defect in a collector must not keep an OLT
            logger.exception("node.crashed olt=%s execution=%s", run.olt_id, run.execution_id)
            return Collected(failure=Failure(FailureKind.INTERNAL, type(error).__name__))

    @asynccontextmanager
    async def _renewing(self, claim: Claim) -> "AsyncIterator[None]":
        renewals = asyncio.create_task(self._renew_until_lost(claim))
        try:
            yield
        finally:
            renewals.cancel()
            with suppress(asyncio.CancelledError):
                await renewals

    async def _renew_until_lost(self, claim: Claim) -> None:
        while not claim.lost_because:
            await asyncio.sleep(self.lease_seconds / RENEWALS_PER_LEASE)
            began_at = self.clock.monotonic()
            try:
                renewal = await self.database.run(store.renew, claim.execution_id, claim.token)
            except DatabaseError:
                # Not lost yet: the lease itself runs out if the database stays away.
                logger.warning("lease.not_renewed execution=%s", claim.execution_id, exc_info=True)
                continue
            if renewal is Renewal.RENEWED:
                claim.lease.renew(began_at)
            else:
                claim.lose("cancelled" if renewal is Renewal.CANCELLED else "another owner holds the claim")

    @transaction.atomic
    def _finish(self, run: Run, collected: Collected) -> Finished | None:
        now = self.clock.now()
        state = final_state(collected)
        if not store.close(run, state, failure=collected.failure, summary=collected.summary, now=now):
            return None
        collected.save(now)
        finished = Finished(run, state, collected.failure, collected.was_heard, self._follow(run, collected, now))
        for step in self.finishing_steps:
            step(finished, now)
        return finished

    def _follow(self, run: Run, collected: Collected, now: "datetime") -> Run | None:
        if collected.failure and collected.failure.kind in STOPS_THE_CHAIN:
            return None
        return store.open_next(run, owner=self.owner, master_succeeded=collected.failure is None, now=now)


# After these the OLT would not answer the rest of the chain either, or may not be asked.
STOPS_THE_CHAIN = frozenset({FailureKind.TIMEOUT, FailureKind.REFUSED, FailureKind.AUTH, FailureKind.CANCELLED})


def final_state(collected: Collected) -> ExecutionState:
    """Name the state in which a run with this outcome ends."""
    if collected.failure is None:
        return ExecutionState.SUCCESS
    return ExecutionState.INTERRUPTED if collected.failure.kind is FailureKind.CANCELLED else ExecutionState.FAILED


def _log_end(finished: Finished) -> None:
    run, failure = finished.run, finished.failure
    logger.info(
        "node.ended olt=%s node=%s execution=%s state=%s failure=%s",
        run.olt_id,
        run.node_id,
        run.execution_id,
        finished.state,
        failure.kind if failure else "",
    )

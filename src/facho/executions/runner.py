"""Carries out one composite: takes the claim, collects, stores, hands over to the chain, and always lets go."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from django.db import Error, transaction

from facho.executions import store
from facho.executions.chain import open_next
from facho.executions.claim import Claim
from facho.executions.hints import Hints, NoHints
from facho.executions.onu_reads import is_read_wanted
from facho.executions.outcome import Ending, judge
from facho.executions.run import Run
from facho.executions.store import Renewal
from facho.executions.waiting import is_another_waiting
from facho.polling.domain.clock import Clock
from facho.polling.domain.collection import Collected, Collector, Failure
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.lease import HeldLease
from facho.polling.snmp.errors import OwnershipLost
from facho.snmp_jobs.due import is_another_due

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Three chances to renew before the lease is over.
RENEWALS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class Finished:
    """A member whose try or slice ended, and the member that follows it under the same poller, if any."""

    run: Run
    ending: Ending
    was_heard: bool
    following: Run | None


# What else happens in the finishing transaction: the schedule, the poller, the OLT's health.
FinishingStep = Callable[[Finished, datetime], None]


@dataclass(frozen=True, slots=True)
class Times:
    """How long a claim lives without renewal, and after how long a long read looks up."""

    lease_seconds: float
    yield_after_seconds: float


@dataclass(slots=True)
class NodeRunner:
    """Runs a claimed execution and its chain to the end, here, on this event loop."""

    collector: Collector
    database: DatabaseGateway
    clock: Clock
    owner: str
    times: Times
    finishing_steps: Sequence[FinishingStep]
    hints: Hints = field(default_factory=NoHints)
    _claims: dict[int, Claim] = field(default_factory=dict)

    async def run(self, execution_id: int, token: int | None) -> bool:
        """Run the master and then each chain member in turn; end early when the claim is lost.

        False says that there was nothing to take.
        """
        began_at = self.clock.monotonic()
        run = await self.database.run(store.take, execution_id, token, owner=self.owner, now=self.clock.now())
        if run is None:
            return False
        try:
            while run is not None:
                logger.info("node.started olt=%s node=%s execution=%s", run.olt_id, run.node_id, run.execution_id)
                run, began_at = await self._run_member(run, began_at)
        finally:
            self.hints.ended()
        return True

    def cancel(self, execution_id: int, reason: str) -> None:
        """Let a run of this process end before its next packet; one that is not ours is none of our business."""
        if claim := self._claims.get(execution_id):
            claim.lose(reason)

    def look(self, execution_id: int) -> None:
        """Let a run of this process renew its claim at once, and so learn whether it shall stop."""
        if claim := self._claims.get(execution_id):
            claim.renew_now.set()

    async def _run_member(self, run: Run, began_at: float) -> tuple[Run | None, float]:
        async with self._holding(run, began_at) as claim:
            collected = await self._guarded(run, self._collect(run, claim))
        began_at = self.clock.monotonic()
        finished = await self._store(run, collected)
        if finished is None:
            logger.warning("node.result_refused olt=%s execution=%s", run.olt_id, run.execution_id)
            return None, began_at
        _log_end(finished)
        return finished.following, began_at

    async def _collect(self, run: Run, claim: Claim) -> Collected:
        claim.check()
        return await self.collector.collect(run.request, claim)

    async def _store(self, run: Run, collected: Collected) -> Finished | None:
        """Finish with the rows, or, when they cannot be stored, without them: that is a failed try."""
        finished = await self._guarded(run, self.database.run(self._finish, run, collected))
        if isinstance(finished, Collected):
            without_rows = replace(finished, was_heard=collected.was_heard)
            return await self.database.run(self._finish, run, without_rows)
        return finished

    async def _guarded(self, run: Run, work: Awaitable[T]) -> T | Collected:
        """Return what the work returns, or the failure that the run has instead."""
        try:
            return await work
        except OwnershipLost as error:
            return Collected(failure=Failure(FailureKind.CANCELLED, str(error)))
        except Exception as error:  # the runner boundary: a defect in a collector or a store must not keep an OLT
            logger.exception("node.crashed olt=%s execution=%s", run.olt_id, run.execution_id)
            return Collected(failure=Failure(FailureKind.INTERNAL, type(error).__name__))

    @asynccontextmanager
    async def _holding(self, run: Run, began_at: float) -> AsyncIterator[Claim]:
        """Keep the claim alive while the block runs."""
        claim = Claim(
            run.execution_id,
            run.token,
            HeldLease(self.times.lease_seconds, began_at),
            self.clock,
            another_is_due=partial(self._is_another_due, run),
            yield_after_seconds=self.times.yield_after_seconds,
            started_at=began_at,
        )
        self._claims[run.execution_id] = claim
        self.hints.held(run)
        renewals = asyncio.create_task(self._renew_until_lost(claim, run))
        try:
            yield claim
        finally:
            del self._claims[run.execution_id]
            self.hints.let_go(run)
            renewals.cancel()
            [ended] = await asyncio.gather(renewals, return_exceptions=True)
            if isinstance(ended, Exception):
                # What was collected while the lease held is not lost with it.
                logger.error("lease.renewal_failed execution=%s", run.execution_id, exc_info=ended)

    async def _renew_until_lost(self, claim: Claim, run: Run) -> None:
        while not claim.lost_because:
            await _wait(claim.renew_now, self.times.lease_seconds / RENEWALS_PER_LEASE)
            began_at = self.clock.monotonic()
            try:
                renewal = await self.database.run(store.renew, claim.execution_id, claim.token)
            except Error:
                # Not lost yet: the lease itself runs out if the database stays away.
                logger.warning("lease.not_renewed execution=%s", claim.execution_id, exc_info=True)
                continue
            if renewal is Renewal.RENEWED:
                claim.lease.renew(began_at)
                self.hints.held(run)
            else:
                claim.lose("cancelled" if renewal is Renewal.CANCELLED else "another owner holds the claim")

    async def _is_another_due(self, run: Run) -> bool:
        for is_wanted in (is_another_due, is_another_waiting, is_read_wanted):
            if await self.database.run(is_wanted, run.olt_id, except_node_id=run.node_id, now=self.clock.now()):
                return True
        return False

    @transaction.atomic
    def _finish(self, run: Run, collected: Collected) -> Finished | None:
        now = self.clock.now()
        store.hold_token(run.olt_id)
        ending = judge(run, collected, now)
        if not store.close(run, ending, summary=collected.summary, now=now):
            return None
        collected.save(now)
        following = open_next(run, ending, owner=self.owner, now=now)
        finished = Finished(run, ending, collected.was_heard, following)
        for step in self.finishing_steps:
            step(finished, now)
        return finished


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, but not for longer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()


def _log_end(finished: Finished) -> None:
    run, failure = finished.run, finished.ending.failure
    logger.info(
        "node.ended olt=%s node=%s execution=%s state=%s failure=%s",
        run.olt_id,
        run.node_id,
        run.execution_id,
        finished.ending.state,
        failure.kind if failure else "",
    )

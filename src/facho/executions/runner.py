"""Carries out one composite: takes the claim, collects, stores, hands over to the chain, and always lets go."""

import asyncio
import logging
import math
from asyncio import Event
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from django.db import Error, transaction

from facho.executions import store
from facho.executions.onu_reads import is_read_wanted
from facho.executions.run import Ending, Run, judge
from facho.executions.store import HeldToken, Renewal, is_another_waiting, open_next
from facho.polling.domain.collection import Collected, Collector, Failure, Rows, RunProgress
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.lease import HeldLease
from facho.polling.domain.ports import Clock, ClockReading, DatabaseGateway
from facho.polling.domain.retry import should_yield
from facho.polling.snmp.errors import OwnershipLost, OwnershipUnproven
from facho.snmp_jobs.due import is_another_due


class Hints:
    """Notifies other processes without waiting; a hint may get lost. This one has no other process to notify."""

    def held(self, run: Run) -> None:
        """Announce that the run holds its OLT, for a lease from now."""

    def let_go(self, run: Run) -> None:
        """Announce that the run no longer holds it."""

    def ended(self) -> None:
        """Announce that an OLT, and perhaps a poller, has become free."""

    def cancelled(self, execution_id: int) -> None:
        """Ask the process that runs the execution to check whether to stop."""

    async def listen(self, *, on_ended: Callable[[], None], on_cancelled: Callable[[int], None]) -> None:
        """React to what others say, until cancelled; without others it returns at once."""


@dataclass(slots=True)
class Claim:
    """The holder's own view of its claim; it permits nothing that it cannot prove."""

    execution_id: int
    token: int
    lease: HeldLease
    clock: Clock
    # Whether another node of the OLT is due; asked only when this run is long enough to give way.
    another_is_due: Callable[[], Awaitable[bool]]
    yield_after_seconds: float
    started_at: float
    # Stores rows while the run continues.
    store_part: Callable[[Sequence[Rows]], Awaitable[None]]
    # Set to have the claims of this process renewed at once: a row has something new to say, or a lease is in doubt.
    renew_now: Event
    # Of a long read, what is finished is stored this often.
    hand_over_seconds: float
    lost_because: str = ""
    # Set for a moment whenever the database has answered a renewal.
    answered: Event = field(default_factory=Event)
    progress: RunProgress | None = None
    written_progress: RunProgress | None = None
    _handed_over_at: float = -math.inf
    _kept_until: float = -math.inf

    def check(self) -> None:
        """Raise unless this process may still speak to the OLT."""
        if self.lost_because:
            raise OwnershipLost(self.lost_because)
        if not self.lease.is_certain(self.clock.reading()):
            raise OwnershipUnproven("the lease may be over")

    async def confirm(self) -> None:
        """Wait until the database has confirmed the claim; OwnershipLost when it did not within a lease."""
        try:
            async with asyncio.timeout(self.lease.length_seconds):
                while not self._is_settled():
                    self.renew_now.set()
                    await self.answered.wait()
        except TimeoutError:
            raise OwnershipLost("the database did not confirm the claim in time") from None

    def keep_until(self, loop_time: float) -> None:
        """Hold the OLT until it can no longer be working on our requests."""
        self._kept_until = max(self._kept_until, loop_time)

    async def let_rest(self) -> None:
        """Wait until the OLT works on no request of this run."""
        await asyncio.sleep(max(self._kept_until - asyncio.get_running_loop().time(), 0.0))

    def _is_settled(self) -> bool:
        """Return whether the claim is certain; OwnershipLost when it is gone."""
        try:
            self.check()
        except OwnershipUnproven:
            return False
        return True

    def renewed(self, began_at: ClockReading) -> None:
        """Continue: the database confirmed the ownership after this moment."""
        self.lease.renew(began_at)
        self._wake()

    async def should_yield(self) -> bool:
        """Return whether this run gives way to a due node of its OLT."""
        running = self.clock.monotonic() - self.started_at
        if running < self.yield_after_seconds:
            return False
        is_due = await self.another_is_due()
        return should_yield(
            running_seconds=running, another_is_due=is_due, yield_after_seconds=self.yield_after_seconds
        )

    def show(self, progress: RunProgress) -> None:
        self.progress = progress

    def wants_rows(self) -> bool:
        """Return whether the run is long, and so is the time since it last handed rows over."""
        return self.clock.monotonic() - max(self.started_at, self._handed_over_at) >= self.hand_over_seconds

    async def hand_over(self, *rows: Rows) -> None:
        """Store rows now, and show at once how far the run has come."""
        await self.store_part(rows)
        self._handed_over_at = self.clock.monotonic()
        self.renew_now.set()

    def lose(self, reason: str) -> None:
        """Stop every further packet; the first reason stays."""
        self.lost_because = self.lost_because or reason
        self._wake()

    def _wake(self) -> None:
        self.answered.set()
        self.answered.clear()


logger = logging.getLogger(__name__)

T = TypeVar("T")

# Of a read that takes longer, what is finished is stored this often; of the first one of a node sooner, since nothing
# of it is there yet.
HAND_OVER_SECONDS, FIRST_HAND_OVER_SECONDS = 10.0, 1.0
# How far runs have come is written this often, in one statement for all of them, while it changes.
PROGRESS_SECONDS = 2.0
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
    hints: Hints = field(default_factory=Hints)
    _claims: dict[HeldToken, tuple[Claim, Run]] = field(default_factory=dict)
    _renew_now: Event = field(default_factory=Event)
    # Renews the claims of all runs; it lives while there is one.
    _renewing: asyncio.Task[None] | None = None

    async def run(self, execution_id: int, token: int | None) -> bool:
        """Run the master and then each chain member in turn; end early when the claim is lost.

        False says that there was nothing to take.
        """
        began_at = self.clock.reading()
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
        """Let a run of this process end before its next packet; runs of other processes are ignored."""
        for claim in self._claims_of(execution_id):
            claim.lose(reason)

    def look(self, execution_id: int) -> None:
        """Let the runs of this process renew their claims at once, and so learn whether this one has to stop."""
        if self._claims_of(execution_id):
            self._renew_now.set()

    def _claims_of(self, execution_id: int) -> list[Claim]:
        return [claim for claim, _ in self._claims.values() if claim.execution_id == execution_id]

    async def _run_member(self, run: Run, began_at: ClockReading) -> tuple[Run | None, ClockReading]:
        async with self._holding(run, began_at) as claim:
            collected = await self._guarded(run, self._collect(run, claim))
            await claim.let_rest()
        began_at = self.clock.reading()
        try:
            finished = await self._store(run, collected)
        finally:
            collected.release()
        if finished is None:
            logger.warning("node.result_refused olt=%s execution=%s", run.olt_id, run.execution_id)
            return None, began_at
        failure = finished.ending.failure
        logger.info(
            "node.ended olt=%s node=%s execution=%s state=%s failure=%s",
            run.olt_id,
            run.node_id,
            run.execution_id,
            finished.ending.state,
            failure.kind if failure else "",
        )
        return finished.following, began_at

    async def _collect(self, run: Run, claim: Claim) -> Collected:
        await claim.confirm()
        return await self.collector.collect(run.request, claim)

    async def _store(self, run: Run, collected: Collected) -> Finished | None:
        """Finish with the rows, or, when they cannot be stored, without them: that is a failed try."""
        finished = await self._guarded(run, self.database.run_long(self._finish, run, collected))
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
    async def _holding(self, run: Run, began_at: ClockReading) -> AsyncIterator[Claim]:
        """Keep the claim alive while the block runs."""
        claim = Claim(
            run.execution_id,
            run.token,
            HeldLease(self.times.lease_seconds, began_at),
            self.clock,
            another_is_due=partial(self._is_another_due, run),
            yield_after_seconds=self.times.yield_after_seconds,
            started_at=began_at.monotonic,
            store_part=partial(self._hand_over, run),
            renew_now=self._renew_now,
            hand_over_seconds=FIRST_HAND_OVER_SECONDS if run.request.is_first else HAND_OVER_SECONDS,
        )
        held = run.execution_id, run.token
        self._claims[held] = claim, run
        self.hints.held(run)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew_claims(), name="renewals")
            self._renewing.add_done_callback(self._renewals_ended)
        try:
            yield claim
        finally:
            del self._claims[held]
            self.hints.let_go(run)
            if not self._claims and self._renewing:
                self._renewing.cancel()
                self._renewing = None

    def _renewals_ended(self, task: asyncio.Task[None]) -> None:
        """Report a defect, and let the next run begin again: what is collected while the leases hold is not lost."""
        if not task.cancelled() and task.exception():
            logger.error("lease.renewal_failed claims=%s", len(self._claims), exc_info=task.exception())
            self._renewing = None

    async def _renew_claims(self) -> None:
        """Keep the claims of all runs of this process alive, together."""
        while True:
            await self._wait_for_renewal()
            self._renew_now.clear()
            held = {key: claim for key, (claim, _) in self._claims.items() if not claim.lost_because}
            began_at = self.clock.reading()
            try:
                progress = {claim.execution_id: claim.progress for claim in held.values() if claim.progress}
                renewals = await self.database.run(store.renew, list(held), progress)
            except Error:
                # Not lost yet: the leases themselves run out if the database stays away.
                logger.warning("lease.not_renewed claims=%s", len(held), exc_info=True)
                continue
            for key, renewal in renewals.items():
                held[key].written_progress = progress.get(key[0])
                self._note_renewal(held[key], renewal, began_at)

    async def _wait_for_renewal(self) -> None:
        """Wait for the event, but not for longer than leases allow, nor when runs have come further."""
        try:
            async with asyncio.timeout(self.times.lease_seconds / RENEWALS_PER_LEASE):
                while True:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(PROGRESS_SECONDS):
                            await self._renew_now.wait()
                            return
                    if any(claim.progress != claim.written_progress for claim, _run in self._claims.values()):
                        return
        except TimeoutError:
            return

    def _note_renewal(self, claim: Claim, renewal: Renewal, began_at: ClockReading) -> None:
        if renewal is not Renewal.RENEWED:
            claim.lose("cancelled" if renewal is Renewal.CANCELLED else "another owner holds the claim")
            return
        claim.renewed(began_at)
        # Its run may have ended meanwhile, and others would take it for held.
        if held := self._claims.get((claim.execution_id, claim.token)):
            self.hints.held(held[1])

    async def _hand_over(self, run: Run, rows: Sequence[Rows]) -> None:
        if not await self.database.run_long(self._save_part, run, rows):
            raise OwnershipLost("another owner holds the claim")

    @transaction.atomic
    def _save_part(self, run: Run, rows: Sequence[Rows]) -> bool:
        """Store rows of a run that continues; its token is held, so no one claims the OLT meanwhile."""
        store.hold_token(run.olt_id)
        is_held = store.is_held(run)
        if is_held:
            store.save_rows(run.olt_id, rows, now=self.clock.now())
        return is_held

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
        store.save_rows(run.olt_id, collected.rows, now=now)
        following = open_next(run, ending, owner=self.owner, now=now)
        finished = Finished(run, ending, collected.was_heard, following)
        for step in self.finishing_steps:
            step(finished, now)
        return finished


# Most answers come within it, and a supervisor waits that long.
LAST_ANSWERS_SECONDS = 3.0


class Executor(Protocol):
    """Takes an execution and returns at once."""

    def start(self, execution_id: int, token: int) -> None:
        """See to it that a runner takes the execution; asked twice, the second time changes nothing."""

    def cancel(self, execution_id: int, reason: str) -> None:
        """Let the execution end before its next packet, if it runs here."""


async def drain(tasks: Mapping[asyncio.Task[Any], int], *, timeout_seconds: float) -> set[int]:
    """Let tasks of executions finish, then cancel them; returns the executions that did not end even then.

    A session ends with the answer to its last question or its time-out; a slow OLT takes longer than a stop may.
    """
    if not tasks:
        return set()
    _, left = await asyncio.wait(tasks, timeout=timeout_seconds)
    asking = {task: tasks[task] for task in left}
    for task in left:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=LAST_ANSWERS_SECONDS)
    return {asking[task] for task in left}


class InProcessExecutor:
    """Runs each execution as a task of this event loop and reports when one has ended."""

    def __init__(self, runner: NodeRunner, on_task_completed: Callable[[], None]) -> None:
        self._runner = runner
        self._on_task_completed = on_task_completed
        self._tasks: dict[asyncio.Task[bool], int] = {}

    def start(self, execution_id: int, token: int) -> None:
        task = asyncio.create_task(self._runner.run(execution_id, token), name=f"execution-{execution_id}")
        self._tasks[task] = execution_id
        task.add_done_callback(self._ended)

    def cancel(self, execution_id: int, reason: str) -> None:
        self._runner.cancel(execution_id, reason)

    async def drain(self, *, timeout_seconds: float) -> set[int]:
        """Let what is in hand finish, then break it off; returns those that still wait for an answer of their OLT."""
        return await drain(self._tasks, timeout_seconds=timeout_seconds)

    def _ended(self, task: asyncio.Task[bool]) -> None:
        del self._tasks[task]
        if not task.cancelled() and task.exception():
            logger.error("execution.lost %s", task.get_name(), exc_info=task.exception())
        self._on_task_completed()

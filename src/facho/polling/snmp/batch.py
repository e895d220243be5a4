"""GETs of many ONUs: all columns of an ONU in one packet, many ONUs in each, and failures narrowed down by halves.

A bad ONU costs a number of packets that grows with the logarithm of the batch, and is named. A silent agent is
distinguished from a silent ONU by asking for its uptime, so a dead one costs a few time-outs and not one for each ONU.
"""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from facho.polling.snmp.ber import Oid, VarBind
from facho.polling.snmp.errors import AgentError, AgentTimeout, BudgetSpent, MalformedMessage, SnmpError, TooBig
from facho.polling.snmp.oid import SYS_UP_TIME
from facho.polling.snmp.session import NO_DEADLINE, PageSize, Session, Traffic
from facho.polling.snmp.target import CHEAP, LIVE, Patience

# Errors of single ONUs after which an agent that never gave one good answer is left alone.
_HOPELESS_AFTER = 8


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How to read. A packet holds at most `batch_size` ONUs and `max_varbinds` varbinds, but always a whole ONU."""

    batch_size: int = 200
    max_varbinds: int = 60
    # ONUs per packet that worked in an earlier batch of the same columns.
    learned_onus_per_packet: int | None = None
    # ONUs per packet that did not.
    failing_onus_per_packet: int | None = None
    # ONUs of the first packet where nothing was learned, if a time-out is dear; None: as many as fit.
    first_onus_per_packet: int | None = None
    patience: Patience = LIVE
    deadline: float = NO_DEADLINE


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Results by position: `answers` of ONUs, None where `failures` or `failure` says why."""

    answers: list[list[VarBind] | None]
    failures: dict[int, SnmpError]
    failure: SnmpError | None
    traffic: Traffic
    learned_onus_per_packet: int | None
    failing_onus_per_packet: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every ONU was asked: each has an answer or a failure."""
        return self.failure is None


async def get_batched(
    session: Session, onus: Sequence[Sequence[Oid]], options: BatchOptions | None = None
) -> BatchResult:
    """Get the OIDs of each ONU; SNMP failures are returned, not raised.

    As many packets are in flight as the session allows. `failures` has ONUs that cannot be read though the agent
    answers; `failure` is what ended the batch early (silence, lost permission, time budget).
    """
    batch = _Batch(session, onus, options or BatchOptions())
    before = replace(session.traffic)
    failure: SnmpError | None = None
    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(session.limits.max_in_flight):
                workers.create_task(batch.work())
    except* SnmpError as group:
        # Its traceback would keep the answers alive in a cycle.
        failure = _first(group).with_traceback(None)
    return BatchResult(
        answers=batch.answers,
        failures=batch.failures,
        failure=failure,
        traffic=session.traffic.since(before),
        learned_onus_per_packet=batch.size.learned,
        failing_onus_per_packet=batch.size.limit,
    )


def _first(group: BaseExceptionGroup[SnmpError]) -> SnmpError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


class _Group(NamedTuple):
    """ONUs, by position, sharing a packet; fresh ones are as many as should fit."""

    positions: Sequence[int]
    is_fresh: bool


@dataclass(slots=True)
class _Batch:
    session: Session
    onus: Sequence[Sequence[Oid]]
    options: BatchOptions
    answers: list[list[VarBind] | None] = field(init=False)
    failures: dict[int, SnmpError] = field(init=False, default_factory=dict)
    size: PageSize = field(init=False)
    _fresh: deque[int] = field(init=False)
    _narrowed: deque[_Group] = field(init=False, default_factory=deque)
    _has_answered: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.answers = [None] * len(self.onus)
        widest = max(map(len, self.onus), default=1)
        fitting = max(1, self.options.max_varbinds // max(1, widest))
        self.size = PageSize(
            min(self.options.batch_size, fitting),
            self.options.learned_onus_per_packet,
            start=self.options.first_onus_per_packet,
            limit=self.options.failing_onus_per_packet,
        )
        self._fresh = deque(range(len(self.onus)))

    async def work(self) -> None:
        while self._narrowed or self._fresh:
            if self._narrowed:
                group = self._narrowed.popleft()
            else:
                fitting = min(self.size.rows, len(self._fresh))
                group = _Group([self._fresh.popleft() for _ in range(fitting)], is_fresh=True)
            try:
                oids = [oid for position in group.positions for oid in self.onus[position]]
                patience = self._patience(len(group.positions))
                varbinds = await self.session.get(oids, patience=patience, deadline=self.options.deadline)
            except BudgetSpent:
                raise
            except AgentTimeout as error:
                await self._check_agent_lives(error)
                self._narrow(group, error)
            except (AgentError, MalformedMessage) as error:
                self._narrow(group, error)
            else:
                self._store(group, varbinds)

    def _patience(self, onus: int) -> Patience:
        patience = self.options.patience
        if onus == 1:
            return patience
        is_search = self.options.first_onus_per_packet is not None and self._has_answered
        # The first silence may be a lost packet; after the second, narrowing tells more than repeating. While the size
        # is searched for, one is enough. It is waited for in full: the OLT may still work on the request.
        tries = 1 if is_search and not self.size.has_proof(onus) else 2
        return replace(patience, tries=min(tries, patience.tries))

    async def _check_agent_lives(self, silence: AgentTimeout) -> None:
        """Raise the timeout unless the agent answers the cheapest request, in whatever way."""
        timeout_s = min(CHEAP.timeout_s, self.options.patience.timeout_s)
        patience = Patience(timeout_s, max(2, self.options.patience.tries))
        try:
            await self.session.get([SYS_UP_TIME], patience=patience, deadline=self.options.deadline)
        except AgentTimeout as error:
            raise silence from error
        except (AgentError, MalformedMessage):
            return

    def _narrow(self, group: _Group, error: SnmpError) -> None:
        positions = group.positions
        if len(positions) == 1:
            self.failures[positions[0]] = error.with_traceback(None)
            self.size.size_was_not_the_cause()
            if not self._has_answered and len(self.failures) >= _HOPELESS_AFTER:
                raise error
            return
        if group.is_fresh and isinstance(error, AgentTimeout | TooBig):
            self.size.page_failed()
        middle = math.ceil(len(positions) / 2)
        halves = (positions[middle:], positions[:middle])
        self._narrowed.extendleft(_Group(half, is_fresh=False) for half in halves)

    def _store(self, group: _Group, varbinds: list[VarBind]) -> None:
        self._has_answered = True
        if len(group.positions) >= self.size.rows:
            self.size.page_came()
        start = 0
        for position in group.positions:
            end = start + len(self.onus[position])
            self.answers[position] = varbinds[start:end]
            start = end

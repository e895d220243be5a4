"""Decides which due nodes, waiting runs and reads of single ONUs start, on which poller, and why the others wait.

Discovery comes before GET, also on an OLT's first day: before its first discovery is over, its ONUs are unknown. A read
of ONUs would ask nothing, end well, and teach that it takes no time.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from facho.polling.domain.ports import CLOCK_TOLERANCE
from facho.polling.domain.retry import PROBE_PAUSES_SECONDS

DEFAULT_GROUP = ""
# What an operator writes for the default group, where an empty text means that nothing changes.
NO_GROUP = "none"
# Part of the names of queues, where a dot divides.
_NAME = re.compile(r"[a-z0-9_-]{1,40}")


def is_group_name(text: str) -> bool:
    return text != NO_GROUP and _NAME.fullmatch(text) is not None


def numbers_by_group(start_pollers: int, groups: Mapping[str, int]) -> dict[str, range]:
    """Number the pollers of the default group from 0, then those of the other groups in order."""
    numbers, first = {DEFAULT_GROUP: range(start_pollers)}, start_pollers
    for group, count in groups.items():
        numbers[group] = range(first, first + count)
        first += count
    return numbers


def serving_group(group: str, known: Collection[str]) -> str:
    """Return the group that serves an OLT: without configured groups all share the pollers."""
    return DEFAULT_GROUP if set(known) <= {DEFAULT_GROUP} else group


def queue_of(name: str, group: str) -> str:
    """Return the queue of a group; the default group has the plain name."""
    return f"{name}.{group}" if group else name


def group_of(queue: str) -> str:
    return queue.partition(".")[2]


# One scale for everything that is ordered: 0 to 100, larger first (decision D11).
MAX_PRIORITY = 100


@dataclass(frozen=True, slots=True)
class DueNode:
    """A master whose time has come (`due_at`), whose run a person asked for, or whose execution continues."""

    node_id: int
    olt_id: int
    due_at: datetime
    interval_seconds: int
    priority: int
    rank: int
    is_run_now: bool = False
    # The waiting execution that continues, after a failed attempt or a pause; None for a new run.
    execution_id: int | None = None
    # Of a waiting execution: whether its last try failed (else it gave way), and the node's next slot.
    is_retry: bool = False
    next_run_at: datetime | None = None
    # Its hours are over: it continues when they begin again, and no other run of its node starts meanwhile.
    is_out_of_hours: bool = False
    failures: int = 0
    is_olt_silent: bool = False
    # Its OLT is silent, and another node is already trying again whether it answers.
    waits_for_scout: bool = False
    # It reads ONUs, and the first discovery of its OLT is not over: they are unknown.
    waits_for_discovery: bool = False
    # Whose pollers reach its OLT.
    group: str = DEFAULT_GROUP

    @property
    def is_held(self) -> bool:
        """Whether it waits for more than its OLT and a poller, even if requested by an operator."""
        return self.waits_for_scout or self.waits_for_discovery

    def is_superseded(self, now: datetime) -> bool:
        """Return whether the node's next slot has come: it runs instead of the retry."""
        return self.is_retry and self.next_run_at is not None and self.next_run_at <= now

    def delay(self, now: datetime) -> timedelta:
        """Return how late it is; 0 if early or waiting for a first discovery."""
        return timedelta(0) if self.waits_for_discovery else max(now - self.due_at, timedelta(0))

    def is_delayed(self, now: datetime) -> bool:
        """Whether it is late by more than its interval, so that a slot was lost."""
        return self.delay(now) > timedelta(seconds=self.interval_seconds)


class WaitReason(StrEnum):
    OLT_BUSY = "olt_busy"
    NO_POLLER = "no_poller"
    OLT_UNREACHABLE = "olt_unreachable"
    FIRST_DISCOVERY = "first_discovery"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A node and the poller that takes it; with the reason it waited before, if any."""

    node: DueNode
    poller_id: int
    waited_because: WaitReason | None = None
    # The group of the poller.
    group: str = DEFAULT_GROUP


@dataclass(frozen=True, slots=True)
class TickPlan:
    """What one tick does: `start` by urgency, `waiting` with reasons."""

    start: tuple[Assignment, ...]
    waiting: tuple[tuple[DueNode, WaitReason], ...]


def plan_tick(
    due: Iterable[DueNode], *, free_pollers: Sequence[int], busy_olts: Collection[int], now: datetime
) -> TickPlan:
    """Give each free poller the most urgent free OLT, and start that OLT's first node."""
    busy = set(busy_olts)
    nodes = {node.node_id: node for node in due}.values()
    startable = sorted((node for node in nodes if not node.is_held), key=lambda node: node.olt_id)
    queues = [order_within_olt(queue, now) for _, queue in groupby(startable, key=lambda node: node.olt_id)]
    heads = [queue[0] for queue in queues if queue[0].olt_id not in busy]
    start = tuple(
        Assignment(node, poller_id)
        for node, poller_id in zip(order_between_olts(heads, now), free_pollers, strict=False)
    )
    started = {assignment.node.node_id for assignment in start}
    busy.update(assignment.node.olt_id for assignment in start)
    waiting = [node for node in nodes if node.node_id not in started]
    return TickPlan(start, tuple((node, _reason(node, busy)) for node in order_between_olts(waiting, now)))


def plan_groups(
    due: Iterable[DueNode],
    *,
    free_pollers: Mapping[str, Sequence[int]],
    busy_olts: Collection[int],
    now: datetime,
) -> TickPlan:
    """Plan each poller group separately; without groups all share the pollers, and unknown groups wait."""
    if set(free_pollers) <= {DEFAULT_GROUP}:
        return plan_tick(due, free_pollers=free_pollers.get(DEFAULT_GROUP, ()), busy_olts=busy_olts, now=now)
    members: dict[str, list[DueNode]] = {}
    for node in due:
        members.setdefault(node.group, []).append(node)
    plans = {
        group: plan_tick(nodes, free_pollers=free_pollers.get(group, ()), busy_olts=busy_olts, now=now)
        for group, nodes in members.items()
    }
    start = [replace(assignment, group=group) for group, plan in plans.items() for assignment in plan.start]
    reasons = {node: reason for plan in plans.values() for node, reason in plan.waiting}
    return TickPlan(tuple(start), tuple((node, reasons[node]) for node in order_between_olts(reasons, now)))


def order_within_olt(nodes: Iterable[DueNode], now: datetime) -> list[DueNode]:
    """Sort one OLT's nodes: requested, then starving, then discovery before the rest (decision D11)."""

    def key(node: DueNode) -> tuple[bool, float, int, timedelta, int, int]:
        starving = node.delay(now).total_seconds() / node.interval_seconds if node.is_delayed(now) else 0.0
        return (not node.is_run_now, -starving, -node.rank, -node.delay(now), -node.priority, node.node_id)

    return sorted(nodes, key=key)


def order_between_olts(nodes: Iterable[DueNode], now: datetime) -> list[DueNode]:
    """Sort nodes of several OLTs: requested, then delayed, then by delay, then by priority."""

    def key(node: DueNode) -> tuple[bool, bool, timedelta, int, int]:
        return (not node.is_run_now, not node.is_delayed(now), -node.delay(now), -node.priority, node.node_id)

    return sorted(nodes, key=key)


def _reason(node: DueNode, busy_olts: Collection[int]) -> WaitReason:
    if node.waits_for_discovery:
        return WaitReason.FIRST_DISCOVERY
    if node.waits_for_scout:
        return WaitReason.OLT_UNREACHABLE
    return WaitReason.OLT_BUSY if node.olt_id in busy_olts else WaitReason.NO_POLLER


BUCKETS_SECONDS = (5, 10, 30, 60, 300, 600)


def lateness_histogram(delays: Iterable[timedelta]) -> dict[int, int]:
    seconds = [delay.total_seconds() for delay in delays]
    return {bound: sum(late >= bound for late in seconds) for bound in BUCKETS_SECONDS}


# More than this many waiting nodes cannot be an ordinary burst.
OVERLOAD_LENGTH = 800


class NodeQueue:
    """Waiting nodes in the order free pollers take them; each node appears once."""

    def __init__(self, nodes: Iterable[DueNode] = (), *, overload_length: int = OVERLOAD_LENGTH) -> None:
        self._nodes: dict[int, DueNode] = {}
        self._overload_length = overload_length
        for node in nodes:
            self.put(node)

    def put(self, node: DueNode) -> None:
        self._nodes[node.node_id] = node

    def qsize(self) -> int:
        return len(self._nodes)

    def peek(self, count: int, *, now: datetime) -> list[DueNode]:
        """Return the first `count` nodes without removing them."""
        return order_between_olts(self._nodes.values(), now)[:count]

    def is_overload(self, *, now: datetime) -> bool:
        """Whether a node lost a slot by waiting, or too many wait."""
        return self._is_too_long() or bool(self._delayed(now))

    def is_held_by_silence(self, *, now: datetime) -> bool:
        """Whether an overload comes only from OLTs that do not answer, not from too few pollers."""
        delayed = self._delayed(now)
        return bool(delayed) and not self._is_too_long() and all(node.is_olt_silent for node in delayed)

    def _is_too_long(self) -> bool:
        return self.qsize() > self._overload_length

    def _delayed(self, now: datetime) -> list[DueNode]:
        return [node for node in self._nodes.values() if node.is_delayed(now)]


WINDOW = timedelta(seconds=60)
SATURATED_ABOVE = 75.0
# Lower than the other bound, so that a load around it does not make the light flicker.
RECOVERED_BELOW = 65.0

Span = tuple[datetime, datetime | None]


def busy_seconds(spans: Iterable[Span], *, now: datetime) -> float:
    """Sum the seconds in the window with runs in progress; an open span lasts until now."""
    begin = now - WINDOW
    return sum(
        max((min(end or now, now) - max(start, begin)).total_seconds(), 0.0) for start, end in spans if start <= now
    )


def busy_percentage(spans: Iterable[Span], *, pollers: int, now: datetime) -> float:
    """Return the used share of the pollers' time in the window, 0 to 100."""
    available = pollers * WINDOW.total_seconds()
    return min(busy_seconds(spans, now=now) / available * 100, 100.0) if available else 0.0


def is_saturated(percentage: float, *, was_saturated: bool) -> bool:
    """Apply hysteresis: saturation ends below a lower bound than it begins at."""
    return percentage > SATURATED_ABOVE if not was_saturated else percentage >= RECOVERED_BELOW


# A scout that asks later holds no other node: a silent OLT is asked as often as one whose nodes are suspended.
SCOUT_ASKS_WITHIN = timedelta(seconds=max(PROBE_PAUSES_SECONDS))


@dataclass(frozen=True, slots=True)
class Candidates:
    """`ready` may start now, `later` waits for its time, and `superseded` ends because its next slot has come."""

    ready: tuple[DueNode, ...]
    later: tuple[DueNode, ...]
    superseded: tuple[DueNode, ...]


def choose_candidates(due: Iterable[DueNode], waiting: Iterable[DueNode], now: datetime) -> Candidates:
    """Join due nodes and waiting runs, each node once; `due` holds scouts of silent OLTs before their time."""
    runs = list(waiting)
    going_on = {run.node_id: run for run in runs if not run.is_superseded(now)}
    known = [node for node in due if node.node_id not in going_on]
    known += [run for run in going_on.values() if not run.is_out_of_hours]
    ready = [node for node in known if node.due_at <= now or node.is_run_now]
    later = [node for node in known if node.due_at > now and node.execution_id and not node.is_run_now]
    if scouts := choose_scouts(known, now):
        ready = [
            replace(node, waits_for_scout=not node.is_run_now and scouts.get(node.olt_id, node.node_id) != node.node_id)
            for node in ready
        ]
    return Candidates(
        tuple(ready),
        tuple(sorted(later, key=lambda node: node.due_at)),
        tuple(run for run in runs if run.is_superseded(now)),
    )


def choose_scouts(nodes: Iterable[DueNode], now: datetime) -> dict[int, int]:
    """Name for each silent OLT the node that asks again: the one that failed most among those that ask soon."""
    scouts: dict[int, DueNode] = {}
    for node in nodes:
        if node.is_olt_silent and node.failures and node.due_at <= now + SCOUT_ASKS_WITHIN:
            best = scouts.get(node.olt_id, node)
            scouts[node.olt_id] = min(best, node, key=lambda n: (-n.failures, n.due_at, n.node_id))
    return {olt_id: node.node_id for olt_id, node in scouts.items()}


def ready_at(resume_at: datetime, *, longest_pause_seconds: float, now: datetime) -> datetime:
    """Return when what waits continues; now, if that is longer than it ever has to wait: the clock was set back."""
    longest_wait = timedelta(seconds=longest_pause_seconds) + CLOCK_TOLERANCE
    return resume_at if resume_at <= now + longest_wait else now


# No one watches a page for longer; an answer that comes later is the next poll's.
EXPIRES_AFTER = timedelta(minutes=5)
# A person's request goes before every node, so a cap keeps requests from monopolising an OLT.
MAX_WAITING_PER_OLT = 5


@dataclass(frozen=True, slots=True)
class WantedRead:
    """A read that waits, and whose pollers reach its OLT: `read_id` is an ONU's, or that of a hint."""

    read_id: int
    olt_id: int
    requested_at: datetime
    group: str = DEFAULT_GROUP
    # A notification of the OLT asks for it, not a person.
    is_hint: bool = False


@dataclass(frozen=True, slots=True)
class ReadStart:
    read: WantedRead
    poller_id: int
    # The group of the poller.
    group: str = DEFAULT_GROUP


def plan_reads(
    wanted: Iterable[WantedRead], *, free_pollers: Mapping[str, Sequence[int]], busy_olts: Collection[int]
) -> tuple[ReadStart, ...]:
    """Give the oldest request of each free OLT a poller of its group; people before hints."""
    left = {group: list(numbers) for group, numbers in free_pollers.items()}
    busy, starts = set(busy_olts), []
    for read in sorted(wanted, key=lambda read: (read.is_hint, read.requested_at, read.read_id)):
        group = serving_group(read.group, free_pollers)
        if read.olt_id not in busy and left.get(group):
            busy.add(read.olt_id)
            starts.append(ReadStart(read, left[group].pop(0), group))
    return tuple(starts)


class FirstDiscovery(StrEnum):
    """State of an OLT's first discovery; only a coming one ends the wait by itself."""

    DONE = "done"
    COMING = "coming"
    SUSPENDED = "suspended"
    DISABLED = "disabled"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class DiscoveryNode:
    is_enabled: bool
    is_suspended: bool = False


def judge_first_discovery(*, is_discovered: bool, nodes: Iterable[DiscoveryNode]) -> FirstDiscovery:
    if is_discovered:
        return FirstDiscovery.DONE
    known = list(nodes)
    if not known:
        return FirstDiscovery.MISSING
    enabled = [node for node in known if node.is_enabled]
    if not enabled:
        return FirstDiscovery.DISABLED
    return FirstDiscovery.SUSPENDED if all(node.is_suspended for node in enabled) else FirstDiscovery.COMING


def must_wait_for_discovery(first: FirstDiscovery, *, reads_onus: bool) -> bool:
    """Whether a node has to wait; a discovery finds ONUs and needs none."""
    return reads_onus and first is not FirstDiscovery.DONE


def owes_slots(first: FirstDiscovery, *, reads_onus: bool) -> bool:
    """Whether slots count as owed: not while discovery is coming; one that is not is a fault operators must see."""
    return not reads_onus or first is not FirstDiscovery.COMING


def is_discovery_over(*, is_complete: bool, is_given_up: bool, found_any: bool) -> bool:
    """Whether an ended discovery counts as the first; agents that abort every walk have to be read too."""
    return is_complete or (is_given_up and found_any)

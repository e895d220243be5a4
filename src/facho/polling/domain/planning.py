"""Decides which due nodes start now, on which poller, and why the others wait."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from facho.polling.domain.poller_groups import DEFAULT_GROUP


@dataclass(frozen=True, slots=True)
class DueNode:
    """A master node whose time has come, or whose run a person asked for."""

    node_id: int
    olt_id: int
    due_at: datetime
    interval_seconds: int
    priority: int
    rank: int
    is_run_now: bool = False
    # The waiting execution that goes on, after a failed try or after it gave way; None for a new run.
    execution_id: int | None = None
    failures: int = 0
    is_olt_silent: bool = False
    # Its OLT is silent, and another node is already trying again whether it answers.
    waits_for_scout: bool = False
    # Whose pollers reach its OLT.
    group: str = DEFAULT_GROUP

    def delay(self, now: datetime) -> timedelta:
        """Return how late the node is; a node that is early is not late at all."""
        return max(now - self.due_at, timedelta(0))

    def is_delayed(self, now: datetime) -> bool:
        """Tell whether it is late by more than its own interval, so that a whole slot was lost."""
        return self.delay(now) > timedelta(seconds=self.interval_seconds)


class WaitReason(StrEnum):
    """Why a due node does not start."""

    OLT_BUSY = "olt_busy"
    NO_POLLER = "no_poller"
    OLT_UNREACHABLE = "olt_unreachable"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A node and the poller that takes it; why it did not start when it was looked at before, if it was."""

    node: DueNode
    poller_id: int
    waited_because: WaitReason | None = None
    # The group of the poller.
    group: str = DEFAULT_GROUP


@dataclass(frozen=True, slots=True)
class TickPlan:
    """What one tick does: `start` in order of urgency, `waiting` with the reason of each."""

    start: tuple[Assignment, ...]
    waiting: tuple[tuple[DueNode, WaitReason], ...]


def plan_tick(
    due: Iterable[DueNode], *, free_pollers: Sequence[int], busy_olts: Collection[int], now: datetime
) -> TickPlan:
    """Give each free poller the most urgent OLT that is not busy, and start that OLT's first node."""
    busy = set(busy_olts)
    nodes = {node.node_id: node for node in due}.values()
    queues = _queues_by_olt([node for node in nodes if not node.waits_for_scout], now)
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
    """Plan each group of pollers by itself, so that a site that stands still takes no poller of another.

    Where no groups are set up, all nodes share the pollers. Else a node of an unknown group waits for a poller.
    """
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
    """Sort one OLT's nodes: asked for, then starving, then discovery before the rest (decision D11)."""

    def key(node: DueNode) -> tuple[bool, float, int, timedelta, int, int]:
        starving = node.delay(now).total_seconds() / node.interval_seconds if node.is_delayed(now) else 0.0
        return (not node.is_run_now, -starving, -node.rank, -node.delay(now), -node.priority, node.node_id)

    return sorted(nodes, key=key)


def order_between_olts(nodes: Iterable[DueNode], now: datetime) -> list[DueNode]:
    """Sort nodes of several OLTs: asked for, then delayed, then larger delay, then larger priority."""

    def key(node: DueNode) -> tuple[bool, bool, timedelta, int, int]:
        return (not node.is_run_now, not node.is_delayed(now), -node.delay(now), -node.priority, node.node_id)

    return sorted(nodes, key=key)


def _queues_by_olt(due: Iterable[DueNode], now: datetime) -> list[list[DueNode]]:
    by_olt = groupby(sorted(due, key=lambda node: node.olt_id), key=lambda node: node.olt_id)
    return [order_within_olt(nodes, now) for _, nodes in by_olt]


def _reason(node: DueNode, busy_olts: Collection[int]) -> WaitReason:
    if node.waits_for_scout:
        return WaitReason.OLT_UNREACHABLE
    return WaitReason.OLT_BUSY if node.olt_id in busy_olts else WaitReason.NO_POLLER

"""Keeps the number of pollers, claims for them, what follows the end of a run, and the leader's lease."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import F

from facho.executions import store as executions
from facho.executions.models import Execution, Origin
from facho.executions.onu_reads import claim_reads
from facho.executions.runner import Finished
from facho.executions.store import Claimed, ClaimRequest
from facho.executions.waiting import resume
from facho.hosts.store import Device, end_probes, schedule_probe
from facho.polling.domain.execution_state import ACTIVE
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.onu_reads import ReadStart
from facho.polling.domain.planning import Assignment
from facho.polling.domain.poller_groups import numbers_by_group
from facho.polling.domain.quota import SkipReason
from facho.polling.domain.suspension import UNREACHABLE
from facho.snmp_jobs import store as snmp_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import Schedule
from facho.zabbix_pollers.models import LeaderLease, Poller, PollerStatus
from facho.zabbix_pollers.poller import free, hand_on, occupy

logger = logging.getLogger(__name__)

LEADER = "scheduler"


@transaction.atomic
def save_poller_count(count: int, groups: Mapping[str, int] | None = None) -> None:
    """Have exactly the pollers 0 to count - 1 and those of the groups; one that is busy is removed when it is done."""
    numbers = numbers_by_group(count, groups or {})
    total = sum(map(len, numbers.values()))
    Poller.objects.bulk_create([Poller(poller_id=number) for number in range(total)], ignore_conflicts=True)
    Poller.objects.filter(poller_id__gte=total, status=PollerStatus.FREE).delete()
    for group, own in numbers.items():
        Poller.objects.filter(poller_id__in=own).exclude(group=group).update(group=group)


def claim_assignments(assignments: Sequence[Assignment], *, owner: str, now: datetime) -> list[Claimed]:
    """Claim OLTs and pollers for the planned starts, and move the nodes to their next slots; all or nothing.

    Nothing when somebody moves one of the nodes at this very moment: what is still due starts in the next tick.
    """
    try:
        return _claim(assignments, owner=owner, now=now)
    except snmp_jobs.NodeMoved:
        return []


@transaction.atomic
def _claim(assignments: Sequence[Assignment], *, owner: str, now: datetime) -> list[Claimed]:
    # First of all the tokens: what is read under them, no other claim changes, however old the plan is.
    tokens = executions.next_tokens(assignment.node.olt_id for assignment in assignments)
    fresh = [assignment for assignment in assignments if assignment.node.execution_id is None]
    waited = [assignment for assignment in assignments if assignment.node.execution_id is not None]
    resumed = [_resume(a, tokens[a.node.olt_id], owner, now) for a in waited]
    claimed = _claim_fresh(fresh, tokens, owner=owner, now=now) + [claim for claim in resumed if claim]
    occupy(claimed, delayed=_delayed_nodes(assignments, now), now=now)
    return claimed


@transaction.atomic
def claim_read_starts(starts: Sequence[ReadStart], *, owner: str, now: datetime) -> list[Claimed]:
    """Claim OLTs and pollers for the planned reads of single ONUs; all or nothing."""
    tokens = executions.next_tokens(start.read.olt_id for start in starts)
    claimed = claim_reads(starts, tokens, owner=owner, now=now)
    occupy(claimed, delayed=(), now=now)
    return claimed


def _claim_fresh(
    assignments: Sequence[Assignment], tokens: Mapping[int, int], *, owner: str, now: datetime
) -> list[Claimed]:
    schedules = {s.node.id: s for s in snmp_jobs.load_schedules([a.node.node_id for a in assignments], now)}
    starting = [a for a in assignments if a.node.node_id in schedules and schedules[a.node.node_id].is_run]
    requests = [_request(a, schedules[a.node.node_id]) for a in starting]
    claimed = executions.claim(requests, owner=owner, now=now, tokens=tokens)
    refused = {r.node_id for r in requests} - {claim.request.node_id for claim in claimed}
    if again := _coming_again([r for r in requests if r.node_id in refused], now):
        claimed += executions.claim(again, owner=owner, now=now, tokens=tokens)
    started = {claim.request.node_id for claim in claimed}
    waited = {a.node.node_id: SkipReason(a.waited_because) for a in assignments if a.waited_because}
    snmp_jobs.save_claimed([s for s in schedules.values() if s.node.id in started or not s.is_run], waited, now=now)
    return claimed


def _resume(assignment: Assignment, token: int, owner: str, now: datetime) -> Claimed | None:
    node = assignment.node
    if node.execution_id is None:
        return None
    claimed = resume(node.execution_id, assignment.poller_id, assignment.group, token=token, owner=owner, now=now)
    if claimed and node.is_run_now:
        snmp_jobs.grant_wish(node.node_id)
    return claimed


def release_poller(finished: Finished, now: datetime) -> None:
    """Give the poller to the next chain member, or free it after the last one (a finishing step)."""
    pollers = Poller.objects.filter(current_execution_id=finished.run.execution_id)
    if finished.following is not None:
        hand_on(pollers, finished.following)
        return
    free(pollers, now, tasks=int(finished.ending.is_final))


def save_node_ended(finished: Finished, now: datetime) -> None:
    """Move the node's schedule on, or suspend it after its last try (a finishing step)."""
    node_id, ending = finished.run.node_id, finished.ending
    if node_id is None:
        return
    if not ending.is_final:
        # A slice that gave way says nothing about failures.
        if ending.failure:
            snmp_jobs.save_failures(node_id, ending.failures_in_a_row, now=now)
        return
    snmp_jobs.save_ended(node_id, failures_in_a_row=ending.failures_in_a_row, now=now)
    if finished.run.master_execution_id is not None and finished.following is None:
        master = Execution.objects.filter(id=finished.run.master_execution_id).values_list("node_id", flat=True)
        snmp_jobs.save_chain_ended(master[0] or 0, now=now)
    if ending.suspends and ending.failure:
        _suspend(finished, ending.failure.kind, now)


def _suspend(finished: Finished, kind: FailureKind, now: datetime) -> None:
    """Suspend the node; when the OLT is silent, all its nodes, which would only find out the same."""
    nodes, reason = WorkflowNode.objects.filter(executions=finished.run.execution_id), str(kind)
    if finished.ending.is_silence:
        nodes = WorkflowNode.objects.filter(workflow__olt_id=finished.run.olt_id, enabled=True, is_chain_node=False)
        reason = UNREACHABLE
    snmp_jobs.suspend(nodes, reason=reason, now=now)
    schedule_probe(finished.run.olt_id, now)
    logger.warning("node.suspended olt=%s node=%s reason=%s", finished.run.olt_id, finished.run.node_id, kind)


@transaction.atomic
def after_probe(olt_id: int, *, answered: bool, now: datetime) -> int:
    """Return an OLT's suspended nodes to the schedule when it answered, or plan the next probe."""
    executions.hold_token(olt_id)
    suspended = WorkflowNode.objects.filter(workflow__olt_id=olt_id, suspended_at__isnull=False)
    if not answered and suspended.exists():
        schedule_probe(olt_id, now)
        return 0
    end_probes(olt_id)
    returned = snmp_jobs.return_to_schedule(suspended, now=now)
    logger.info("olt.back olt=%s nodes=%s", olt_id, returned)
    return returned


@transaction.atomic
def release_orphans(execution_ids: Sequence[int], *, reason: str, now: datetime) -> int:
    """Interrupt executions that nobody carries on, and free every poller that points at nothing active."""
    ended = executions.interrupt(execution_ids, reason=reason, now=now)
    active = Execution.objects.filter(status__in=ACTIVE).values("id")
    free(Poller.objects.filter(status=PollerStatus.BUSY).exclude(current_execution_id__in=active), now, tasks=0)
    return ended


@transaction.atomic
def renew_leadership(owner: str, *, now: datetime) -> bool:
    """Raise the leader's counter if `owner` leads, or take an empty seat."""
    mine = LeaderLease.objects.filter(name=LEADER, owner=owner)
    if mine.update(counter=F("counter") + 1, renewed_at=now):
        return True
    _, created = LeaderLease.objects.get_or_create(
        name=LEADER, defaults={"owner": owner, "counter": 1, "renewed_at": now}
    )
    return created


def load_leader_counter() -> tuple[str, int]:
    """Return who leads and the counter of the lease; empty when nobody ever did."""
    row = LeaderLease.objects.filter(name=LEADER).values_list("owner", "counter").first()
    return row or ("", 0)


def take_leadership(owner: str, *, former: str, counter: int, now: datetime) -> bool:
    """Replace a leader whose counter stood still; conditional, so that one of several takers wins."""
    dead = LeaderLease.objects.filter(name=LEADER, owner=former, counter=counter)
    return bool(dead.update(owner=owner, counter=counter + 1, renewed_at=now))


def release_leadership(prefix: str) -> None:
    """Empty the seat of a leader that is known to be gone, so that nobody has to watch its lease run out."""
    LeaderLease.objects.filter(name=LEADER, owner__startswith=prefix).delete()


def _request(assignment: Assignment, schedule: Schedule) -> ClaimRequest:
    return ClaimRequest(
        olt_id=assignment.node.olt_id,
        device=Device(schedule.node.workflow.olt.address, schedule.node.workflow.olt.port),
        task_type=schedule.task_type,
        origin=Origin.SCHEDULE if schedule.slot_at else Origin.MANUAL,
        node_id=assignment.node.node_id,
        poller_id=assignment.poller_id,
        poller_group=assignment.group,
        slot_at=schedule.slot_at,
    )


def _coming_again(refused: Sequence[ClaimRequest], now: datetime) -> list[ClaimRequest]:
    """Return the refused whose slot had its run before the clock was set back: they run again, but for no slot.

    A node that is no longer due was started by another process at this very moment.
    """
    slots = {request.slot_at for request in refused if request.slot_at}
    if not slots:
        return []
    served = Execution.objects.filter(
        node_id__in=[request.node_id for request in refused], slot_at__in=slots, node__next_run_at__lte=now
    )
    known = set(served.values_list("node_id", "slot_at"))
    return [replace(request, slot_at=None) for request in refused if (request.node_id, request.slot_at) in known]


def _delayed_nodes(assignments: Sequence[Assignment], now: datetime) -> set[int]:
    return {assignment.node.node_id for assignment in assignments if assignment.node.is_delayed(now)}

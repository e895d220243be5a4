"""Claims OLTs for pollers, writes what follows the end of a run, frees abandoned runs, keeps the leader's lease,
and knows which OLTs are probed and what follows an answer.

What is freed was decided on a row seen a moment ago, and holds only for that row.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    IntegerField,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Coalesce, Greatest
from django.db.models.sql.compiler import SQLCompiler

from facho.executions import store as executions
from facho.executions.models import Execution, Origin
from facho.executions.onu_reads import claim_reads, is_any_wanted
from facho.executions.run import Ending, Run, judge_death, run_of
from facho.executions.runner import Finished
from facho.executions.store import Active, ClaimRequest, claim, next_tokens, open_next, skip_chain
from facho.hosts.models import Olt
from facho.hosts.store import (
    Device,
    end_probes,
    is_paused,
    load_devices,
    load_due_probes,
    mark_discovered,
    schedule_probe,
)
from facho.infrastructure.bulk import in_shard
from facho.infrastructure.standstill import Standstill
from facho.infrastructure.statements import Given, GivenMany, Select, Update
from facho.onus.store import has_onus
from facho.polling.domain.collection import Failure
from facho.polling.domain.execution_state import ACTIVE, UNREACHABLE, ExecutionState, FailureKind, QueryType
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.domain.planning import EXPIRES_AFTER, Assignment, ReadStart, is_discovery_over, numbers_by_group
from facho.polling.domain.quota import SkipReason
from facho.polling.domain.schedule import Grid, Start, plan_start, task_type
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import recognise
from facho.snmp_jobs import store as snmp_jobs
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.due import due_nodes, is_any_due, times_of
from facho.snmp_jobs.models import Workflow, WorkflowNode
from facho.snmp_jobs.store import INSTANT, NodeMoved, Passage, build_grid, save_skipped
from facho.zabbix_pollers.models import LeaderLease, Poller, PollerStatus

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


@cache
def _any_work(shard: Shard) -> Select:
    unfinished = Execution.objects.filter(in_shard("olt_id", shard), finished_at__isnull=True).order_by()
    is_any = Q(Exists(unfinished)) | is_any_due(shard) | is_any_wanted(shard)
    # All work belongs to an OLT, so without OLTs there is none.
    return Select(lambda: Olt.objects.filter(is_any).order_by().values_list("id")[:1])


def has_work(now: datetime, shard: Shard) -> bool:
    """Whether anything of the shard runs, waits, is due or is asked for: one statement instead of three."""
    return _any_work(shard).first(**times_of(now), since=now - EXPIRES_AFTER) is not None


def load_free_pollers(held: Iterable[int | None]) -> dict[str, list[int]]:
    """Return, for each group that has pollers, those that no active execution holds, lowest first."""
    busy, free = set(held), defaultdict[str, list[int]](list)
    for poller_id, group in Poller.objects.order_by("poller_id").values_list("poller_id", "group"):
        free[group] += [] if poller_id in busy else [poller_id]
    return dict(free)


def claim_assignments(assignments: Sequence[Assignment], *, owner: str, now: datetime) -> list[Active]:
    """Take the OLTs of planned starts, write their executions, move their nodes to the next slots, mark their pollers.

    All or nothing, in one transaction; the constraints of the database decide who wins an OLT. Nothing when somebody
    moves one of the nodes at this very moment: what is still due starts in the next tick.
    """
    try:
        with transaction.atomic():
            # First of all the tokens: what is read under them, no other claim changes, however old the plan is.
            tokens = next_tokens(assignment.node.olt_id for assignment in assignments)
            resumed = _resume_waiting([a for a in assignments if a.node.execution_id is not None], tokens, owner, now)
            started = _start_due([a for a in assignments if a.node.execution_id is None], tokens, owner, now)
            claimed = started + resumed
            delayed = {assignment.node.node_id for assignment in assignments if assignment.node.is_delayed(now)}
            occupy(claimed, delayed=delayed, now=now)
    except NodeMoved:
        return []
    return claimed


@transaction.atomic
def claim_read_starts(starts: Sequence[ReadStart], *, owner: str, now: datetime) -> list[Active]:
    """Claim OLTs and pollers for the planned reads of single ONUs; all or nothing."""
    tokens = next_tokens(start.read.olt_id for start in starts)
    claimed = claim_reads(starts, tokens, owner=owner, now=now)
    occupy(claimed, delayed=(), now=now)
    return claimed


class _Startable(NamedTuple):
    """The columns of a node, its job and its OLT that a start needs."""

    id: int
    next_run_at: datetime | None
    run_requested_at: datetime | None
    interval_seconds: int
    offset_seconds: int
    job__cadence: str
    job__hours_from: time | None
    job__hours_to: time | None
    job__query_type: str
    job__slug: str
    workflow__olt__address: str
    workflow__olt__port: int

    @property
    def grid(self) -> Grid:
        hours = (self.job__hours_from, self.job__hours_to)
        return build_grid(self.interval_seconds, self.offset_seconds, self.job__cadence, hours)


_STARTABLE = Select(
    lambda: (
        due_nodes(Given("now", DateTimeField()))
        .filter(GivenMany("node_ids", "id"))
        .order_by("id")
        .values_list(*_Startable._fields)
    )
)


def _start_due(assignments: Sequence[Assignment], tokens: Mapping[int, int], owner: str, now: datetime) -> list[Active]:
    """Write an execution for each node that is still due, and move the nodes of those that won."""
    if not assignments:
        return []
    starts: dict[int, tuple[_Startable, Start]] = {}
    for node in map(_Startable._make, _STARTABLE.rows(now=now, node_ids=[a.node.node_id for a in assignments])):
        is_asked_for = node.run_requested_at is not None
        if start := plan_start(node.grid, node.next_run_at, is_asked_for=is_asked_for, now=now):
            starts[node.id] = node, start
    running = [a for a in assignments if a.node.node_id in starts and starts[a.node.node_id][1].is_run]
    requests = [_request(assignment, *starts[assignment.node.node_id]) for assignment in running]
    claimed = claim(requests, owner=owner, now=now, tokens=tokens)
    refused = {r.node_id for r in requests} - {won.node_id for won in claimed}
    if again := _coming_again([r for r in requests if r.node_id in refused], now):
        claimed += claim(again, owner=owner, now=now, tokens=tokens)
    started = {won.node_id for won in claimed}
    moving = [(node, start) for node, start in starts.values() if node.id in started or not start.is_run]
    waited = {a.node.node_id: SkipReason(a.waited_because) for a in assignments if a.waited_because}
    _move_to_next_slots(moving, waited, now)
    return claimed


def _request(assignment: Assignment, node: _Startable, start: Start) -> ClaimRequest:
    return ClaimRequest(
        olt_id=assignment.node.olt_id,
        device=Device(node.workflow__olt__address, node.workflow__olt__port),
        task_type=task_type(QueryType(node.job__query_type), node.job__slug),
        origin=Origin.SCHEDULE if start.slot_at else Origin.MANUAL,
        node_id=node.id,
        poller_id=assignment.poller_id,
        poller_group=assignment.group,
        slot_at=start.slot_at,
    )


def _coming_again(refused: Sequence[ClaimRequest], now: datetime) -> list[ClaimRequest]:
    """Return those refused whose slot had its run before the clock was set back: they run again, but for no slot."""
    slots = {request.slot_at for request in refused if request.slot_at}
    if not slots:
        return []
    served = Execution.objects.filter(
        node_id__in=[request.node_id for request in refused], slot_at__in=slots, node__next_run_at__lte=now
    )
    known = set(served.values_list("node_id", "slot_at"))
    return [replace(request, slot_at=None) for request in refused if (request.node_id, request.slot_at) in known]


_SKIPPED = F("slots_skipped") + Given("slots_skipped", IntegerField())
_MOVE = Update(
    lambda: WorkflowNode.objects.filter(id=Given("id"), next_run_at__lte=Given("now", DateTimeField())),
    next_run_at=Given("next_run_at"),
    run_requested_at=None,
    slots_skipped=_SKIPPED,
)
_STAY = Update(
    lambda: WorkflowNode.objects.filter(id=Given("id")),
    run_requested_at=None,
    slots_skipped=_SKIPPED,
)


def _move_to_next_slots(
    starts: Sequence[tuple[_Startable, Start]], waited: Mapping[int, SkipReason], now: datetime
) -> None:
    """Move started nodes to their next slots and clear their requests to run now.

    Slots before the served one are written down as skipped; `waited` has the reasons of those that waited.
    NodeMoved when one of them is not due any more: its slot is written down as skipped, and must not start.
    """
    passages: list[Passage] = []
    moves: dict[Update, list[Mapping[str, object]]] = {_MOVE: [], _STAY: []}
    for node, start in starts:
        if node.next_run_at is not None and node.next_run_at <= now:
            reason = waited.get(node.id, SkipReason.NOT_POLLING) if start.slot_at else SkipReason.OUT_OF_HOURS
            until = start.slot_at or now + INSTANT
            passages.append(Passage(node.id, node.grid, node.next_run_at, until, reason))
        new = {"id": node.id, "next_run_at": start.next_run_at, "slots_skipped": start.slots_skipped, "now": now}
        moves[_MOVE if start.next_run_at != node.next_run_at else _STAY].append(new)
    if sum(move.run_each(rows) for move, rows in moves.items()) < len(starts):
        raise NodeMoved
    # Rows of nodes first, then those of their slots: the opposite order would deadlock.
    save_skipped(passages, now)


def _resume_waiting(
    assignments: Sequence[Assignment], tokens: Mapping[int, int], owner: str, now: datetime
) -> list[Active]:
    """Claim the OLT again for executions that waited; after a failed try as the next attempt, else as the same one."""
    claimed = []
    for assignment in assignments:
        node, token = assignment.node, tokens[assignment.node.olt_id]
        waiting = Execution.objects.filter(id=node.execution_id or 0, status=ExecutionState.WAITING)
        execution = waiting.filter(
            ~is_paused("olt_id", now), olt__enabled=True, node__enabled=True, node__suspended_at__isnull=True
        ).first()
        device = load_devices([node.olt_id]).get(node.olt_id) if execution else None
        if execution is None or device is None:
            continue
        try:
            with transaction.atomic():
                is_claimed = waiting.update(
                    status=ExecutionState.PENDING,
                    attempt=execution.attempt + (1 if execution.failure_kind else 0),
                    address=device.address,
                    port=device.port,
                    token=token,
                    owner=owner,
                    poller_id=assignment.poller_id,
                    poller_group=assignment.group,
                    resume_at=None,
                    failure_kind="",
                    error="",
                )
        except IntegrityError:
            continue
        if is_claimed:
            claimed.append(Active(execution.id, node.olt_id, node.node_id, assignment.poller_id, token, owner))
            if node.is_run_now:
                WorkflowNode.objects.filter(id=node.node_id).update(run_requested_at=None)
    return claimed


_OCCUPY = Update(
    lambda: Poller.objects.filter(poller_id=Given("poller_id")),
    status=PollerStatus.BUSY,
    current_node_id=Given("node_id"),
    current_execution_id=Given("execution_id"),
    busy_since=Given("now"),
    tasks_delayed=F("tasks_delayed") + Given("delayed", IntegerField()),
)


def occupy(claimed: Sequence[Active], *, delayed: Collection[int], now: datetime) -> None:
    _OCCUPY.run_each(
        {
            "poller_id": claim.poller_id,
            "node_id": claim.node_id,
            "execution_id": claim.execution_id,
            "now": now,
            "delayed": int(claim.node_id in delayed),
        }
        for claim in sorted(claimed, key=lambda claim: claim.poller_id or 0)
        if claim.poller_id is not None
    )


def _held() -> QuerySet[Poller]:
    return Poller.objects.filter(current_execution_id=Given("execution_id"))


def _freed(now: datetime | Given, tasks: int | Given) -> dict[str, Any]:
    """Return what is set of a poller that becomes free."""
    return {
        "status": PollerStatus.FREE,
        "current_node_id": None,
        "current_execution_id": None,
        "busy_since": None,
        "busy_time": F("busy_time") + _seconds_between("busy_since", now),
        "total_time": _seconds_between("created_at", now),
        "tasks_completed": F("tasks_completed") + tasks,
    }


def release_poller(finished: Finished, now: datetime) -> None:
    """Give the poller to the next chain member, or free it after the last one (a finishing step)."""
    execution_id = finished.run.execution_id
    if finished.following is not None:
        hand_on(execution_id, finished.following)
        return
    free(execution_id, now, tasks=int(finished.ending.is_final))


def hand_on(execution_id: int, following: Run) -> None:
    """Give the poller of an execution to the next member of its chain; it stays busy."""
    _HAND_ON.run(execution_id=execution_id, following_id=following.execution_id, node_id=following.node_id)


def free(execution_id: int, now: datetime, *, tasks: int) -> None:
    """Free the poller of an execution; `tasks` is 1 when a composite is done, 0 when it only let go."""
    _FREE.run(execution_id=execution_id, now=now, tasks=tasks)


class _Seconds(Func):
    template = "EXTRACT(EPOCH FROM %(expressions)s)"
    output_field = FloatField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """SQLite has durations as microseconds."""
        return self.as_sql(compiler, connection, template="(%(expressions)s) / 1000000.0", **context)


def _seconds_between(column: str, now: datetime | Given) -> Greatest:
    """Build the seconds from the time in a column until now; none when it has no time, or one to come."""
    moment = now if isinstance(now, Given) else Value(now, DateTimeField())
    elapsed = ExpressionWrapper(moment - Coalesce(F(column), moment), DurationField())
    return Greatest(_Seconds(elapsed), Value(0.0))


_HAND_ON = Update(_held, current_execution_id=Given("following_id"), current_node_id=Given("node_id"))
_FREE = Update(_held, **_freed(Given("now", DateTimeField()), Given("tasks", IntegerField())))


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
        snmp_jobs.save_ended(master[0] or 0, now=now)
    if ending.suspends and ending.failure:
        # Suspend the node; when the OLT is silent, all its nodes, which would only find out the same.
        kind = ending.failure.kind
        nodes, reason = WorkflowNode.objects.filter(executions=finished.run.execution_id), str(kind)
        if finished.ending.is_silence:
            nodes = WorkflowNode.objects.filter(workflow__olt_id=finished.run.olt_id, enabled=True, is_chain_node=False)
            reason = UNREACHABLE
        snmp_jobs.suspend(nodes, reason=reason, now=now)
        schedule_probe(finished.run.olt_id, now)
        logger.warning("node.suspended olt=%s node=%s reason=%s", finished.run.olt_id, finished.run.node_id, kind)


def end_first_discovery(finished: Finished, now: datetime) -> None:
    """When an OLT's first discovery is over, let the nodes begin that waited; it holds them all, so it is first."""
    run, ending = finished.run, finished.ending
    if run.request.query_type is not QueryType.DISCOVERY or run.node_id is None:
        return
    olt = Olt.objects.only("discovered_at").filter(id=run.olt_id).first()
    # The walk that was complete has marked the OLT in this transaction, with this moment.
    is_complete = olt is not None and olt.discovered_at == now
    is_given_up = olt is not None and olt.discovered_at is None and ending.suspends
    if not is_complete and not is_given_up:
        return
    if is_discovery_over(is_complete=is_complete, is_given_up=is_given_up, found_any=has_onus(run.olt_id)):
        began = snmp_jobs.begin_onu_reads(run.olt_id, now)
        mark_discovered(run.olt_id, now)
        logger.info("olt.discovered olt=%s nodes=%s", run.olt_id, began)


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
    """Interrupt abandoned executions, and free every poller that points at nothing active."""
    ended = executions.interrupt(execution_ids, reason=reason, now=now)
    active = Execution.objects.filter(status__in=ACTIVE).values("id")
    orphaned = Poller.objects.filter(status=PollerStatus.BUSY).exclude(current_execution_id__in=active)
    orphaned.update(**_freed(now, tasks=0))
    return ended


@transaction.atomic
def end_dead_tries(runs: Sequence[Active], *, reason: str, now: datetime) -> int:
    """End tries whose owner died as failed ones, checked as seen: an owner that renews late must not run on."""
    dead = list(executions.still_as_seen(runs))
    for execution in dead:
        _end_dead(execution, reason, now)
    return len(dead)


@transaction.atomic
def hand_back(runs: Sequence[Active], *, now: datetime) -> int:
    """Let masters that a planned stop broke off wait for their turn; chain members end, and run with their master."""
    seen = list(executions.still_as_seen(runs))
    for execution in seen:
        if execution.master_execution_id is None:
            run = run_of(execution)
            ending = Ending(ExecutionState.WAITING, resume_at=now, cursor=run.request.cursor)
            executions.close(run, ending, summary={}, now=now)
            release_poller(Finished(run, ending, was_heard=False, following=None), now)
        else:
            _end_dead(execution, "the engine was stopped", now)
    return len(seen)


@transaction.atomic
def release_as_seen(runs: Sequence[Active], *, reason: str, now: datetime) -> int:
    """Interrupt executions that were not taken or renewed since they were seen; their chains are skipped."""
    seen = list(executions.still_as_seen(runs))
    released = release_orphans([execution.id for execution in seen], reason=reason, now=now)
    interrupted = Ending(ExecutionState.INTERRUPTED, Failure(FailureKind.INTERNAL, reason))
    for execution in seen:
        skip_chain(run_of(execution), interrupted, now)
    return released


def _end_dead(execution: Execution, reason: str, now: datetime) -> None:
    run = run_of(execution)
    ending = judge_death(run, reason, now)
    if not executions.close(run, ending, summary={}, now=now):
        return
    open_next(run, ending, owner="", now=now)
    finished = Finished(run, ending, was_heard=False, following=None)
    save_node_ended(finished, now)
    release_poller(finished, now)


_RENEW_LEAD = Update(
    lambda: LeaderLease.objects.filter(name=Given("name"), owner=Given("owner")),
    counter=F("counter") + 1,
    renewed_at=Given("now"),
    standstill=Given("standstill"),
)


def renew_leadership(owner: str, *, now: datetime, standstill: str = "", shard: Shard = WHOLE) -> bool:
    """Raise the leader's counter if `owner` leads, or take an empty seat; say why it starts nothing, if so."""
    if _RENEW_LEAD.run(name=lease_name(shard), owner=owner, now=now, standstill=str(standstill)):
        return True
    _, created = LeaderLease.objects.get_or_create(
        name=lease_name(shard), defaults={"owner": owner, "counter": 1, "renewed_at": now, "standstill": standstill}
    )
    return created


def lease_name(shard: Shard) -> str:
    """Name the lease of an engine. The count is in it: of engines that count differently, none waits for another."""
    return LEADER if shard.is_whole else f"{LEADER} {shard}"


@dataclass(frozen=True, slots=True)
class Leader:
    """The leading process, its lease counter, when it was renewed, and why nothing is started, if so."""

    owner: str = ""
    counter: int = 0
    renewed_at: datetime | None = None
    standstill: Standstill | None = None
    # True also for a reason that only a newer version knows.
    is_stalled: bool = False


# There are as many as engines.
_LEADERS = Select(
    lambda: LeaderLease.objects.order_by().values_list("name", "owner", "counter", "renewed_at", "standstill")
)


def load_leader(shard: Shard = WHOLE) -> Leader:
    """Load the lease of an engine; an empty one when it is free."""
    return load_leaders([shard])[shard]


def load_leaders(shards: Collection[Shard]) -> dict[Shard, Leader]:
    """Load the lease of each of these engines, in one query."""
    names = {lease_name(shard): shard for shard in shards}
    leaders = {shard: Leader() for shard in shards}
    for name, owner, counter, renewed_at, reason in _LEADERS.rows():
        if name in names:
            standstill = Standstill(reason) if reason in set(Standstill) else None
            leaders[names[name]] = Leader(owner, counter, renewed_at, standstill, bool(reason))
    return leaders


def take_leadership(owner: str, *, former: str, counter: int, now: datetime, shard: Shard = WHOLE) -> bool:
    """Replace a leader whose counter stood still; conditional, so that one of several takers wins."""
    dead = LeaderLease.objects.filter(name=lease_name(shard), owner=former, counter=counter)
    return bool(dead.update(owner=owner, counter=counter + 1, renewed_at=now, standstill=""))


def release_leadership(prefix: str, shard: Shard = WHOLE) -> None:
    """Release the lead of a process that is known to be gone, so that its lease need not run out."""
    LeaderLease.objects.filter(name=lease_name(shard), owner__startswith=prefix).delete()


def forget_other_counts(prefix: str, shards: Collection[Shard]) -> None:
    """Delete the leases of engines that were more or fewer before, and are known to be gone."""
    others = LeaderLease.objects.filter(owner__startswith=prefix).exclude(name__in=map(lease_name, shards))
    others.delete()


def load_unidentified(now: datetime) -> list[int]:
    """Return the enabled OLTs that are not identified yet and not paused, also where the vendor was named.

    One that did not answer is asked less and less, like any other that is silent. One that was refused is asked again
    when a definition has come that knows it.
    """
    asked = Olt.objects.filter(~is_paused("id", now), enabled=True, next_probe_at=None)
    rows = asked.filter(Q(sys_object_id="") | Q(vendor="")).values_list("id", "sys_object_id", "sys_descr")
    return [
        olt_id
        for olt_id, object_id, descr in rows
        if not object_id or isinstance(recognise(object_id, descr), Definition)
    ]


def load_asked_for(now: datetime) -> list[int]:
    """Return the OLTs due for a probe; where suspended nodes wait for a person, OLTs that have some are left alone."""
    due = load_due_probes(now)
    if not due or settings.FACHO_SUSPENDED_RETURN == "probe":
        return due
    suspended = WorkflowNode.objects.filter(suspended_at__isnull=False, workflow__olt_id__in=due)
    waiting = set(suspended.values_list("workflow__olt_id", flat=True))
    return [olt_id for olt_id in due if olt_id not in waiting]


def follow_probe(olt_id: int, *, answered: bool, now: datetime) -> None:
    """Do what follows any probe: first jobs, nodes that return, or the next probe."""
    apply_first_jobs(olt_id, now=now)
    if not answered and Olt.objects.filter(id=olt_id, sys_object_id="").exists():
        schedule_probe(olt_id, now)
    else:
        after_probe(olt_id, answered=answered, now=now)


def apply_first_jobs(olt_id: int, *, now: datetime) -> None:
    """Leave an OLT alone that has a workflow: its jobs, or their absence, are the operator's choice."""
    olt = Olt.objects.filter(id=olt_id).exclude(vendor="").first()
    if olt is not None and not Workflow.objects.filter(olt=olt).exists():
        apply_ready_made_jobs(olt, now=now)

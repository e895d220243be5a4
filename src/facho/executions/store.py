"""Claims, takes, renews, stores and ends executions, opens their chains, and ends those that wait.

Every write is conditional on the fencing token.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, time
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from django.db import models, transaction
from django.db.models import F, Q, QuerySet

from facho.executions.models import ERROR_LENGTH, Execution, ExecutionAttempt, OltToken, Origin
from facho.executions.run import RUN_COLUMNS, Ending, Run, build_run, open_attempt, run_of, runs
from facho.hosts import store as hosts
from facho.hosts.models import Olt, Reachability
from facho.hosts.olt_data import save_olt_values
from facho.infrastructure.bulk import in_shard, insert_values
from facho.infrastructure.statements import Given, GivenFor, GivenMany, Insert, Select, Update, open_cursor
from facho.onus.store import save_inventory, save_table
from facho.onus.value_history import save_olt_figures, save_olt_history, save_onu_history
from facho.polling.domain.collection import Failure, Rows, RunProgress, Summary, join_summaries
from facho.polling.domain.execution_state import ACTIVE, RANK, ExecutionState, FailureKind, QueryType
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.domain.planning import DueNode, FirstDiscovery, ready_at
from facho.polling.domain.schedule import is_outside_hours, task_type
from facho.polling.vendors.definition import longest_answer_seconds
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.due import load_waits
from facho.snmp_jobs.models import ChainCondition, WorkflowNode
from facho.snmp_jobs.store import build_window

# How the owner of a claim that a command made begins; the command alone carries it out.
COMMAND = "cli"
# A day: a clock that was set forward during a run must not overflow the column.
MAX_DURATION_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request to run one node on one OLT; `device` spares a query where the address is already known."""

    olt_id: int
    task_type: str
    origin: Origin
    node_id: int | None = None
    poller_id: int | None = None
    slot_at: datetime | None = None
    device: hosts.Device | None = None
    poller_group: str = ""


class Renewal(StrEnum):
    RENEWED = "renewed"
    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Active:
    """An execution that holds its OLT, as the scheduler looks at it in every tick."""

    execution_id: int
    olt_id: int
    node_id: int | None
    poller_id: int | None
    token: int
    owner: str
    status: ExecutionState = ExecutionState.PENDING
    lease_counter: int = 0
    wants_to_stop: bool = False


# What a claim writes; the last ones are alike for all.
_CLAIMED = (
    "olt",
    "address",
    "port",
    "node",
    "task_type",
    "origin",
    "slot_at",
    "poller_id",
    "poller_group",
    "token",
    *("status", "attempt", "chain_position", "owner", "lease_counter", "created_at", "duration_ms"),
    *("failure_kind", "error"),
)


def claim(
    requests: Sequence[ClaimRequest], *, owner: str, now: datetime, tokens: Mapping[int, int] | None = None
) -> list[Active]:
    """Insert one PENDING execution per request and return those that won; the constraints decide.

    Pass `tokens` that were taken before, to check the OLTs while no other process can claim them.
    """
    known = {request.olt_id: request.device for request in requests if request.device}
    unknown = {request.olt_id for request in requests} - known.keys()
    # An OLT that was deleted has no device.
    devices = {**known, **hosts.load_devices(unknown)} if unknown else known
    requests = [request for request in requests if request.olt_id in devices]
    tokens = next_tokens(devices) if tokens is None else tokens
    rows = [
        (
            request.olt_id,
            devices[request.olt_id].address,
            devices[request.olt_id].port,
            request.node_id,
            request.task_type,
            request.origin,
            request.slot_at,
            request.poller_id,
            request.poller_group,
            tokens[request.olt_id],
            *(ExecutionState.PENDING, 1, 0, owner, 0, now, 0, "", ""),
        )
        for request in requests
    ]
    won = insert_values(Execution, _CLAIMED, rows, ignore_conflicts=True, returning=("id", "olt", "token"))
    ids = {(olt_id, token): pk for pk, olt_id, token in won}
    keyed = [(request, (request.olt_id, tokens[request.olt_id])) for request in requests]
    return [Active(ids[key], r.olt_id, r.node_id, r.poller_id, key[1], owner) for r, key in keyed if key in ids]


def next_tokens(olt_ids: Iterable[int]) -> dict[int, int]:
    """Raise the fencing token of each OLT and return the new ones; one statement, rows locked in order.

    To claim or hand over an OLT, take its token before anything else: this order prevents deadlocks.
    """
    ordered = sorted(set(olt_ids))
    if not ordered:
        return {}
    places = ", ".join(["(%s, 1)"] * len(ordered))
    with open_cursor() as cursor:
        cursor.execute(
            f"INSERT INTO executions_olttoken (olt_id, token) VALUES {places} "  # noqa: S608 only placeholders
            "ON CONFLICT (olt_id) DO UPDATE SET token = executions_olttoken.token + 1 RETURNING olt_id, token",
            ordered,
        )
        return dict(cursor.fetchall())


def _taking(which: Q) -> Update:
    return Update(
        lambda: Execution.objects.filter(which, id=Given("id"), status=ExecutionState.PENDING),
        returning=RUN_COLUMNS,
        status=ExecutionState.RUNNING,
        owner=Given("owner"),
        started_at=Given("now"),
        lease_counter=F("lease_counter") + 1,
        progress=None,
    )


_TAKE = _taking(Q(token=Given("token")))
_TAKE_ANY = _taking(~Q(owner__startswith=f"{COMMAND}/"))


@transaction.atomic
def take(execution_id: int, token: int | None, *, owner: str, now: datetime) -> Run | None:
    """Go from PENDING to RUNNING, unless another runner was faster or the claim was withdrawn.

    Without a token whichever is waiting is taken: a message has none, and a late one does no harm.
    """
    taking = _TAKE_ANY if token is None else _TAKE
    row = taking.first(id=execution_id, token=token, owner=owner, now=now)
    if row is None:
        return None
    run = build_run(row)
    open_attempt(run, now)
    return run


# An execution and the token by which it is held.
HeldToken = tuple[int, int]

_RENEW = Update(
    lambda: Execution.objects.filter(GivenMany("claims", "id", "token"), status=ExecutionState.RUNNING),
    returning=("id", "token", "olt_id", "cancel_requested_at"),
    lease_counter=F("lease_counter") + 1,
    progress=GivenFor("progress", "id"),
)
_DISABLED = Select(lambda: Olt.objects.filter(GivenMany("olt_ids", "id"), enabled=False).order_by().values_list("id"))


def renew(
    claims: Collection[HeldToken], progress: Mapping[int, RunProgress] = MappingProxyType({})
) -> dict[HeldToken, Renewal]:
    """Raise the lease's counter of all executions that are still ours, and learn which of them should stop.

    Writes down how far each has come, by its id. Two statements, however many there are.
    """
    mine = _RENEW.rows(claims=claims, progress={pk: asdict(each) for pk, each in progress.items()})
    disabled = {olt_id for (olt_id,) in _DISABLED.rows(olt_ids={olt_id for _, _, olt_id, _ in mine})} if mine else set()
    renewals = dict.fromkeys(claims, Renewal.LOST)
    for execution_id, token, olt_id, cancel_requested_at in mine:
        wants_stop = cancel_requested_at is not None or olt_id in disabled
        renewals[execution_id, token] = Renewal.CANCELLED if wants_stop else Renewal.RENEWED
    return renewals


def _of_holder() -> QuerySet[Execution]:
    return Execution.objects.filter(id=Given("id"), token=Given("token"), status=ExecutionState.RUNNING)


_HELD = Select(lambda: _of_holder().values_list("id"))


def is_held(run: Run) -> bool:
    """Return whether the run still holds its OLT; true until the transaction ends if the token is held first."""
    return _HELD.first(id=run.execution_id, token=run.token) is not None


_CLOSE = Update(
    _of_holder,
    status=Given("status"),
    failure_kind=Given("failure_kind"),
    error=Given("error"),
    finished_at=Given("finished_at"),
    resume_at=Given("resume_at"),
    cursor=Given("cursor"),
    duration_ms=F("duration_ms") + Given("duration_ms", models.PositiveIntegerField()),
    result=Given("result"),
)
_CLOSE_ATTEMPT = Update(
    lambda: ExecutionAttempt.objects.filter(execution_id=Given("execution_id"), number=Given("number")),
    status=Given("status"),
    failure_kind=Given("failure_kind"),
    error=Given("error"),
    finished_at=Given("finished_at"),
)


def close(run: Run, ending: Ending, *, summary: Summary, now: datetime) -> bool:
    """Write how the try ended where the token still holds; False means that someone else ended it before.

    An execution that waits keeps its row and lets go of its OLT and its poller.
    """
    outcome = {
        "status": ending.state,
        "failure_kind": ending.failure.kind if ending.failure else "",
        "error": ending.failure.message[:ERROR_LENGTH] if ending.failure else "",
    }
    duration_ms = min(max(int((now - run.started_at).total_seconds() * 1000), 0), MAX_DURATION_MS)
    closed = _CLOSE.run(
        id=run.execution_id,
        token=run.token,
        **outcome,
        finished_at=now if ending.is_final else None,
        resume_at=ending.resume_at,
        cursor=dict(ending.cursor) if ending.cursor else None,
        duration_ms=duration_ms,
        result=join_summaries(run.result, summary, goes_on=run.request.cursor is not None),
    )
    if closed and (ending.is_final or ending.failure):
        tried = {**outcome, "status": ExecutionState.FAILED} if ending.failure and not ending.is_final else outcome
        _CLOSE_ATTEMPT.run(execution_id=run.execution_id, number=run.attempt, **tried, finished_at=now)
    return bool(closed)


def save_rows(olt_id: int, collected: Iterable[Rows], *, now: datetime) -> None:
    """Store what a run collected, in the transaction that closes it: all of it, or nothing."""
    for rows in collected:
        if rows.identity is not None:
            hosts.save_identity(olt_id, rows.identity, now=now)
        if rows.walk is not None:
            save_inventory(olt_id, rows.walk, now=now)
        if rows.unauthorised is not None:
            hosts.save_waiting(olt_id, rows.unauthorised, is_complete=rows.is_list_complete, now=now)
        if rows.olt_values is not None:
            save_olt_values(olt_id, rows.olt_values, whole_oids=rows.whole_oids, now=now)
            save_olt_figures(olt_id, rows.olt_values, now=now)
        if rows.table is not None:
            save_table(olt_id, rows.table, now=now, is_poll=rows.is_poll)
        if rows.kept_oids:
            _save_history(olt_id, rows, now)
        for subject, size in rows.learned_sizes.items():
            hosts.save_learned_size(olt_id, subject, size, now=now)


def _save_history(olt_id: int, rows: Rows, now: datetime) -> None:
    """Keep values that were just stored, of the OIDs whose history is wanted."""
    save_olt_history(olt_id, [value for value in rows.olt_values or () if value.oid in rows.kept_oids], now=now)
    if rows.table is not None:
        save_onu_history(olt_id, rows.table, rows.kept_oids, now=now)


_HOLD_TOKEN = Select(lambda: OltToken.objects.select_for_update().filter(olt_id=Given("olt_id")).values_list("pk"))


def hold_token(olt_id: int) -> None:
    """Keep others from claiming the OLT until the end of the transaction."""
    _HOLD_TOKEN.rows(olt_id=olt_id)


def still_as_seen(runs: Iterable[Active]) -> models.QuerySet[Execution]:
    """Select, and hold, those not taken, renewed or ended since they were seen; inside a transaction only.

    A row that someone is writing right now is not waited for: its owner lives, or is found dead again in the next tick.
    """
    seen = Q(id__in=[])
    for run in runs:
        seen |= Q(id=run.execution_id, token=run.token, lease_counter=run.lease_counter)
    return _active().filter(seen).select_for_update(skip_locked=True, of=("self",))


@transaction.atomic
def interrupt(execution_ids: Iterable[int], *, reason: str, now: datetime) -> int:
    """End abandoned executions, so that their OLTs are free again."""
    outcome = {
        "status": ExecutionState.INTERRUPTED,
        "finished_at": now,
        "failure_kind": FailureKind.INTERNAL,
        "error": reason[:ERROR_LENGTH],
    }
    mine = Execution.objects.filter(id__in=list(execution_ids), status__in=ACTIVE)
    ids = list(mine.values_list("id", flat=True))
    ended = mine.update(**outcome)
    ExecutionAttempt.objects.filter(execution_id__in=ids, finished_at__isnull=True).update(**outcome)
    return ended


def request_cancel(execution_id: int, *, now: datetime) -> bool:
    """Ask an execution that holds its OLT to end before its next packet; False if it holds none."""
    return bool(_active().filter(id=execution_id).update(cancel_requested_at=now))


def load_active(which: Q | None = None) -> list[Active]:
    """Load everything that holds an OLT, or which of it, in one query."""
    rows = _active().filter(which or Q()).select_related("olt").defer(*hosts.OLT_SECRETS)
    return [_active_of(row, is_enabled=row.olt.enabled) for row in rows]


def load_answer_seconds(execution_ids: Iterable[int], max_timeout_seconds: float) -> dict[int, float]:
    """Return the seconds that each run's OLT may work on the last question, by what it reads; 0 if it is gone."""
    left = {run.execution_id: run for run in map(run_of, runs(Execution.objects.filter(id__in=execution_ids)))}
    definitions = load_definitions()
    return dict.fromkeys(execution_ids, 0.0) | {
        pk: longest_answer_seconds(definitions.get(run.request.vendor), run.request, max_timeout_seconds)
        for pk, run in left.items()
    }


def load_pending(groups: Collection[str]) -> dict[int, bool]:
    """Return which executions wait for a worker of these groups, and whether each is a probe."""
    of_commands = Q(owner__startswith=f"{COMMAND}/")
    pending = _active().filter(~of_commands, status=ExecutionState.PENDING, poller_group__in=groups)
    return {pk: origin == Origin.PROBE for pk, origin in pending.order_by().values_list("id", "origin")}


@transaction.atomic
def claim_probes(groups: Mapping[int, str], *, at_once: int, owner: str, now: datetime) -> list[Active]:
    """Claim OLTs for a probe each, at most `at_once` at a time in each group."""
    busy, under_way = load_busy_olts(), _active().filter(origin=Origin.PROBE)
    taken = Counter(under_way.values_list("poller_group", flat=True))
    wishes = []
    for olt_id, group in groups.items():
        if olt_id not in busy and taken[group] < at_once:
            taken[group] += 1
            wishes.append(ClaimRequest(olt_id, "probe", Origin.PROBE, poller_group=group))
    return claim(wishes, owner=owner, now=now) if wishes else []


def load_busy_olts() -> set[int]:
    return set(_active().values_list("olt_id", flat=True))


def load_active_of_owner(prefix: str) -> list[Active]:
    """The owner begins with `prefix`."""
    return load_active(Q(owner__startswith=prefix))


def _active() -> models.QuerySet[Execution]:
    # SQLite cannot use the partial index with bound values; the index on the end of a run serves the same rows.
    return Execution.objects.filter(finished_at__isnull=True, status__in=ACTIVE)


_OPEN_MEMBER = Insert(
    Execution,
    (*RUN_COLUMNS[1:], "status", "owner", "lease_counter", "duration_ms", "failure_kind", "error"),
    returning=("id",),
    ignore_conflicts=False,
)


def open_next(run: Run, ending: Ending, *, owner: str, now: datetime) -> Run | None:
    """Start the chain member after `run` under the same poller; call it right after `close`, in its transaction.

    Members that may not run are recorded as skipped: the OLT is silent, the master failed, or the member reads ONUs
    before the first discovery of the OLT.
    """
    if not ending.is_final:
        return None
    members = _members_after(run)
    waits = load_waits({run.olt_id for member in members if not member.is_discovered})
    number = _first_allowed(run, ending, [None if member.node_id in waits else member for member in members])
    skip(run, members[:number], ending, now, waits=waits if ending.allows_chain else {})
    if number == len(members):
        return None
    execution = _chain_execution(run, members[number], position=number + 1)
    execution.status = ExecutionState.RUNNING
    execution.token = next_tokens([run.olt_id])[run.olt_id]
    execution.owner, execution.lease_counter = owner, 1
    execution.created_at = execution.started_at = now
    [(execution.id,)] = _OPEN_MEMBER.rows(**vars(execution))
    following = run_of(execution)
    open_attempt(following, now)
    return following


def skip_chain(run: Run, ending: Ending, now: datetime) -> None:
    skip(run, _members_after(run), ending, now)


def _first_allowed(run: Run, ending: Ending, members: Sequence["_ChainMember | None"]) -> int:
    """Return the position of the first member that may run (None: it waits); their number when none may."""
    if not ending.allows_chain:
        return len(members)
    able = {number: member for number, member in enumerate(members) if member is not None and not member.is_suspended}
    always = [number for number, member in able.items() if member.chain_condition == ChainCondition.ALWAYS]
    first = next(iter(able), None)
    if first is not None and [first] != always[:1] and _master_succeeded(run, ending):
        return first
    return next(iter(always), len(members))


def _master_succeeded(run: Run, ending: Ending) -> bool:
    if run.master_execution_id is None:
        return ending.failure is None
    return Execution.objects.filter(id=run.master_execution_id, status=ExecutionState.SUCCESS).exists()


@dataclass(frozen=True, slots=True)
class _ChainMember:
    node_id: int
    task_type: str
    chain_condition: str
    is_suspended: bool
    is_discovered: bool


def _members(which: Q) -> Select:
    columns = ("id", "job__query_type", "job__slug", "job__chain_condition", "suspended_at")
    return Select(
        lambda: (
            WorkflowNode.objects.filter(which, enabled=True)
            .order_by("priority", "id")
            .values_list(*columns, "workflow__olt__discovered_at")
        )
    )


# The member that runs now, among those of its master.
_NOW = "master_node__chain_nodes__"
_IS_LATER = Q(priority=F(f"{_NOW}priority"), id__gt=F(f"{_NOW}id")) | Q(priority__gt=F(f"{_NOW}priority"))
_MEMBERS_OF_MASTER = _members(Q(master_node_id=Given("node_id")))
_MEMBERS_AFTER = _members(Q(_IS_LATER, **{f"{_NOW}id": Given("node_id")}))


def _members_after(run: Run) -> list[_ChainMember]:
    """Return the enabled members after `run`, in the order (priority, id); a suspended one is passed in its turn."""
    if run.node_id is None:
        return []
    members = _MEMBERS_OF_MASTER if run.master_execution_id is None else _MEMBERS_AFTER
    return [
        _ChainMember(
            node_id, task_type(QueryType(query_type), slug), condition, suspended_at is not None, found is not None
        )
        for node_id, query_type, slug, condition, suspended_at, found in members.rows(node_id=run.node_id)
    ]


def _chain_execution(run: Run, member: _ChainMember, *, position: int) -> Execution:
    return Execution(
        olt_id=run.olt_id,
        address=run.request.address,
        port=run.request.port,
        node_id=member.node_id,
        task_type=member.task_type,
        origin=run.origin,
        slot_at=run.slot_at,
        poller_id=run.poller_id,
        poller_group=run.poller_group,
        master_execution_id=run.master_execution_id or run.execution_id,
        chain_position=run.chain_position + position,
    )


def skip(
    run: Run,
    members: Sequence[_ChainMember],
    ending: Ending,
    now: datetime,
    *,
    waits: Mapping[int, FirstDiscovery] = MappingProxyType({}),
) -> None:
    """Record members that get no run in this slot; a member that waits for the first discovery owed none."""
    rows = [_chain_execution(run, member, position=number) for number, member in enumerate(members, start=1)]
    if not rows:
        return
    for row in rows:
        row.status, row.token, row.duration_ms = ExecutionState.SKIPPED, run.token, 0
        row.created_at = row.finished_at = now
        row.failure_kind = ending.failure.kind if ending.failure else ""
        if waits.get(row.node_id or 0) is FirstDiscovery.COMING:
            row.failure_kind = FailureKind.NO_ONUS
    Execution.objects.bulk_create(rows)


class _LookedAt(NamedTuple):
    """What a tick looks at every second; a row of an execution, its node and its OLT has eighty columns."""

    id: int
    status: str
    olt_id: int
    node_id: int | None
    poller_id: int | None
    token: int
    lease_counter: int
    owner: str
    cancel_requested_at: datetime | None
    resume_at: datetime | None
    failure_kind: str
    olt__enabled: bool
    olt__reachability: str
    olt__poller_group: str
    node__enabled: bool
    node__interval_seconds: int
    node__priority: int
    node__next_run_at: datetime | None
    node__run_requested_at: datetime | None
    node__suspended_at: datetime | None
    node__consecutive_failures: int
    node__job__query_type: str
    node__job__retry_delay_seconds: int
    node__job__hours_from: time | None
    node__job__hours_to: time | None
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Every execution that is not over: what holds an OLT, and what waits to continue where that is allowed."""

    active: tuple[Active, ...]
    waiting: tuple[DueNode, ...]

    @property
    def busy_olts(self) -> set[int]:
        return {run.olt_id for run in self.active}

    @property
    def busy_pollers(self) -> set[int]:
        return {run.poller_id for run in self.active if run.poller_id is not None}


@cache
def _unfinished(shard: Shard) -> Select:
    return Select(
        lambda: (
            Execution.objects.filter(in_shard("olt_id", shard), finished_at__isnull=True)
            .annotate(is_paused=hosts.is_paused("olt_id", Given("now", models.DateTimeField())))
            .order_by()
            .values_list(*_LookedAt._fields)
        )
    )


def load_unfinished(now: datetime, shard: Shard = WHOLE) -> Unfinished:
    """Load what a tick has to know of the shard's executions, in one query."""
    active, waiting = [], []
    for row in map(_LookedAt._make, _unfinished(shard).rows(now=now)):
        if row.status in ACTIVE:
            active.append(_active_of(row, is_enabled=row.olt__enabled))
        elif not row.is_paused and (run := _waiting(row, now)):
            waiting.append(run)
    return Unfinished(tuple(active), tuple(waiting))


@transaction.atomic
def end_waiting(executions: QuerySet[Execution], ending: Ending, *, now: datetime) -> int:
    """End executions that should no longer wait to continue, with their attempts; their chains are skipped."""
    rows = runs(executions.filter(status=ExecutionState.WAITING))
    error = ending.failure.message[:ERROR_LENGTH] if ending.failure else ""
    changes = {"status": ending.state, "finished_at": now, "error": error}
    if ending.failure and ending.state is ExecutionState.INTERRUPTED:
        changes["failure_kind"] = ending.failure.kind
    count = 0
    for row in rows:
        waiting = Execution.objects.filter(id=row.id, status=ExecutionState.WAITING)
        if waiting.update(**changes, resume_at=None):
            attempts = ExecutionAttempt.objects.filter(execution_id=row.id, finished_at__isnull=True)
            attempts.update(**changes)
            skip_chain(run_of(row), ending, now)
            count += 1
    return count


def end_abandoned(which: Q | None = None, *, now: datetime) -> int:
    """Interrupt runs, or which of them, that wait although their node or OLT was disabled, suspended or deleted."""
    if which is None and not _ANY_ABANDONED.rows():
        return 0
    ending = Ending(ExecutionState.INTERRUPTED, Failure(FailureKind.CANCELLED, "its node or its OLT no longer runs"))
    return end_waiting(_abandoned(which or Q()), ending, now=now)


def _abandoned(which: Q) -> QuerySet[Execution]:
    lost = Q(node__isnull=True) | Q(node__enabled=False) | Q(node__suspended_at__isnull=False) | Q(olt__enabled=False)
    return Execution.objects.filter(which, lost, finished_at__isnull=True)


# Asked every few seconds, and most of the time there are none.
_ANY_ABANDONED = Select(lambda: _abandoned(Q(status=ExecutionState.WAITING)).order_by().values_list("id")[:1])


def cancel(execution_id: int, *, now: datetime) -> bool:
    """Ask an execution to end: at once if it waits, before its next packet if it runs; False if it is over."""
    waiting = Execution.objects.filter(id=execution_id)
    cancelled = Ending(ExecutionState.INTERRUPTED, Failure(FailureKind.CANCELLED, "cancelled"))
    if end_waiting(waiting, cancelled, now=now) or request_cancel(execution_id, now=now):
        return True
    # It may have gone from running to waiting between the two.
    return bool(end_waiting(waiting, cancelled, now=now))


def is_another_waiting(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    """Whether a run of another node of the OLT could continue right now."""
    waiting = Execution.objects.filter(olt_id=olt_id, status=ExecutionState.WAITING, resume_at__lte=now)
    return (waiting.exclude(node_id=except_node_id) if except_node_id else waiting).exists()


def _active_of(row: "_LookedAt | Execution", *, is_enabled: bool) -> Active:
    return Active(
        row.id,
        row.olt_id,
        row.node_id,
        row.poller_id,
        row.token,
        row.owner,
        ExecutionState(row.status),
        row.lease_counter,
        wants_to_stop=row.cancel_requested_at is not None or not is_enabled,
    )


def _waiting(row: _LookedAt, now: datetime) -> DueNode | None:
    is_allowed = row.node__enabled and row.olt__enabled and row.node__suspended_at is None
    if row.node_id is None or row.resume_at is None or not is_allowed:
        return None
    is_run_now = row.node__run_requested_at is not None
    window = build_window((row.node__job__hours_from, row.node__job__hours_to))
    return DueNode(
        node_id=row.node_id,
        olt_id=row.olt_id,
        due_at=row.node__run_requested_at
        or ready_at(row.resume_at, longest_pause_seconds=row.node__job__retry_delay_seconds, now=now),
        interval_seconds=row.node__interval_seconds,
        priority=row.node__priority,
        # A slice that gave way lets everyone else go first; a retry is as urgent as its node.
        rank=RANK[QueryType(row.node__job__query_type)] if row.failure_kind else 0,
        is_run_now=is_run_now,
        execution_id=row.id,
        is_retry=bool(row.failure_kind),
        next_run_at=row.node__next_run_at,
        is_out_of_hours=not is_run_now and is_outside_hours(window, row.node__next_run_at, now),
        failures=row.node__consecutive_failures,
        is_olt_silent=row.olt__reachability == Reachability.DOWN,
        group=row.olt__poller_group,
    )

"""Claims, takes, renews and finishes executions. Every write is conditional on the fencing token."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import connection, models, transaction
from django.db.models import F, Q

from facho.executions.models import ERROR_LENGTH, Execution, ExecutionAttempt, OltToken, Origin
from facho.executions.outcome import Ending
from facho.executions.run import Run, open_attempt, run_of, runs
from facho.hosts.store import OLT_SECRETS, Device, load_devices
from facho.polling.domain.collection import Summary, join_summaries
from facho.polling.domain.execution_state import ACTIVE, ExecutionState
from facho.polling.domain.failure import FailureKind

# How the owner of a claim that a command made begins; the command alone carries it out.
COMMAND = "cli"
# A day: a clock that was set forward during a run must not overflow the column.
MAX_DURATION_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A wish to run one node on one OLT; `device` spares a query where the address is already known."""

    olt_id: int
    task_type: str
    origin: Origin
    node_id: int | None = None
    poller_id: int | None = None
    slot_at: datetime | None = None
    device: Device | None = None
    poller_group: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A wish that the database granted."""

    request: ClaimRequest
    execution_id: int
    token: int


class Renewal(StrEnum):
    """What became of an attempt to renew a lease."""

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
    status: ExecutionState
    lease_counter: int
    wants_to_stop: bool


def claim(
    requests: Sequence[ClaimRequest], *, owner: str, now: datetime, tokens: Mapping[int, int] | None = None
) -> list[Claimed]:
    """Insert one PENDING execution per wish and return those that won; the constraints decide.

    `tokens` are given by who took them before, to look at the OLTs while nobody else claims them.
    """
    devices = _devices(requests)
    requests = [request for request in requests if request.olt_id in devices]
    tokens = next_tokens(devices) if tokens is None else tokens
    rows = [
        Execution(
            olt_id=request.olt_id,
            address=devices[request.olt_id].address,
            port=devices[request.olt_id].port,
            node_id=request.node_id,
            task_type=request.task_type,
            origin=request.origin,
            status=ExecutionState.PENDING,
            slot_at=request.slot_at,
            poller_id=request.poller_id,
            poller_group=request.poller_group,
            token=tokens[request.olt_id],
            owner=owner,
            created_at=now,
        )
        for request in requests
    ]
    Execution.objects.bulk_create(rows, ignore_conflicts=True)
    won = Execution.objects.filter(olt_id__in=devices, status=ExecutionState.PENDING)
    ids = {(olt_id, token): pk for pk, olt_id, token in won.values_list("id", "olt_id", "token")}
    keyed = [(request, (request.olt_id, tokens[request.olt_id])) for request in requests]
    return [Claimed(request, ids[key], key[1]) for request, key in keyed if key in ids]


def next_tokens(olt_ids: Iterable[int]) -> dict[int, int]:
    """Raise the fencing token of each OLT and return the new ones; one statement, rows locked in order.

    Whoever claims or hands over an OLT takes its token before anything else: the order keeps them from deadlocks.
    """
    ordered = sorted(set(olt_ids))
    if not ordered:
        return {}
    places = ", ".join(["(%s, 1)"] * len(ordered))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO executions_olttoken (olt_id, token) VALUES {places} "  # noqa: S608 only placeholders
            "ON CONFLICT (olt_id) DO UPDATE SET token = executions_olttoken.token + 1 RETURNING olt_id, token",
            ordered,
        )
        return dict(cursor.fetchall())


@transaction.atomic
def take(execution_id: int, token: int | None, *, owner: str, now: datetime) -> Run | None:
    """Go from PENDING to RUNNING, unless another runner was faster or the claim was withdrawn.

    Without a token whichever is waiting is taken: a message has none, and a late one does no harm.
    """
    which = ~Q(owner__startswith=f"{COMMAND}/") if token is None else Q(token=token)
    taken = Execution.objects.filter(which, id=execution_id, status=ExecutionState.PENDING).update(
        status=ExecutionState.RUNNING, owner=owner, started_at=now, lease_counter=F("lease_counter") + 1
    )
    if not taken:
        return None
    execution = runs(Execution.objects.all()).get(id=execution_id)
    open_attempt(execution, now)
    return run_of(execution)


def renew(execution_id: int, token: int) -> Renewal:
    """Raise the lease's counter while the execution is still ours, and learn whether it should stop."""
    mine = Execution.objects.filter(id=execution_id, token=token, status=ExecutionState.RUNNING)
    if not mine.update(lease_counter=F("lease_counter") + 1):
        return Renewal.LOST
    wants_stop = mine.filter(cancel_requested_at__isnull=False) | mine.filter(olt__enabled=False)
    return Renewal.CANCELLED if wants_stop.exists() else Renewal.RENEWED


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
    closed = _mine(run).update(
        **outcome,
        finished_at=now if ending.is_final else None,
        resume_at=ending.resume_at,
        cursor=dict(ending.cursor) if ending.cursor else None,
        duration_ms=F("duration_ms") + duration_ms,
        result=join_summaries(run.result, summary, goes_on=run.request.cursor is not None),
    )
    if closed and (ending.is_final or ending.failure):
        tried = {**outcome, "status": ExecutionState.FAILED} if ending.failure and not ending.is_final else outcome
        ExecutionAttempt.objects.filter(execution_id=run.execution_id, number=run.attempt).update(
            **tried, finished_at=now
        )
    return bool(closed)


def hold_token(olt_id: int) -> None:
    """Keep others from claiming the OLT until the end of the transaction."""
    list(OltToken.objects.select_for_update().filter(olt_id=olt_id))


def still_as_seen(runs: Iterable[Active]) -> models.QuerySet[Execution]:
    """Select, and hold, those that nobody took, renewed or ended since they were seen; inside a transaction only.

    A row that someone is writing right now is not waited for: its owner lives, or is found dead again in the next tick.
    """
    seen = Q(id__in=[])
    for run in runs:
        seen |= Q(id=run.execution_id, token=run.token, lease_counter=run.lease_counter)
    return _active().filter(seen).select_for_update(skip_locked=True, of=("self",))


@transaction.atomic
def interrupt(execution_ids: Iterable[int], *, reason: str, now: datetime) -> int:
    """End executions that nobody carries on, so that their OLTs are free again."""
    outcome = _interrupted(reason, FailureKind.INTERNAL, now)
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
    rows = _active().filter(which or Q()).select_related("olt").defer(*OLT_SECRETS)
    return [active_of(execution) for execution in rows]


def active_of(execution: Execution) -> Active:
    """Copy what the scheduler looks at from a row whose OLT is loaded."""
    return Active(
        execution.id,
        execution.olt_id,
        execution.node_id,
        execution.poller_id,
        execution.token,
        ExecutionState(execution.status),
        execution.lease_counter,
        wants_to_stop=execution.cancel_requested_at is not None or not execution.olt.enabled,
    )


def load_pending(groups: Collection[str]) -> dict[int, bool]:
    """Return which executions wait for a worker of these groups, and whether each is a probe."""
    pending = Execution.objects.filter(
        ~Q(owner__startswith=f"{COMMAND}/"),
        finished_at__isnull=True,
        status=ExecutionState.PENDING,
        poller_group__in=groups,
    )
    return {pk: origin == Origin.PROBE for pk, origin in pending.order_by().values_list("id", "origin")}


@transaction.atomic
def claim_probes(groups: Mapping[int, str], *, at_once: int, owner: str, now: datetime) -> list[Claimed]:
    """Claim OLTs for a probe each, but only so many that in each group `at_once` are under way."""
    busy, under_way = load_busy_olts(), _active().filter(origin=Origin.PROBE)
    taken = Counter(under_way.values_list("poller_group", flat=True))
    wishes = []
    for olt_id, group in groups.items():
        if olt_id not in busy and taken[group] < at_once:
            taken[group] += 1
            wishes.append(ClaimRequest(olt_id, "probe", Origin.PROBE, poller_group=group))
    return claim(wishes, owner=owner, now=now) if wishes else []


def load_busy_olts() -> set[int]:
    """Return the OLTs that an active execution holds."""
    return set(_active().values_list("olt_id", flat=True))


def load_active_of_owner(prefix: str) -> list[Active]:
    """Load the active executions whose owner begins with `prefix`."""
    return load_active(Q(owner__startswith=prefix))


def _devices(requests: Sequence[ClaimRequest]) -> dict[int, Device]:
    """Return where each OLT is reached; one that was deleted is not in it."""
    known = {request.olt_id: request.device for request in requests if request.device}
    unknown = {request.olt_id for request in requests} - known.keys()
    return {**known, **load_devices(unknown)} if unknown else known


def _active() -> models.QuerySet[Execution]:
    # SQLite cannot use the partial index with bound values; the index on the end of a run serves the same rows.
    return Execution.objects.filter(finished_at__isnull=True, status__in=ACTIVE)


def _mine(run: Run) -> models.QuerySet[Execution]:
    return Execution.objects.filter(id=run.execution_id, token=run.token, status=ExecutionState.RUNNING)


def _interrupted(reason: str, kind: FailureKind, now: datetime) -> dict[str, object]:
    return {
        "status": ExecutionState.INTERRUPTED,
        "finished_at": now,
        "failure_kind": kind,
        "error": reason[:ERROR_LENGTH],
    }

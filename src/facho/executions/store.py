"""Claims, takes, renews and finishes executions. Every write is conditional on the fencing token."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import connection, models, transaction
from django.db.models import F

from facho.executions.models import ERROR_LENGTH, Execution, ExecutionAttempt, Origin
from facho.hosts.store import load_devices
from facho.polling.domain.collection import CollectRequest, Failure
from facho.polling.domain.execution_state import ACTIVE, ExecutionState
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.task_type import QueryType
from facho.snmp_jobs.models import ChainCondition, WorkflowNode


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A wish to run one node on one OLT."""

    olt_id: int
    task_type: str
    origin: Origin
    node_id: int | None = None
    poller_id: int | None = None
    slot_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A wish that the database granted."""

    request: ClaimRequest
    execution_id: int
    token: int


@dataclass(frozen=True, slots=True)
class Run:
    """An execution in the hands of a runner, as plain values."""

    execution_id: int
    token: int
    olt_id: int
    node_id: int | None
    poller_id: int | None
    slot_at: datetime | None
    task_type: str
    origin: str
    attempt: int
    started_at: datetime
    master_execution_id: int | None
    chain_position: int
    request: CollectRequest


class Renewal(StrEnum):
    """What became of an attempt to renew a lease."""

    RENEWED = "renewed"
    CANCELLED = "cancelled"
    LOST = "lost"


def claim(requests: Sequence[ClaimRequest], *, owner: str, now: datetime) -> list[Claimed]:
    """Insert one PENDING execution per wish and return those that won; the constraints decide."""
    devices = load_devices(request.olt_id for request in requests)
    requests = [request for request in requests if request.olt_id in devices]
    tokens = next_tokens(devices)
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
            token=tokens[request.olt_id],
            owner=owner,
            created_at=now,
        )
        for request in requests
    ]
    Execution.objects.bulk_create(rows, ignore_conflicts=True)
    won = Execution.objects.filter(olt_id__in=tokens, status=ExecutionState.PENDING)
    ids = {(olt_id, token): pk for pk, olt_id, token in won.values_list("id", "olt_id", "token")}
    keyed = [(request, (request.olt_id, tokens[request.olt_id])) for request in requests]
    return [Claimed(request, ids[key], key[1]) for request, key in keyed if key in ids]


def next_tokens(olt_ids: Iterable[int]) -> dict[int, int]:
    """Raise the fencing token of each OLT and return the new ones; one statement, rows locked in order."""
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
def take(execution_id: int, token: int, *, owner: str, now: datetime) -> Run | None:
    """Go from PENDING to RUNNING, unless another runner was faster or the claim was withdrawn."""
    taken = Execution.objects.filter(id=execution_id, token=token, status=ExecutionState.PENDING).update(
        status=ExecutionState.RUNNING, owner=owner, started_at=now, lease_counter=1
    )
    if not taken:
        return None
    execution = Execution.objects.select_related("olt", "node__job").get(id=execution_id)
    _open_attempt(execution, now)
    return _run(execution)


def renew(execution_id: int, token: int) -> Renewal:
    """Raise the lease's counter while the execution is still ours, and learn whether it should stop."""
    mine = Execution.objects.filter(id=execution_id, token=token, status=ExecutionState.RUNNING)
    if not mine.update(lease_counter=F("lease_counter") + 1):
        return Renewal.LOST
    wants_stop = mine.filter(cancel_requested_at__isnull=False) | mine.filter(olt__enabled=False)
    return Renewal.CANCELLED if wants_stop.exists() else Renewal.RENEWED


def close(
    run: Run, state: ExecutionState, *, failure: Failure | None, summary: Mapping[str, int | str], now: datetime
) -> bool:
    """Write the final state where the token still holds; False means that someone else ended it before."""
    outcome = {
        "status": state,
        "finished_at": now,
        "failure_kind": failure.kind if failure else "",
        "error": failure.message[:ERROR_LENGTH] if failure else "",
    }
    duration_ms = max(int((now - run.started_at).total_seconds() * 1000), 0)
    closed = Execution.objects.filter(id=run.execution_id, token=run.token, status=ExecutionState.RUNNING).update(
        **outcome, duration_ms=duration_ms, result=dict(summary)
    )
    if closed:
        ExecutionAttempt.objects.filter(execution_id=run.execution_id, number=run.attempt).update(**outcome)
    return bool(closed)


def open_next(run: Run, *, owner: str, master_succeeded: bool, now: datetime) -> Run | None:
    """Start the chain member after `run` under the same poller; call it right after `close`, in its transaction."""
    node = _next_chain_node(run, master_succeeded=master_succeeded)
    if node is None:
        return None
    execution = Execution.objects.create(
        olt_id=run.olt_id,
        address=run.request.address,
        port=run.request.port,
        node=node,
        task_type=node.job.task_type,
        origin=run.origin,
        status=ExecutionState.RUNNING,
        slot_at=run.slot_at,
        poller_id=run.poller_id,
        master_execution_id=run.master_execution_id or run.execution_id,
        chain_position=run.chain_position + 1,
        token=next_tokens([run.olt_id])[run.olt_id],
        owner=owner,
        lease_counter=1,
        created_at=now,
        started_at=now,
    )
    _open_attempt(execution, now)
    return _run(execution)


@transaction.atomic
def interrupt(execution_ids: Iterable[int], *, reason: str, now: datetime) -> int:
    """End executions whose holder is gone, so that their OLTs are free again."""
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


def load_busy_olts() -> set[int]:
    """Return the OLTs that an active execution holds."""
    return set(Execution.objects.filter(status__in=ACTIVE).values_list("olt_id", flat=True))


def load_lease_counters() -> dict[int, int]:
    """Return the lease counter of every active execution."""
    return dict(Execution.objects.filter(status__in=ACTIVE).values_list("id", "lease_counter"))


def load_active_of_owner(prefix: str) -> list[int]:
    """Return the active executions whose owner begins with `prefix`."""
    return list(Execution.objects.filter(owner__startswith=prefix, status__in=ACTIVE).values_list("id", flat=True))


def _open_attempt(execution: Execution, now: datetime) -> None:
    ExecutionAttempt.objects.create(
        execution=execution, number=execution.attempt, status=ExecutionState.RUNNING, started_at=now
    )


def _next_chain_node(run: Run, *, master_succeeded: bool) -> WorkflowNode | None:
    """Find the enabled member after `run` in the order (priority, id)."""
    current = WorkflowNode.objects.filter(id=run.node_id).first() if run.node_id else None
    if current is None:
        return None
    members = WorkflowNode.objects.filter(master_node_id=current.master_node_id or current.id, enabled=True)
    if not master_succeeded:
        members = members.exclude(job__chain_condition=ChainCondition.ON_SUCCESS)
    if current.is_chain_node:
        after = models.Q(priority=current.priority, id__gt=current.id) | models.Q(priority__gt=current.priority)
        members = members.filter(after)
    return members.select_related("job").order_by("priority", "id").first()


def _run(execution: Execution) -> Run:
    return Run(
        execution_id=execution.id,
        token=execution.token,
        olt_id=execution.olt_id,
        node_id=execution.node_id,
        poller_id=execution.poller_id,
        slot_at=execution.slot_at,
        task_type=execution.task_type,
        origin=execution.origin,
        attempt=execution.attempt,
        started_at=execution.started_at or execution.created_at,
        master_execution_id=execution.master_execution_id,
        chain_position=execution.chain_position,
        request=_collect_request(execution),
    )


def _collect_request(execution: Execution) -> CollectRequest:
    node, device = execution.node, (execution.address, execution.port)
    if node is None:
        return CollectRequest(execution.olt_id, *device, execution.olt.vendor, QueryType.GET, columns=())
    return CollectRequest(
        execution.olt_id,
        *device,
        vendor=execution.olt.vendor,
        query_type=QueryType(node.job.query_type),
        columns=tuple(node.job.oids.order_by("position", "id").values_list("column_key", flat=True)),
    )

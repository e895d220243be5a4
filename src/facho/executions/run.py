"""A run in the hands of a runner, as plain values; and the rows that each try of it has."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from facho.executions.models import Execution, ExecutionAttempt, OnuRead
from facho.polling.domain.collection import CollectRequest, FreeOid, Summary
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.onu_state import OnuPlace
from facho.polling.domain.task_type import QueryType


@dataclass(frozen=True, slots=True)
class Run:
    """An execution in the hands of a runner, as plain values."""

    execution_id: int
    token: int
    olt_id: int
    node_id: int | None
    poller_id: int | None
    poller_group: str
    slot_at: datetime | None
    task_type: str
    origin: str
    attempt: int
    started_at: datetime
    master_execution_id: int | None
    chain_position: int
    request: CollectRequest
    # What its earlier slices and tries brought.
    result: Summary


# What a runner needs of an execution, its node and its OLT, of some hundred columns.
_NEEDED = (
    "token",
    "olt_id",
    "node_id",
    "poller_id",
    "poller_group",
    "slot_at",
    "task_type",
    "origin",
    "attempt",
    "started_at",
    "created_at",
    "master_execution_id",
    "chain_position",
    "address",
    "port",
    "cursor",
    "result",
    "status",
    "olt__vendor",
    "node__job__query_type",
)


def runs(executions: QuerySet[Execution]) -> QuerySet[Execution]:
    """Select executions with what `run_of` copies, and nothing that is secret."""
    return executions.select_related("olt", "node__job").only(*_NEEDED)


def run_of(execution: Execution) -> Run:
    """Copy what a runner needs from the row."""
    return Run(
        execution_id=execution.id,
        token=execution.token,
        olt_id=execution.olt_id,
        node_id=execution.node_id,
        poller_id=execution.poller_id,
        poller_group=execution.poller_group,
        slot_at=execution.slot_at,
        task_type=execution.task_type,
        origin=execution.origin,
        attempt=execution.attempt,
        started_at=execution.started_at or execution.created_at,
        master_execution_id=execution.master_execution_id,
        chain_position=execution.chain_position,
        request=_collect_request(execution),
        result=execution.result or {},
    )


def open_attempt(execution: Execution, now: datetime) -> None:
    """Begin the attempt's row; a later slice of the same attempt leaves it as it is."""
    row = ExecutionAttempt(execution=execution, number=execution.attempt, status=ExecutionState.RUNNING, started_at=now)
    ExecutionAttempt.objects.bulk_create([row], ignore_conflicts=True)


def _collect_request(execution: Execution) -> CollectRequest:
    node, device = execution.node, (execution.address, execution.port)
    vendor = execution.olt.vendor
    if node is None:
        onu = _load_wanted_place(execution.id)
        return CollectRequest(execution.olt_id, *device, vendor, QueryType.GET, columns=(), onu=onu)
    reads = list(node.job.oids.order_by("position", "id"))
    return CollectRequest(
        execution.olt_id,
        *device,
        vendor=vendor,
        query_type=QueryType(node.job.query_type),
        columns=tuple(read.column_key for read in reads if read.column_key),
        cursor=execution.cursor,
        oids=tuple(FreeOid(read.oid, read.name, read.unit) for read in reads if read.oid),
    )


def _load_wanted_place(execution_id: int) -> OnuPlace | None:
    """Return where the ONU is that a person wants to have read, if that is what the execution is for."""
    wish = OnuRead.objects.filter(execution_id=execution_id)
    return wish.values_list("onu__pon_port__frame", "onu__pon_port__slot", "onu__pon_port__port", "onu__onu_id").first()

"""Builds what tests need in one call each; only what matters to a test is said there."""

from datetime import UTC, datetime, timedelta
from itertools import count

from facho.hosts.models import Olt
from facho.hosts.secrets import Secret
from facho.polling.domain.planning import DueNode
from facho.polling.domain.task_type import RANK, QueryType
from facho.snmp_jobs.models import ChainCondition, SnmpJob, SnmpJobOid, Workflow, WorkflowNode

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_numbers = count(1)


def due_node(
    *,
    olt_id: int = 1,
    late_seconds: float = 0,
    interval_seconds: int = 300,
    priority: int = 50,
    query_type: QueryType = QueryType.GET,
    is_run_now: bool = False,
) -> DueNode:
    return DueNode(
        node_id=next(_numbers),
        olt_id=olt_id,
        due_at=NOW - timedelta(seconds=late_seconds),
        interval_seconds=interval_seconds,
        priority=priority,
        rank=RANK[query_type],
        is_run_now=is_run_now,
    )


def make_olt(*, port: int | None = None, vendor: str = "huawei_smartax", enabled: bool = True) -> Olt:
    number = next(_numbers)
    return Olt.objects.create(
        name=f"OLT-{number}",
        host="127.0.0.1",
        address="127.0.0.1",
        port=port or 20_000 + number,
        vendor=vendor,
        community=Secret("public"),
        enabled=enabled,
    )


def make_job(
    *, query_type: QueryType = QueryType.GET, columns: tuple[str, ...] = ("onu.description",), on_success: bool = False
) -> SnmpJob:
    job = SnmpJob.objects.create(
        name=f"Job {next(_numbers)}",
        slug=f"job-{next(_numbers)}",
        vendor="huawei_smartax",
        query_type=query_type.value,
        chain_condition=ChainCondition.ON_SUCCESS if on_success else ChainCondition.ALWAYS,
    )
    SnmpJobOid.objects.bulk_create(
        SnmpJobOid(job=job, position=position, column_key=key) for position, key in enumerate(columns)
    )
    return job


def make_node(
    olt: Olt | None = None,
    job: SnmpJob | None = None,
    *,
    next_run_at: datetime | None = NOW,
    interval_seconds: int = 300,
    enabled: bool = True,
) -> WorkflowNode:
    workflow, _ = Workflow.objects.get_or_create(olt=olt or make_olt())
    return WorkflowNode.objects.create(
        workflow=workflow,
        job=job or make_job(),
        interval_seconds=interval_seconds,
        next_run_at=next_run_at,
        enabled=enabled,
    )


def chain_to(
    master: WorkflowNode, *, priority: int = 50, enabled: bool = True, on_success: bool = False
) -> WorkflowNode:
    return WorkflowNode.objects.create(
        workflow=master.workflow,
        job=make_job(on_success=on_success),
        interval_seconds=master.interval_seconds,
        priority=priority,
        enabled=enabled,
        is_chain_node=True,
        master_node=master,
    )

"""Builds what tests need in one call each; only what matters to a test is said there."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count

from facho.executions.models import Execution
from facho.executions.store import Active
from facho.hosts.models import Olt
from facho.infrastructure.secrets import Secret
from facho.polling.domain.execution_state import RANK, QueryType
from facho.polling.domain.planning import Assignment, DueNode, WaitReason
from facho.snmp_jobs.models import ChainCondition, SnmpJob, SnmpJobOid, Workflow, WorkflowNode
from facho.zabbix_pollers.store import claim_assignments

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


def make_olt(
    *,
    port: int | None = None,
    vendor: str = "huawei_smartax",
    enabled: bool = True,
    discovered_at: datetime | None = NOW - timedelta(days=1),
) -> Olt:
    number = next(_numbers)
    return Olt.objects.create(
        name=f"OLT-{number}",
        host="127.0.0.1",
        address="127.0.0.1",
        port=port or 20_000 + number,
        vendor=vendor,
        community=Secret("public"),
        enabled=enabled,
        discovered_at=discovered_at,
    )


def give_secrets(olts: Iterable[Olt] | None = None, **secrets: str) -> None:
    """Store other secrets for OLTs, by default for all; each for the place where its OLT is."""
    for olt in Olt.objects.all() if olts is None else olts:
        for name, text in secrets.items():
            setattr(olt, name, Secret(text))
        olt.save(update_fields=list(secrets))


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
    offset_seconds: int = 0,
    enabled: bool = True,
) -> WorkflowNode:
    workflow, _ = Workflow.objects.get_or_create(olt=olt or make_olt())
    return WorkflowNode.objects.create(
        workflow=workflow,
        job=job or make_job(),
        interval_seconds=interval_seconds,
        offset_seconds=offset_seconds,
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


def claim_nodes(
    nodes: Iterable[WorkflowNode], *, now: datetime = NOW, waited: WaitReason | None = None, poller_id: int = 0
) -> list[Active]:
    """Start nodes as a tick does that has found them due."""
    assignments = [
        Assignment(DueNode(node.id, node.workflow.olt_id, now, node.interval_seconds, node.priority, 0), number, waited)
        for number, node in enumerate(nodes, start=poller_id)
    ]
    return claim_assignments(assignments, owner="engine/test", now=now)


def claim_waiting(execution: Execution, *, now: datetime = NOW, poller_id: int = 0) -> list[Active]:
    """Let an execution go on that waits, as a tick does that has found it ready."""
    node = DueNode(execution.node_id or 0, execution.olt_id, now, 300, 50, 0, execution_id=execution.id)
    return claim_assignments([Assignment(node, poller_id)], owner="engine/test", now=now)

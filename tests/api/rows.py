"""Makes the rows that pages and API show, with values that a test did not name filled in."""

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.utils import timezone

from facho.accounts.roles import Role, give_role
from facho.executions.models import Execution
from facho.hosts.models import Olt, OltData, WaitingOnu
from facho.onus.models import Onu, OnuReading, PonPort
from facho.polling.domain.execution_state import TERMINAL, ExecutionState
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
from facho.zabbix_pollers.models import LeaderLease, Poller

NOW = datetime(2030, 5, 6, 12, 0, 0, tzinfo=UTC)
PASSWORD = "correct horse battery"

_numbers = count(1)


def make_user(role: Role | None = Role.VIEWER, name: str = "", **fields: Any) -> User:
    """Make someone who can log in with PASSWORD."""
    user = User.objects.create(username=name or f"{role}-{next(_numbers)}", password=_hashed_password(), **fields)
    if role is not None:
        give_role(user, role)
    return user


@cache
def _hashed_password() -> str:
    """Hash once: it is slow on purpose."""
    return make_password(PASSWORD)


def make_olt(name: str = "", **fields: Any) -> Olt:
    """Make an OLT at an address of its own."""
    number = next(_numbers)
    values: dict[str, Any] = {
        "name": name or f"OLT {number}",
        "host": f"olt-{number}.example",
        "address": f"10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}",
        "community": "canary-7f3a",
        "discovered_at": datetime(2026, 1, 1, tzinfo=UTC),
        **fields,
    }
    return Olt.objects.create(**values)


def make_node(olt: Olt | None = None, *, master: WorkflowNode | None = None, **fields: Any) -> WorkflowNode:
    """Make a node with a job of its own; with a master it is a member of that master's chain."""
    number = next(_numbers)
    job_fields = {key: fields.pop(key) for key in ("query_type", "name", "slug") if key in fields}
    job = SnmpJob.objects.create(
        **{"name": f"Job {number}", "slug": f"job_{number}", "query_type": "get", **job_fields}
    )
    workflow = master.workflow if master else Workflow.objects.get_or_create(olt=olt or make_olt())[0]
    values = {"interval_seconds": 300, "is_chain_node": master is not None, "master_node": master, **fields}
    return WorkflowNode.objects.create(workflow=workflow, job=job, **values)


def make_execution(
    node: WorkflowNode, status: ExecutionState = ExecutionState.RUNNING, *, at: datetime | None = None, **fields: Any
) -> Execution:
    """Make a run of a node that was claimed `at` a moment; a final state ended one second later."""
    claimed_at = at or timezone.now()
    ended = {"finished_at": claimed_at + timedelta(seconds=1)} if status in TERMINAL else {}
    values = {
        "olt": node.workflow.olt,
        "address": node.workflow.olt.address,
        "port": node.workflow.olt.port,
        "node": node,
        "task_type": node.job.task_type,
        "status": status,
        "token": next(_numbers),
        "created_at": claimed_at,
        "started_at": claimed_at,
        **ended,
        **fields,
    }
    return Execution.objects.create(**values)


def make_onu(olt: Olt, place: tuple[int, int, int, int] = (0, 1, 0, 0), **fields: Any) -> Onu:
    """Make an ONU with its reading at a frame, slot, port and number."""
    frame, slot, port, number = place
    reading = {key: fields.pop(key) for key in list(fields) if hasattr(OnuReading, key) and not hasattr(Onu, key)}
    pon_port, _ = PonPort.objects.get_or_create(olt=olt, frame=frame, slot=slot, port=port)
    values = {"serial": f"HWTC{next(_numbers):08X}", "first_seen_at": NOW, **fields}
    onu = Onu.objects.create(olt=olt, pon_port=pon_port, onu_id=number, **values)
    OnuReading.objects.create(onu=onu, **reading)
    return onu


def make_olt_value(olt: Olt, name: str = "board.cpu", **fields: Any) -> OltData:
    """Make a value that an OLT reported about itself."""
    values = {
        "oid": f"1.3.6.1.4.1.9.{next(_numbers)}",
        "index": "0.1",
        "place": "0/1",
        "value": "23",
        "unit": "percent",
    }
    return OltData.objects.create(olt=olt, name=name, updated_at=NOW, **{**values, **fields})


def make_waiting_onu(olt: Olt, **fields: Any) -> WaitingOnu:
    """Make an ONU that waits for authorisation."""
    values = {"frame": 0, "slot": 1, "port": 3, "serial": f"HWTC{next(_numbers):08X}", "model": "ONT", **fields}
    return WaitingOnu.objects.create(olt=olt, **{"first_seen_at": NOW, "last_seen_at": NOW, **values})


def make_pollers(number: int) -> None:
    """Make free pollers, numbered from 0 as the engine does."""
    Poller.objects.bulk_create([Poller(poller_id=poller_id) for poller_id in range(number)])


def make_leader(renewed_at: datetime | None = None) -> None:
    """Make a scheduler that leads."""
    LeaderLease.objects.create(name="scheduler", owner="test", renewed_at=renewed_at or timezone.now())

"""What the last step shows: how far the first runs have come, and what they found."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction

from facho.dashboard.olt.views import NodeLine, OnuNotice, load_nodes, load_onu_notice
from facho.dashboard.overview.olt_rows import OnuCounts, load_onu_counts
from facho.execution_coordinator.feasibility import OltFeasibility, is_live, load_feasibility
from facho.hosts.models import Olt, OltData
from facho.polling.vendors.definition import Definition
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.ready_made import apply_ready_made_jobs
from facho.snmp_jobs.store import request_run
from facho.zabbix_pollers.activity import load_is_polling
from facho.zabbix_pollers.explain import Situation


class FirstRunStage(StrEnum):
    COMING = "coming"
    NOW = "now"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FirstRun:
    node: NodeLine
    stage: FirstRunStage


@dataclass(frozen=True, slots=True)
class FirstData:
    runs: list[FirstRun]
    onus: OnuCounts
    values: int
    measured: OltFeasibility | None
    is_polling: bool
    notice: OnuNotice | None

    @property
    def has_data(self) -> bool:
        return bool(self.onus.total or self.values)

    @property
    def percent(self) -> float:
        """Share of the hour the jobs take, as measured so far."""
        return self.measured.judged.share * 100 if self.measured else 0.0


@transaction.atomic
def start_jobs(olt: Olt, definition: Definition, intervals: dict[str, int], *, now: datetime) -> int:
    """Give the OLT the chosen jobs and start the cheap ones at once: the operator is waiting."""
    added = apply_ready_made_jobs(olt, now=now, intervals=intervals)
    cheap = [job.slug for job in definition.jobs if job.chain_of is None and not is_live(definition, job)]
    masters = WorkflowNode.objects.filter(workflow__olt=olt, is_chain_node=False, job__slug__in=cheap)
    for node_id in masters.values_list("id", flat=True):
        request_run(node_id, now=now)
    return added


def load_first_data(olt_id: int, now: datetime) -> FirstData:
    nodes = load_nodes(olt_id, now)
    return FirstData(
        runs=[FirstRun(node, _stage(node)) for node in nodes],
        onus=load_onu_counts(olt_id=olt_id).get(olt_id, OnuCounts()),
        values=OltData.objects.filter(olt_id=olt_id).count(),
        measured=load_feasibility([olt_id]).get(olt_id),
        is_polling=load_is_polling(now),
        notice=load_onu_notice(olt_id),
    )


def _stage(node: NodeLine) -> FirstRunStage:
    if node.situation is Situation.RUNNING:
        return FirstRunStage.NOW
    if node.failures or node.situation in (Situation.SUSPENDED, Situation.RETRY):
        return FirstRunStage.FAILED
    return FirstRunStage.DONE if node.last_run_at else FirstRunStage.COMING

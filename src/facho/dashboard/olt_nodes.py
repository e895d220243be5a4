"""The nodes of an OLT: masters with their chains, when each runs next, and why not now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.explain import Explanation, Situation
from facho.zabbix_pollers.explain_read_model import load_explanations
from facho.zabbix_pollers.explain_words import sentences

_LOOKS = {
    Situation.RUNNING: "up",
    Situation.RETRY: "late",
    Situation.SUSPENDED: "down",
    Situation.DISABLED: "disabled",
    Situation.OLT_DISABLED: "disabled",
    Situation.NOT_SCHEDULED: "disabled",
}

_OFF = frozenset({Situation.DISABLED, Situation.OLT_DISABLED, Situation.SUSPENDED})
# The column of the next run says it all.
_SPEAK_FOR_THEMSELVES = frozenset({Situation.CHAINED, Situation.NOT_DUE})


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One line: a master, or under it a member of its chain, which has no time of its own."""

    id: int
    name: str
    task_type: str
    is_member: bool
    interval_seconds: int
    last_run_at: datetime | None
    runs_at: datetime | None
    situation: Situation
    said: list[str]
    failures: int

    @property
    def look(self) -> str:
        """How much the situation asks for attention."""
        return _LOOKS.get(self.situation, "unknown")

    @property
    def can_be_asked(self) -> bool:
        """Whether a run of it can be asked for: a member runs with its master, and nothing that is switched off."""
        return not self.is_member and self.situation not in _OFF

    @property
    def is_suspended(self) -> bool:
        """Whether it waits for a probe or a person."""
        return self.situation is Situation.SUSPENDED


def load_nodes(olt_id: int, now: datetime) -> list[NodeRow]:
    """Load every node with its explanation, each master before its chain; ten queries."""
    explained = load_explanations(olt_id, now)
    nodes = WorkflowNode.objects.filter(workflow__olt_id=olt_id).select_related("job")
    rows = [node for node in nodes if node.id in explained]
    return [_row(node, explained[node.id]) for node in _in_order(rows)]


def _in_order(nodes: Iterable[WorkflowNode]) -> list[WorkflowNode]:
    """Order masters by their interval, the shortest first, and members in their turn."""
    rows = list(nodes)
    pace = {node.id: (node.interval_seconds, node.id) for node in rows}
    return sorted(
        rows,
        key=lambda node: (
            pace.get(node.master_node_id or node.id, (0, 0)),
            node.is_chain_node,
            node.priority,
            node.id,
        ),
    )


def _row(node: WorkflowNode, explanation: Explanation) -> NodeRow:
    return NodeRow(
        id=node.id,
        name=node.job.name,
        task_type=node.job.task_type,
        is_member=node.is_chain_node,
        interval_seconds=node.interval_seconds,
        last_run_at=node.last_run_at,
        runs_at=None if node.is_chain_node else explanation.runs_at,
        situation=explanation.situation,
        said=[] if explanation.situation in _SPEAK_FOR_THEMSELVES else sentences(explanation),
        failures=node.consecutive_failures,
    )

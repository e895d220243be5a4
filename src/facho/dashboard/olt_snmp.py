"""How an OLT answers: what was sent to it in the last hour, how fast it answered, and what it takes in a packet."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.executions.run_sums import Runs, load_run_sums
from facho.hosts.learned import load_learned_sizes
from facho.polling.domain.execution_state import ExecutionState

LAST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Runs that ended in the last hour, of one task type or of all."""

    task_type: str
    runs: Runs
    failed: int

    @property
    def average_seconds(self) -> float:
        """How long a run holds the OLT."""
        return self.runs.total_ms / self.runs.count / 1000 if self.runs.count else 0.0

    @property
    def repeated_percent(self) -> float:
        """The share of packets that were sent again because no answer came in time."""
        return 100 * self.runs.retransmissions / self.runs.packets if self.runs.packets else 0.0


@dataclass(frozen=True, slots=True)
class SnmpFigures:
    """All task types, their sum, and the rows that fit into one packet by what is read."""

    traffic: list[Traffic]
    total: Traffic
    learned: list[tuple[str, int]]


def load_snmp_figures(olt_id: int, now: datetime) -> SnmpFigures:
    """Load how the OLT answered; two queries."""
    runs: dict[str, Runs] = defaultdict(Runs)
    failed: dict[str, int] = defaultdict(int)
    for summed in load_run_sums(now - LAST, olt_id):
        runs[summed.task_type] += summed.runs
        failed[summed.task_type] += summed.runs.count if summed.status == ExecutionState.FAILED else 0
    traffic = [Traffic(kind, runs[kind], failed[kind]) for kind in sorted(runs)]
    total = Traffic("", sum(runs.values(), Runs()), sum(failed.values()))
    return SnmpFigures(traffic, total, sorted(load_learned_sizes(olt_id).items()))

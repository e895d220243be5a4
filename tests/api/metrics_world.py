"""Rows that /metrics tells of, and a scrape as Prometheus makes it: what cannot be parsed, or stands twice, fails."""

from datetime import datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families

from api.rows import NOW, make_execution, make_node, make_olt, make_olt_value, make_onu
from facho.api.metrics import render_metrics
from facho.execution_coordinator.models import QuotaTracker
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt, Reachability
from facho.onus.models import Outage
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.schedule import HOUR, hour_of
from facho.snmp_jobs.models import WorkflowNode
from facho.traps.models import TrapSender

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
THIS_HOUR = hour_of(NOW)

Key = tuple[str, tuple[tuple[str, str], ...]]


class Scraped:
    """All samples of one scrape, by name and labels."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples: dict[Key, float] = {}
        for sample in (sample for family in self.families for sample in family.samples):
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in self.samples, f"{key} stands twice"
            self.samples[key] = sample.value

    def value(self, name: str, **labels: str) -> float | None:
        """Return the figure of one series; None when there is none."""
        return self.samples.get((name, tuple(sorted(labels.items()))))

    def labelled(self, name: str) -> list[dict[str, str]]:
        """Return the labels of all series of a name."""
        return [dict(labels) for found, labels in self.samples if found == name]


def scrape(now: datetime = NOW) -> Scraped:
    """Scrape at a moment."""
    return Scraped(render_metrics(now).decode())


def make_world(name: str = "") -> Olt:
    """Make an OLT for which every family has a sample."""
    olt = make_olt(name, reachability=Reachability.UP, last_answer_at=NOW - MINUTE)
    TrapSender.objects.get_or_create(
        address="192.0.2.9", reason="rate", defaults={"count": 7, "first_heard_at": NOW, "last_heard_at": NOW}
    )
    failed = make_execution(make_node(olt), ExecutionState.FAILED, at=NOW - MINUTE, attempt=2)
    make_attempts(failed, (0, 1), (2, 3))
    make_execution(make_node(olt, next_run_at=NOW), ExecutionState.SUCCESS, at=NOW - MINUTE)
    suspend(make_node(olt))
    make_quota(olt, required=1)
    make_onu(olt, run_state="online", rx_power_cdbm=-2150, olt_rx_power_cdbm=-2300)
    make_olt_value(olt, "pon.in_octets", per_second=1500.0)
    times = {"started_at": NOW, "resumed_at": NOW}
    Outage.objects.create(olt=olt, scope="pon", cause="fibre", affected=3, down=2, **times)
    return olt


def make_quota(olt: Olt, *, start: datetime = THIS_HOUR.start, **counts: int) -> None:
    """Make the quota of discoveries of an OLT in an hour."""
    figures = {f"quota_{name}": count for name, count in counts.items()}
    QuotaTracker.objects.create(olt=olt, task_type="discovery", period_start=start, period_end=start + HOUR, **figures)


def make_attempts(execution: Execution, *offsets: tuple[int, int]) -> None:
    """Write down tries that began and ended so many seconds after the claim."""
    ExecutionAttempt.objects.bulk_create(
        ExecutionAttempt(
            execution=execution,
            number=number,
            status=ExecutionState.FAILED,
            started_at=execution.created_at + begun * SECOND,
            finished_at=execution.created_at + ended * SECOND,
        )
        for number, (begun, ended) in enumerate(offsets, start=1)
    )


def suspend(node: WorkflowNode, reason: str = "unreachable") -> None:
    """Suspend a node a minute ago."""
    node.suspended_at, node.suspend_reason = NOW - MINUTE, reason
    node.save()

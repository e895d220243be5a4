"""Audits schedules: notes every step of every node along its grid, and finds slots that were passed without a trace.

A slot that a node's schedule has left behind is settled when it has a run that was carried out, a row that says why it
was skipped, or, when its run was broken off, a line in the coordinator's log. It uses none of the rules that move
nodes: slots are numbers of seconds, and the steps are noted by the database itself.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

SQLITE_STEPS = """
CREATE TABLE slot_steps (number integer PRIMARY KEY, node_id bigint, at text, next_run_at text,
                         interval_seconds integer, offset_seconds integer);
CREATE TRIGGER step_insert AFTER INSERT ON snmp_job_hosts BEGIN INSERT INTO slot_steps
(node_id, at, next_run_at, interval_seconds, offset_seconds) VALUES (NEW.id, strftime('%Y-%m-%d %H:%M:%f', 'now'),
 NEW.next_run_at, NEW.interval_seconds, NEW.offset_seconds); END;
CREATE TRIGGER step_update AFTER UPDATE OF next_run_at, interval_seconds, offset_seconds ON snmp_job_hosts
BEGIN INSERT INTO slot_steps
(node_id, at, next_run_at, interval_seconds, offset_seconds) VALUES (NEW.id, strftime('%Y-%m-%d %H:%M:%f', 'now'),
 NEW.next_run_at, NEW.interval_seconds, NEW.offset_seconds); END;
"""
POSTGRESQL_STEPS = """
CREATE TABLE slot_steps (number bigserial PRIMARY KEY, node_id bigint, at timestamptz, next_run_at timestamptz,
                         interval_seconds integer, offset_seconds integer);
CREATE FUNCTION note_step() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO slot_steps (node_id, at, next_run_at, interval_seconds, offset_seconds)
   VALUES (NEW.id, clock_timestamp(), NEW.next_run_at, NEW.interval_seconds, NEW.offset_seconds); RETURN NEW; END $$;
CREATE TRIGGER step_insert AFTER INSERT ON snmp_job_hosts FOR EACH ROW EXECUTE FUNCTION note_step();
CREATE TRIGGER step_update AFTER UPDATE OF next_run_at, interval_seconds, offset_seconds ON snmp_job_hosts
FOR EACH ROW EXECUTE FUNCTION note_step();
"""
# A node is taken off its grid by a clock that was read a moment before the database noted it.
NOTED_WITHIN = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Step:
    """How a node's schedule stands from a moment on: its next run, None while it has none, and its grid.

    Without the moment nobody knows what had come when a node was taken off its grid, and nothing is asked for.
    """

    at: datetime | None
    next_run_at: datetime | None
    interval_seconds: int
    offset_seconds: int


@dataclass(slots=True)
class Audit:
    """What became of the slots that schedules have left behind."""

    owed: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    unaccounted: list[str] = field(default_factory=list)
    started_twice: list[tuple[int, datetime]] = field(default_factory=list)
    # Runs of the schedule that serve no slot: once more for one that had its run, after the clock was set back.
    without_slot: int = 0


def passed_slots(steps: Sequence[Step], *, noted_within: timedelta = timedelta(0)) -> Iterator[datetime]:
    """List the slots that a node's schedule left behind, each by the grid that held when it was left."""
    for before, after in pairwise(steps):
        until = after.next_run_at or (after.at and after.at - noted_within)
        if before.next_run_at and until:
            yield from _slots(before, before.next_run_at, until)


def _slots(step: Step, since: datetime, until: datetime) -> Iterator[datetime]:
    """List the due time itself and what stands on the grid after it, before the end."""
    if since < until:
        yield since
    second = int(since.timestamp()) + 1
    second += (step.offset_seconds - second) % step.interval_seconds
    while (slot := datetime.fromtimestamp(second, UTC)) < until:
        yield slot
        second += step.interval_seconds


def install_steps() -> None:
    """Let the database of this process note every step from now on, and how schedules stand now."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.executescript(SQLITE_STEPS)
        else:
            cursor.execute(POSTGRESQL_STEPS)
        cursor.execute(
            "INSERT INTO slot_steps (node_id, next_run_at, interval_seconds, offset_seconds)"
            " SELECT id, next_run_at, interval_seconds, offset_seconds FROM snmp_job_hosts"
        )


@contextmanager
def noting_steps() -> Iterator[None]:
    """Note steps for a while, in a database that others use after us."""
    from django.db import connection

    install_steps()
    try:
        yield
    finally:
        on_table = "" if connection.vendor == "sqlite" else " ON snmp_job_hosts"
        with connection.cursor() as cursor:
            for name in ("step_insert", "step_update"):
                cursor.execute(f"DROP TRIGGER {name}{on_table}")
            cursor.execute("DROP TABLE slot_steps")
            if connection.vendor == "postgresql":
                cursor.execute("DROP FUNCTION note_step")


def audit_database(*, in_virtual_time: bool = False) -> Audit:
    """Audit every master, and of each chain member what its master left behind.

    In virtual time the database's own clock says nothing about when a step was taken.
    """
    from facho.executions.models import Execution, Origin
    from facho.snmp_jobs.models import WorkflowNode

    runs = Execution.objects.filter(origin=Origin.SCHEDULE)
    starts = Counter(runs.filter(slot_at__isnull=False).values_list("node_id", "slot_at"))
    found = Audit(
        started_twice=[(node_id or 0, slot) for (node_id, slot), times in starts.items() if times > 1 and slot],
        without_slot=runs.filter(slot_at=None).count(),
    )
    fates = _load_fates()
    steps = _load_steps(in_virtual_time=in_virtual_time)
    nodes = WorkflowNode.objects.filter(job__cadence="fixed_rate", job__hours_from=None)
    for node_id, master_id in nodes.values_list("id", "master_node_id"):
        slots = sorted(set(passed_slots(steps.get(master_id or node_id, []), noted_within=NOTED_WITHIN)))
        _settle(found, node_id, slots, fates)
    return found


def _settle(found: Audit, node_id: int, slots: Iterable[datetime], fates: dict[tuple[int, datetime], str]) -> None:
    for slot in slots:
        fate = fates.get((node_id, slot), "nothing")
        found.owed += 1
        found.fates[fate] += 1
        if fate in ("nothing", "broken off, unreported"):
            found.unaccounted.append(f"node {node_id} slot {slot:%H:%M:%S}: {fate}")


def _load_fates() -> dict[tuple[int, datetime], str]:
    """Return what is written down about each slot of each node."""
    from facho.execution_coordinator.models import CoordinatorLog
    from facho.executions.models import Execution
    from facho.snmp_jobs.models import SkippedSlot

    lines = CoordinatorLog.objects.filter(event_type="EXECUTION_ABORTED").values_list("details", flat=True)
    reported = {details.get("execution") for details in lines}
    fates: dict[tuple[int, datetime], str] = {}
    for node_id, slot_at, reason in SkippedSlot.objects.values_list("node_id", "slot_at", "reason"):
        fates[node_id, slot_at] = f"skipped: {reason}"
    runs = Execution.objects.filter(slot_at__isnull=False, node_id__isnull=False)
    for pk, node_id, slot_at, status in runs.values_list("id", "node_id", "slot_at", "status"):
        broken_off = "broken off, reported" if pk in reported else "broken off, unreported"
        fates[node_id, slot_at] = broken_off if status == "INTERRUPTED" else status.lower()
    return fates


def _load_steps(*, in_virtual_time: bool) -> dict[int, list[Step]]:
    from django.db import connection

    steps: dict[int, list[Step]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT node_id, at, next_run_at, interval_seconds, offset_seconds FROM slot_steps ORDER BY number"
        )
        for node_id, at, next_run_at, interval, offset in cursor.fetchall():
            noted_at = None if in_virtual_time else _moment(at)
            steps.setdefault(node_id, []).append(Step(noted_at, _moment(next_run_at), interval, offset))
    return steps


def _moment(value: datetime | str | None) -> datetime | None:
    """Read a time as the database returns it to who does not ask through a model."""
    return datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) else value

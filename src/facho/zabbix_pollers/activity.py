"""What happens now: active executions, how busy they kept each poller, and whether anyone leads."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import DateTimeField, Q, QuerySet
from django.db.models.functions import Coalesce

from facho.executions.models import Execution, Origin
from facho.infrastructure.statements import Given, Select
from facho.polling.domain.execution_state import ACTIVE
from facho.polling.domain.lease import Shard, all_shards, shard_of
from facho.polling.domain.planning import WINDOW, Span, busy_percentage
from facho.zabbix_pollers.models import PollerStats
from facho.zabbix_pollers.store import Leader, load_leaders

# The leader renews every few seconds; half a minute without is no hiccup.
LEADER_SILENCE = timedelta(seconds=30)

# Active implies unfinished. Saying so lets both databases use a plain index on the end of a run: SQLite cannot
# match bound parameters with the condition of the partial one.
_IS_ACTIVE = Q(status__in=sorted(ACTIVE), finished_at__isnull=True)


@dataclass(frozen=True, slots=True)
class Holder:
    """The execution that holds an OLT: a run of a node, perhaps as a chain member, or a query without a node."""

    execution_id: int
    node_id: int | None
    master_node_id: int | None
    # The node's name, or the kind of question that has no node.
    name: str
    origin: Origin
    poller_id: int | None
    since: datetime
    owner: str
    task_type: str


def active_executions() -> QuerySet[Execution]:
    return Execution.objects.filter(_IS_ACTIVE).order_by()


def load_holder(olt_id: int) -> Holder | None:
    return load_holders([olt_id]).get(olt_id)


def load_holders(olt_ids: Collection[int]) -> dict[int, Holder]:
    """Load the current holder of each OLT, since the start of the master's present slice; one query."""
    active = active_executions().filter(olt_id__in=olt_ids).select_related("node__job", "master_execution")
    holders = {}
    for execution in active:
        master = execution.master_execution or execution
        holders[execution.olt_id] = Holder(
            execution_id=execution.id,
            node_id=execution.node_id,
            master_node_id=master.node_id,
            name=execution.node.job.name if execution.node else execution.task_type,
            origin=Origin(execution.origin),
            poller_id=execution.poller_id,
            since=master.started_at or master.created_at,
            owner=execution.owner,
            task_type=execution.task_type,
        )
    return holders


def _select_held() -> QuerySet[Execution, Any]:
    is_recent = Q(finished_at__gt=Given("since", DateTimeField()))
    held = Execution.objects.filter(_IS_ACTIVE | is_recent, poller_id__isnull=False).order_by()
    # From the start of the last slice: a run that waited in between held no poller.
    rows = held.annotate(held_from=Coalesce("started_at", "created_at"))
    return rows.values_list("poller_id", "held_from", "finished_at")


_HELD = Select(_select_held)


def load_busy_percentages(now: datetime) -> dict[int, float]:
    """Measure, per poller, the share of the last 60 s in which an execution held it."""
    spans: dict[int | None, list[Span]] = defaultdict(list)
    for poller_id, held_from, finished_at in _HELD.rows(since=now - WINDOW):
        spans[poller_id].append((held_from, finished_at))
    return {
        poller_id: round(busy_percentage(held_spans, pollers=1, now=now), 1)
        for poller_id, held_spans in spans.items()
        if poller_id is not None
    }


def load_was_saturated() -> bool:
    return bool(PollerStats.objects.order_by("-timestamp").values_list("is_saturated", flat=True).first())


def our_shards() -> tuple[Shard, ...]:
    """Return the engines among which the settings share the OLTs."""
    return all_shards(settings.FACHO_ENGINES)


def load_is_polling(now: datetime, *, olt_id: int | None = None) -> bool:
    """Return whether every engine, or the one of an OLT, renews its lease and starts nodes; one query."""
    shards = our_shards() if olt_id is None else (shard_of(olt_id, our_shards()),)
    return all(is_scheduling(leader, now) for leader in load_leaders(shards).values())


def is_scheduling(leader: Leader, now: datetime) -> bool:
    """Return, by the wall clock, whether the holder of a lease lives and starts nodes."""
    return is_led(leader, now) and not leader.is_stalled


def is_led(leader: Leader, now: datetime) -> bool:
    """Return, by the wall clock, whether the holder of a lease lives."""
    return leader.renewed_at is not None and now - leader.renewed_at <= LEADER_SILENCE

"""What becomes of a poller: free, occupied by a claim, handed on along the chain, and free again."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from django.db.models import BigIntegerField, Case, F, QuerySet, Value, When
from django.db.models.functions import Cast

from facho.executions.run import Run
from facho.executions.store import Claimed
from facho.zabbix_pollers.elapsed import seconds_between
from facho.zabbix_pollers.models import Poller, PollerStatus


def load_free_pollers(numbers: range) -> list[int]:
    """Return which of these pollers are free, lowest first."""
    free = Poller.objects.filter(status=PollerStatus.FREE, poller_id__in=numbers).order_by("poller_id")
    return list(free.values_list("poller_id", flat=True))


def occupy(claimed: Sequence[Claimed], *, delayed: Collection[int], now: datetime) -> None:
    """Mark the pollers of the claims as busy; one statement, however many there are."""
    by_poller = {claim.request.poller_id: claim for claim in claimed if claim.request.poller_id is not None}
    if not by_poller:
        return

    def each(value: Callable[[Claimed], int | None]) -> Cast:
        whens = [When(poller_id=poller_id, then=Value(value(claim))) for poller_id, claim in by_poller.items()]
        # Of nothing but NULLs a database would make a text: what has no node.
        return Cast(Case(*whens, output_field=BigIntegerField()), BigIntegerField())

    Poller.objects.filter(poller_id__in=by_poller).update(
        status=PollerStatus.BUSY,
        current_node_id=each(lambda claim: claim.request.node_id),
        current_execution_id=each(lambda claim: claim.execution_id),
        busy_since=now,
        tasks_delayed=F("tasks_delayed") + each(lambda claim: int(claim.request.node_id in delayed)),
    )


def hand_on(pollers: QuerySet[Poller], following: Run) -> None:
    """Give pollers to the next member of the chain that they run; they stay busy."""
    pollers.update(current_execution_id=following.execution_id, current_node_id=following.node_id)


def free(pollers: QuerySet[Poller], now: datetime, *, tasks: int) -> None:
    """Free pollers; `tasks` is 1 when a composite is done, 0 when it only let go."""
    pollers.update(
        status=PollerStatus.FREE,
        current_node_id=None,
        current_execution_id=None,
        busy_since=None,
        busy_time=F("busy_time") + seconds_between("busy_since", now),
        total_time=seconds_between("created_at", now),
        tasks_completed=F("tasks_completed") + tasks,
    )

"""Wishes to have one ONU read now: left by whoever looks at it, granted by the scheduler as an execution."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.executions.models import OnuRead, Origin
from facho.executions.store import Claimed, ClaimRequest, claim
from facho.hosts.pauses import is_paused
from facho.onus.models import Onu
from facho.polling.domain.onu_reads import EXPIRES_AFTER, MAX_WAITING_PER_OLT, ReadStart, WantedRead

READ_TASK = "onu_read"


class NotThere(ValueError):
    """The ONU is not where it was, so there is nobody to ask."""


class TooManyReads(ValueError):
    """As many wishes as are allowed wait for this OLT already."""


def request_read(onu_id: int, *, now: datetime) -> None:
    """Leave a wish; one that waits or is being granted stays as it is. NotThere and TooManyReads refuse it."""
    onu = Onu.objects.filter(id=onu_id, is_present=True, misses=0).only("olt_id").first()
    if onu is None:
        raise NotThere
    mine = OnuRead.objects.filter(onu_id=onu_id)
    if mine.exclude(_over(now)).exists():
        return
    if _waiting(now).filter(onu__olt_id=onu.olt_id).count() >= MAX_WAITING_PER_OLT:
        raise TooManyReads
    if not mine.filter(_over(now)).update(requested_at=now, execution=None):
        OnuRead.objects.bulk_create([OnuRead(onu_id=onu_id, requested_at=now)], ignore_conflicts=True)


def request_read_for(user: AbstractBaseUser | AnonymousUser, onu: Onu, *, now: datetime) -> None:
    """Leave a wish, and whose it was in the audit, together; refused as by `request_read`."""
    with transaction.atomic():
        request_read(onu.id, now=now)
        record(user, onu, Action.CHANGED, gettext_lazy("Read now"))


def load_wanted_reads(now: datetime) -> list[WantedRead]:
    """Load the wishes that may be granted, in one query; the wishes on an OLT that is paused or disabled wait."""
    return _wanted_reads(_startable(now))


def claim_reads(starts: Sequence[ReadStart], tokens: Mapping[int, int], *, owner: str, now: datetime) -> list[Claimed]:
    """Claim OLTs for wishes that still stand; `tokens` were taken before, so nobody else claims them meanwhile."""
    still = {read.onu_id for read in _wanted_reads(_startable(now).filter(onu_id__in=[s.read.onu_id for s in starts]))}
    standing = {start.read.olt_id: start for start in starts if start.read.onu_id in still}
    requests = [
        ClaimRequest(olt_id, READ_TASK, Origin.MANUAL, poller_id=start.poller_id, poller_group=start.group)
        for olt_id, start in standing.items()
    ]
    claimed = claim(requests, owner=owner, now=now, tokens=tokens) if requests else []
    for each in claimed:
        wish = OnuRead.objects.filter(onu_id=standing[each.request.olt_id].read.onu_id, execution__isnull=True)
        wish.update(execution_id=each.execution_id)
    return claimed


def is_read_wanted(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    """Tell whether a person waits for this OLT; no node is ever the one who asks."""
    return _startable(now).filter(onu__olt_id=olt_id).exists()


def count_before(read: OnuRead, *, olt_id: int, now: datetime) -> int:
    """Count the wishes on the same OLT that have their turn before one."""
    return _waiting(now).filter(onu__olt_id=olt_id, requested_at__lt=read.requested_at).count()


def _waiting(now: datetime) -> QuerySet[OnuRead]:
    return OnuRead.objects.filter(execution__isnull=True, requested_at__gt=now - EXPIRES_AFTER)


def _startable(now: datetime) -> QuerySet[OnuRead]:
    return _waiting(now).filter(
        ~is_paused("onu__olt_id", now), onu__olt__enabled=True, onu__is_present=True, onu__misses=0
    )


def _wanted_reads(reads: QuerySet[OnuRead]) -> list[WantedRead]:
    rows = reads.order_by().values_list("onu_id", "onu__olt_id", "requested_at", "onu__olt__poller_group")
    return [WantedRead(*row) for row in rows]


def _over(now: datetime) -> Q:
    """Match wishes that were granted to the end, or that nobody granted in time."""
    has_expired = Q(execution__isnull=True, requested_at__lte=now - EXPIRES_AFTER)
    return has_expired | Q(execution__finished_at__isnull=False)

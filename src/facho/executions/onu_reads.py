"""Requests to read one ONU now: made on its page, granted by the scheduler as an execution."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import DateTimeField, Q, QuerySet
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.executions.models import OnuRead, Origin
from facho.executions.store import Active, ClaimRequest, claim
from facho.hosts.pauses import is_paused
from facho.infrastructure.bulk import in_shard
from facho.infrastructure.statements import Given, GivenMany, Select
from facho.onus.models import Onu
from facho.polling.domain.planning import EXPIRES_AFTER, MAX_WAITING_PER_OLT, ReadStart, WantedRead
from facho.polling.domain.shard import WHOLE, Shard

READ_TASK = "onu_read"


class NotThere(ValueError):
    """The ONU is not where it was, so it cannot be read."""


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
    if _waiting(now - EXPIRES_AFTER).filter(onu__olt_id=onu.olt_id).count() >= MAX_WAITING_PER_OLT:
        raise TooManyReads
    if not mine.filter(_over(now)).update(requested_at=now, execution=None):
        OnuRead.objects.bulk_create([OnuRead(onu_id=onu_id, requested_at=now)], ignore_conflicts=True)


def request_read_for(user: AbstractBaseUser | AnonymousUser, onu: Onu, *, now: datetime) -> None:
    """Leave a wish, and whose it was in the audit, together; refused as by `request_read`."""
    with transaction.atomic():
        request_read(onu.id, now=now)
        record(user, onu, Action.CHANGED, gettext_lazy("Read now"))


def _select_wanted(which: Q) -> Select:
    """Select the wishes that may be granted; those on an OLT that is paused or disabled wait."""
    columns = ("onu_id", "onu__olt_id", "requested_at", "onu__olt__poller_group")
    now, since = Given("now", DateTimeField()), Given("since", DateTimeField())
    return Select(lambda: _startable(now, since).filter(which).order_by().values_list(*columns))


@cache
def _wanted_in(shard: Shard) -> Select:
    return _select_wanted(in_shard("onu__olt_id", shard))


_STILL_WANTED = _select_wanted(Q(GivenMany("onu_ids", "onu_id")))


def load_wanted_reads(now: datetime, shard: Shard = WHOLE) -> list[WantedRead]:
    """Load the wishes of the shard that may be granted, in one query."""
    return [WantedRead(*row) for row in _wanted_in(shard).rows(now=now, since=now - EXPIRES_AFTER)]


def claim_reads(starts: Sequence[ReadStart], tokens: Mapping[int, int], *, owner: str, now: datetime) -> list[Active]:
    """Claim OLTs for open requests; `tokens` were taken before, so no other process claims them."""
    wanted = [start.read.onu_id for start in starts]
    still = {onu_id for onu_id, *_ in _STILL_WANTED.rows(now=now, since=now - EXPIRES_AFTER, onu_ids=wanted)}
    standing = {start.read.olt_id: start for start in starts if start.read.onu_id in still}
    requests = [
        ClaimRequest(olt_id, READ_TASK, Origin.MANUAL, poller_id=start.poller_id, poller_group=start.group)
        for olt_id, start in standing.items()
    ]
    claimed = claim(requests, owner=owner, now=now, tokens=tokens) if requests else []
    for each in claimed:
        wish = OnuRead.objects.filter(onu_id=standing[each.olt_id].read.onu_id, execution__isnull=True)
        wish.update(execution_id=each.execution_id)
    return claimed


def is_read_wanted(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    """Whether a person waits for this OLT; no node asks for reads, so `except_node_id` changes nothing."""
    return _startable(now, now - EXPIRES_AFTER).filter(onu__olt_id=olt_id).exists()


def count_before(read: OnuRead, *, olt_id: int, now: datetime) -> int:
    """Count the wishes on the same OLT that have their turn before one."""
    return _waiting(now - EXPIRES_AFTER).filter(onu__olt_id=olt_id, requested_at__lt=read.requested_at).count()


def _waiting(since: datetime | Given) -> QuerySet[OnuRead]:
    return OnuRead.objects.filter(execution__isnull=True, requested_at__gt=since)


def _startable(now: datetime | Given, since: datetime | Given) -> QuerySet[OnuRead]:
    return _waiting(since).filter(
        ~is_paused("onu__olt_id", now), onu__olt__enabled=True, onu__is_present=True, onu__misses=0
    )


def _over(now: datetime) -> Q:
    """Match wishes that were granted to the end, or that were not granted in time."""
    has_expired = Q(execution__isnull=True, requested_at__lte=now - EXPIRES_AFTER)
    return has_expired | Q(execution__finished_at__isnull=False)

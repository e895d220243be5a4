"""Reads of single ONUs and ports, granted by the scheduler as executions: a person asks, or a trap hints at them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import BooleanField, DateTimeField, Exists, Q, QuerySet, Value
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.executions.models import HintRead, OnuRead, Origin
from facho.executions.store import Active, ClaimRequest, claim
from facho.hosts.store import is_paused
from facho.infrastructure.bulk import in_shard
from facho.infrastructure.statements import Given, GivenMany, Select
from facho.onus.models import Onu
from facho.polling.domain.hints import HintedRead, ReadScope, may_start_at
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.domain.planning import EXPIRES_AFTER, MAX_WAITING_PER_OLT, ReadStart, WantedRead

READ_TASK = "onu_read"
HINT_TASK = "trap_read"


class NotThere(ValueError):
    """The ONU is not where it was, so it cannot be read."""


class TooManyReads(ValueError):
    """The queue of reads of this OLT is full."""


def request_read(onu_id: int, *, now: datetime) -> None:
    """Store a request; one that waits or runs is left unchanged. Raises NotThere and TooManyReads."""
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
    """Queue a read and record who asked, in one transaction; refused as by `request_read`."""
    with transaction.atomic():
        request_read(onu.id, now=now)
        record(user, onu, Action.CHANGED, gettext_lazy("Read now"))


def _select_wanted(onus: Q, hints: Q) -> Select:
    """Select what may be granted; reads of an OLT that is paused or disabled wait."""
    now, since = Given("now", DateTimeField()), Given("since", DateTimeField())

    def wanted() -> QuerySet[OnuRead, tuple[int, int, datetime, str, bool]]:
        of_people = (
            _startable(now, since)
            .filter(onus)
            .order_by()
            .values_list("onu_id", "onu__olt_id", "requested_at", "onu__olt__poller_group", _flag(value=False))
        )
        of_traps = (
            _startable_hints(now)
            .filter(hints)
            .order_by()
            .values_list("id", "olt_id", "wanted_at", "olt__poller_group", _flag(value=True))
        )
        return of_people.union(of_traps, all=True)

    return Select(wanted)


def _flag(*, value: bool) -> Value:
    return Value(value, output_field=BooleanField())


def is_any_wanted(shard: Shard) -> Q:
    """Match every row if a read of the shard may be granted; its times are given as those of `load_wanted_reads`."""
    now, since = Given("now", DateTimeField()), Given("since", DateTimeField())
    of_people = _startable(now, since).filter(in_shard("onu__olt_id", shard))
    of_traps = _startable_hints(now).filter(in_shard("olt_id", shard))
    return Q(Exists(of_people.order_by())) | Q(Exists(of_traps.order_by()))


@cache
def _wanted_in(shard: Shard) -> Select:
    return _select_wanted(in_shard("onu__olt_id", shard), in_shard("olt_id", shard))


_STILL_WANTED = _select_wanted(Q(GivenMany("onu_ids", "onu_id")), Q(GivenMany("hint_ids", "id")))


def load_wanted_reads(now: datetime, shard: Shard = WHOLE) -> list[WantedRead]:
    """Load the reads of the shard that may be granted, in one query."""
    return [_wanted(row) for row in _wanted_in(shard).rows(now=now, since=now - EXPIRES_AFTER)]


def _wanted(row: Sequence[Any]) -> WantedRead:
    read_id, olt_id, requested_at, group, is_hint = row
    return WantedRead(read_id, olt_id, requested_at, group, is_hint=bool(is_hint))


def claim_reads(starts: Sequence[ReadStart], tokens: Mapping[int, int], *, owner: str, now: datetime) -> list[Active]:
    """Claim OLTs for open requests; `tokens` were taken before, so no other process claims them."""
    onu_ids = [start.read.read_id for start in starts if not start.read.is_hint]
    hint_ids = [start.read.read_id for start in starts if start.read.is_hint]
    rows = _STILL_WANTED.rows(now=now, since=now - EXPIRES_AFTER, onu_ids=onu_ids, hint_ids=hint_ids)
    still = {(read.is_hint, read.read_id) for read in map(_wanted, rows)}
    standing = {start.read.olt_id: start for start in starts if (start.read.is_hint, start.read.read_id) in still}
    requests = [
        ClaimRequest(
            olt_id,
            HINT_TASK if start.read.is_hint else READ_TASK,
            Origin.TRAP if start.read.is_hint else Origin.MANUAL,
            poller_id=start.poller_id,
            poller_group=start.group,
        )
        for olt_id, start in standing.items()
    ]
    claimed = claim(requests, owner=owner, now=now, tokens=tokens) if requests else []
    for each in claimed:
        read = standing[each.olt_id].read
        if read.is_hint:
            HintRead.objects.filter(id=read.read_id).update(
                execution_id=each.execution_id, asked_at=now, wanted_at=None
            )
        else:
            wish = OnuRead.objects.filter(onu_id=read.read_id, execution__isnull=True)
            wish.update(execution_id=each.execution_id)
    return claimed


def request_hinted(
    olt_id: int, reads: Iterable[HintedRead], *, heard_at: datetime, gap: timedelta, now: datetime
) -> int:
    """Store requests for ports or all states; one that waits is widened, and one that began since covers the hint.

    Returns how many wait. Asked twice, by two receivers, it is the same.
    """
    wanted = {(read.frame, read.slot, read.port, read.scope is ReadScope.STATES): read for read in reads}
    rows = HintRead.objects.filter(olt_id=olt_id).select_related("execution")
    stored = {(row.frame, row.slot, row.port, row.is_whole): row for row in rows}
    whole = stored.get((0, 0, 0, True))
    waiting = 0
    for key, read in wanted.items():
        row = stored.get(key)
        begun = [each.asked_at for each in (row, whole) if each is not None and each.asked_at is not None]
        if any(began_at > heard_at for began_at in begun) or (whole is not None and whole.wanted_at is not None):
            continue
        waiting += 1
        if row is None:
            frame, slot, port, is_whole = key
            fresh = HintRead(olt_id=olt_id, frame=frame, slot=slot, port=port, is_whole=is_whole, not_before=now)
            fresh.wanted_at, fresh.onu_number = now, read.onu
            HintRead.objects.bulk_create([fresh], ignore_conflicts=True)
        elif row.wanted_at is None:
            starts_at = may_start_at(now, last_began_at=max(begun, default=None), gap=gap, took=_took(row, now))
            HintRead.objects.filter(id=row.id).update(wanted_at=now, not_before=starts_at, onu_number=read.onu)
        elif row.onu_number is not None and row.onu_number != read.onu:
            HintRead.objects.filter(id=row.id).update(onu_number=None)
    return waiting


def _took(row: HintRead, now: datetime) -> timedelta:
    """Return how long the last read took, or takes so far."""
    run = row.execution
    if run is None or run.started_at is None:
        return timedelta(0)
    return max((run.finished_at or now) - run.started_at, timedelta(0))


def is_read_wanted(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    """Whether a person or a hint waits for this OLT; no node asks for reads, so `except_node_id` changes nothing."""
    of_people = _startable(now, now - EXPIRES_AFTER).filter(onu__olt_id=olt_id)
    return of_people.exists() or _startable_hints(now).filter(olt_id=olt_id).exists()


def count_before(read: OnuRead, *, olt_id: int, now: datetime) -> int:
    """Count the requests on the same OLT that come before this one."""
    return _waiting(now - EXPIRES_AFTER).filter(onu__olt_id=olt_id, requested_at__lt=read.requested_at).count()


def _waiting(since: datetime | Given) -> QuerySet[OnuRead]:
    return OnuRead.objects.filter(execution__isnull=True, requested_at__gt=since)


def _startable(now: datetime | Given, since: datetime | Given) -> QuerySet[OnuRead]:
    return _waiting(since).filter(
        ~is_paused("onu__olt_id", now), onu__olt__enabled=True, onu__is_present=True, onu__misses=0
    )


def _startable_hints(now: datetime | Given) -> QuerySet[HintRead]:
    return HintRead.objects.filter(
        ~is_paused("olt_id", now), wanted_at__isnull=False, not_before__lte=now, olt__enabled=True
    )


def _over(now: datetime) -> Q:
    """Match requests that were served or that expired."""
    has_expired = Q(execution__isnull=True, requested_at__lte=now - EXPIRES_AFTER)
    return has_expired | Q(execution__finished_at__isnull=False)

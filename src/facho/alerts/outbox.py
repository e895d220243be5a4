"""Takes messages out of the outbox one at a time and channel by channel, and writes down what became of each try.

Messages of a channel go in their order, but one that is refused again and again lets the others pass. A claim moves the
next try ahead, and counts it: who is killed with a message in hand leaves it to whoever looks after that time. Of two
that claim the same try one wins.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils.translation import gettext as _

from facho.alerts.models import AlertChannel, ChannelKind, Notice, NoticeKind, NoticeState
from facho.alerts.notices import on_sent
from facho.alerts.outcome import Message, Outcome
from facho.alerts.trouble_words import describe
from facho.hosts.secrets import Secret, UndecryptableSecret
from facho.polling.domain.redelivery import GIVE_UP_AFTER, LONGEST_PAUSE, next_try_at

# Several times as long as one try may take.
CLAIM = timedelta(minutes=2)
# What was written or put off further ahead than this was so by a clock that went wrong.
HORIZON = LONGEST_PAUSE * 2
# By then a service that had a bad moment is over it.
TRIES_IN_TURN = 3
# Enough that no two messages have the same name by chance.
NAME_CHARACTERS = 20


@dataclass(frozen=True, slots=True)
class Address:
    """Where a channel leads, for the moment of one try."""

    kind: ChannelKind
    url: Secret
    signing_key: Secret


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message that was claimed for one try; without an address when it cannot be decrypted."""

    notice_id: int
    channel_id: int
    try_number: int
    message: Message
    written_at: datetime
    payload: dict[str, Any]
    address: Address | None


def load_due_channels(now: datetime) -> list[int]:
    """Return the channels whose next message is due."""
    head = _in_order(_begun(now).filter(channel_id=OuterRef("pk"))).values("pk")[:1]
    heads = AlertChannel.objects.filter(enabled=True).values(head=Subquery(head))
    due = _waiting().filter(_is_due(now), pk__in=heads)
    return list(due.order_by("channel_id").values_list("channel_id", flat=True))


@transaction.atomic
def claim_next(channel_id: int, now: datetime) -> Parcel | None:
    """Claim the message whose turn it is; nothing when it is not due, or another process was faster."""
    head = _in_order(_begun(now).filter(channel_id=channel_id, channel__enabled=True)).first()
    if head is None or not _waiting().filter(_is_due(now), pk=head.pk).exists():
        return None
    claimed = _waiting().filter(pk=head.pk, tries=head.tries)
    if not claimed.update(tries=head.tries + 1, next_try_at=now + CLAIM):
        return None
    return Parcel(
        notice_id=head.pk,
        channel_id=channel_id,
        try_number=head.tries + 1,
        message=Message(_name(head), head.kind, head.severity, head.title, head.body),
        written_at=head.created_at,
        payload=head.payload,
        address=_load_address(channel_id),
    )


@transaction.atomic
def save_sent(parcel: Parcel, *, now: datetime) -> bool:
    """Mark a message sent, whoever holds it by now; False when it was marked before."""
    sent = _waiting().filter(pk=parcel.notice_id)
    if not sent.update(state=NoticeState.SENT, sent_at=now, next_try_at=None):
        return False
    on_sent(Notice.objects.get(pk=parcel.notice_id))
    return True


def save_failed(parcel: Parcel, outcome: Outcome, *, now: datetime, chance: float) -> datetime | None:
    """Write down a failed try and return when the next one is; None: it was given up."""
    again_at = next_try_at(parcel.try_number, written_at=parcel.written_at, now=now, chance=chance)
    if outcome.is_final or parcel.message.kind == NoticeKind.TEST:
        again_at = None
    # Whoever claimed it since writes down what becomes of that try.
    _waiting().filter(pk=parcel.notice_id, tries=parcel.try_number).update(
        state=NoticeState.WAITING if again_at else NoticeState.FAILED,
        next_try_at=again_at,
        last_error=describe(outcome),
        was_refused=outcome.is_refused,
    )
    return again_at


def give_up_forgotten(now: datetime) -> int:
    """Give up what waits for channels that have been disabled for too long; nobody wants last week's alerts."""
    old = _waiting().filter(channel__enabled=False, created_at__lt=now - GIVE_UP_AFTER)
    # Asked every two seconds: on SQLite even an update of nothing would take the one writer's turn.
    if not old.exists():
        return 0
    return old.update(state=NoticeState.FAILED, next_try_at=None, last_error=_("The channel is disabled."))


def _waiting() -> QuerySet[Notice]:
    return Notice.objects.filter(state=NoticeState.WAITING)


def _in_order(notices: QuerySet[Notice]) -> QuerySet[Notice]:
    """Put messages as they were written; a test, which somebody waits for, goes first, and what stood aside last."""
    rank = Case(When(kind=NoticeKind.TEST, then=Value(0)), When(_stands_aside(), then=Value(2)), default=Value(1))
    return notices.order_by(rank, "id")


def _begun(now: datetime) -> QuerySet[Notice]:
    """Select what waits in turn: who was put off to the end of quiet hours, or stands aside, keeps nobody waiting."""
    return _waiting().filter(_is_due(now) | (Q(tries__gt=0) & ~_stands_aside())).exclude(pk__in=_held())


def _held() -> QuerySet[Notice, int]:
    """Select what has to wait for a message that stands aside: nobody hears of an end before its beginning."""
    return (
        _waiting()
        .filter(
            alerts__notices__in=_waiting().filter(_stands_aside()),
            alerts__notices__channel_id=F("channel_id"),
            alerts__notices__id__lt=F("id"),
        )
        .values_list("pk", flat=True)
    )


def _stands_aside() -> Q:
    """Tell of a message whether its service was reached and refused it so often that it may be about this very one."""
    return Q(tries__gte=TRIES_IN_TURN, was_refused=True)


def _is_due(now: datetime) -> Q:
    is_astray = Q(tries__gt=0, next_try_at__gt=now + HORIZON) | Q(created_at__gt=now + HORIZON)
    return Q(next_try_at__lte=now) | is_astray


def _name(notice: Notice) -> str:
    """Name a message for who receives it: its key alone comes again from other installations and restored backups.

    The moments at which its channel was made and it was written stand in the database, so every try has them.
    """
    channel_made_at = AlertChannel.objects.values_list("created_at", flat=True).get(pk=notice.channel_id)
    moments = " ".join(at.astimezone(UTC).isoformat() for at in (channel_made_at, notice.created_at))
    return f"{notice.key} {hashlib.sha256(moments.encode()).hexdigest()[:NAME_CHARACTERS]}"


def _load_address(channel_id: int) -> Address | None:
    try:
        channel = AlertChannel.objects.only("kind", "url", "signing_key").get(pk=channel_id)
    except UndecryptableSecret:
        return None
    return Address(ChannelKind(channel.kind), channel.url, channel.signing_key)

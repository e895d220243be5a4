"""Delivers the outbox: each channel in its own order and at its own pace, so that one that is down delays no other.

Messages of a channel are sent in order, but one that is refused again and again lets the others pass. A claim counts
the try and sets the next one: if the process is killed while sending, the message is sent again after that time. Of
two processes that claim the same try one wins.
"""

import asyncio
import hashlib
import json
import logging
import random
import ssl
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils.translation import gettext as _
from django.utils.translation import override

from facho.alerts.channels import SENTENCES, stored_channels
from facho.alerts.engine import merge_held, on_sent
from facho.alerts.http_request import post_webhook
from facho.alerts.links import NOTHING_ADDED, Addition, load_addition
from facho.alerts.models import AlertChannel, ChannelKind, Notice, NoticeKind, NoticeState
from facho.alerts.monthly import load_pdf
from facho.alerts.sender import MAIL_SCHEMES, SEND_SECONDS, Message, Outcome, Reach, Trouble
from facho.infrastructure.secrets import Secret, UndecryptableSecret
from facho.infrastructure.statements import Select
from facho.polling.domain.ports import Clock, DatabaseGateway
from facho.polling.domain.retry import GIVE_UP_AFTER, LONGEST_PAUSE, next_try_at

# Several times as long as one try may take.
CLAIM = timedelta(minutes=2)
# A try later than this was set by a wrong clock.
HORIZON = LONGEST_PAUSE * 2
# By then a service has recovered from a short failure.
TRIES_IN_TURN = 3
# Enough to keep names unique.
NAME_CHARACTERS = 20


def describe(outcome: Outcome) -> str:
    """Describe a failed try in a sentence, in the language of the process."""
    if outcome.trouble is None:
        return ""
    if outcome.answer is not None:
        return _("The server refused it with status %(status)s.") % {"status": outcome.answer}
    return str(SENTENCES[outcome.trouble])


@dataclass(frozen=True, slots=True)
class Address:
    """Where a channel leads; loaded for one try."""

    kind: ChannelKind
    url: Secret
    signing_key: Secret


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message claimed for one try; without an address when it cannot be decrypted."""

    notice_id: int
    channel_id: int
    try_number: int
    message: Message
    written_at: datetime
    payload: dict[str, Any]
    address: Address | None
    addition: Addition = NOTHING_ADDED

    @property
    def is_mail(self) -> bool:
        """Whether it is sent by e-mail, which carries files."""
        address = self.address
        if address is None or address.kind is not ChannelKind.APPRISE:
            return False
        return address.url.reveal().partition("://")[0].lower() in MAIL_SCHEMES


_ANY_WAITING = Select(lambda: Notice.objects.filter(state=NoticeState.WAITING).order_by().values_list("pk")[:1])


def load_due(now: datetime) -> tuple[int, list[int]]:
    """Give up what was forgotten, and return how much that was and the channels whose next message is due.

    Asked every two seconds, and most of the time nothing waits: that takes one statement.
    """
    return (give_up_forgotten(now), load_due_channels(now)) if _ANY_WAITING.rows() else (0, [])


def load_due_channels(now: datetime) -> list[int]:
    """Return the channels whose next message is due."""
    head = _in_order(_begun(now).filter(channel_id=OuterRef("pk"))).values("pk")[:1]
    heads = AlertChannel.objects.filter(enabled=True).values(head=Subquery(head))
    due = _waiting().filter(_is_due(now), pk__in=heads)
    return list(due.order_by("channel_id").values_list("channel_id", flat=True))


@transaction.atomic
def claim_next(channel_id: int, now: datetime) -> Parcel | None:
    """Claim the next message; None when it is not due, or another process was faster.

    What waited for the channel's hours or its digest becomes one message first.
    """
    merge_held(channel_id, now)
    head = _in_order(_begun(now).filter(channel_id=channel_id, channel__enabled=True)).first()
    if head is None or not _waiting().filter(_is_due(now), pk=head.pk).exists():
        return None
    claimed = _waiting().filter(pk=head.pk, tries=head.tries)
    if not claimed.update(tries=head.tries + 1, next_try_at=now + CLAIM):
        return None
    try:
        channel = AlertChannel.objects.get(pk=channel_id)
        address = Address(ChannelKind(channel.kind), channel.url, channel.signing_key)
    except UndecryptableSecret:
        channel, address = stored_channels().get(pk=channel_id), None
    # Return the id that a receiver sees: the key alone is not unique across installations and restored backups. The
    # times of the channel and the message are stored, so every try has the same id.
    moments = " ".join(at.astimezone(UTC).isoformat() for at in (channel.created_at, head.created_at))
    name = f"{head.key} {hashlib.sha256(moments.encode()).hexdigest()[:NAME_CHARACTERS]}"
    head.channel = channel
    with override(channel.language or settings.LANGUAGE_CODE):
        addition = load_addition(head)
        body = "\n\n".join(filter(None, [head.body, addition.names]))
        message = Message(name, head.kind, head.severity, head.title, body, addition.footer, addition.csv)
    return Parcel(
        notice_id=head.pk,
        channel_id=channel_id,
        try_number=head.tries + 1,
        message=message,
        written_at=head.created_at,
        payload=head.payload,
        address=address,
        addition=addition,
    )


@transaction.atomic
def save_sent(parcel: Parcel, *, now: datetime) -> bool:
    """Mark a message sent, even if its claim has passed on; False when it was marked before."""
    sent = _waiting().filter(pk=parcel.notice_id)
    if not sent.update(state=NoticeState.SENT, sent_at=now, next_try_at=None):
        return False
    on_sent(Notice.objects.get(pk=parcel.notice_id))
    return True


def save_failed(parcel: Parcel, outcome: Outcome, *, now: datetime, chance: float) -> datetime | None:
    """Store a failed try and return when the next one is; None: it was given up."""
    again_at = next_try_at(parcel.try_number, written_at=parcel.written_at, now=now, chance=chance)
    if outcome.is_final or parcel.message.kind == NoticeKind.TEST:
        again_at = None
    # If it was claimed again since, that try stores its own outcome.
    _waiting().filter(pk=parcel.notice_id, tries=parcel.try_number).update(
        state=NoticeState.WAITING if again_at else NoticeState.FAILED,
        next_try_at=again_at,
        last_error=describe(outcome),
        was_refused=outcome.is_refused,
    )
    return again_at


def give_up_forgotten(now: datetime) -> int:
    """Give up old messages of disabled channels: last week's alerts are of no use."""
    old = _waiting().filter(channel__enabled=False, created_at__lt=now - GIVE_UP_AFTER)
    # On SQLite even an empty update would take the write lock.
    if not old.exists():
        return 0
    return old.update(state=NoticeState.FAILED, next_try_at=None, last_error=_("The channel is disabled."))


def _waiting() -> QuerySet[Notice]:
    return Notice.objects.filter(state=NoticeState.WAITING)


def _in_order(notices: QuerySet[Notice]) -> QuerySet[Notice]:
    """Sort messages as written; a test goes first, since someone waits for it, and what was refused often goes last."""
    rank = Case(When(kind=NoticeKind.TEST, then=Value(0)), When(_stands_aside(), then=Value(2)), default=Value(1))
    return notices.order_by(rank, "id")


def _begun(now: datetime) -> QuerySet[Notice]:
    """Select the messages to send next; those delayed by quiet hours or standing aside do not block others."""
    # The end of an alert waits for its beginning if that one stands aside.
    held = _waiting().filter(
        alerts__notices__in=_waiting().filter(_stands_aside()),
        alerts__notices__channel_id=F("channel_id"),
        alerts__notices__id__lt=F("id"),
    )
    in_turn = _waiting().filter(_is_due(now) | (Q(tries__gt=0) & ~_stands_aside()))
    return in_turn.exclude(pk__in=held.values_list("pk", flat=True))


def _stands_aside() -> Q:
    """Match messages that their service refused so often that the message itself may be the reason."""
    return Q(tries__gte=TRIES_IN_TURN, was_refused=True)


def _is_due(now: datetime) -> Q:
    is_astray = Q(tries__gt=0, next_try_at__gt=now + HORIZON) | Q(created_at__gt=now + HORIZON)
    return Q(next_try_at__lte=now) | is_astray


logger = logging.getLogger(__name__)

RECEIVERS_AT_ONCE = 8
# How long a stopping process waits for current tries: one that is cut off may have arrived, and is sent again.
GRACE_SECONDS = 4.0
# The sender ends itself; this is for one that cannot.
PATIENCE_SECONDS = SEND_SECONDS + 5.0
# No proxy, no .netrc, and no folder of the product ahead of the installed packages.
COMMAND = (sys.executable, "-I", "-m", "facho.alerts.sender")


async def send(parcel: Parcel, reach: Reach, *, now: datetime) -> Outcome:
    """Try once, in bounded time; every failure is an outcome."""
    address = parcel.address
    if address is None:
        return Outcome(Trouble.KEY_LOST)
    if address.kind is ChannelKind.WEBHOOK:
        return await post_webhook(
            address.url.reveal(),
            key=address.signing_key.reveal(),
            message_id=parcel.message.id,
            content=webhook_content(parcel),
            timestamp=int(now.timestamp()),
            reach=reach,
        )
    return await _hand_to_process(address, parcel.message, reach)


def webhook_content(parcel: Parcel) -> dict[str, Any]:
    message = parcel.message
    return {
        "id": message.id,
        "kind": message.kind,
        "severity": message.severity,
        "title": message.title,
        "text": message.body,
        "written_at": parcel.written_at.isoformat(),
        "page": parcel.addition.page,
        "acknowledge": parcel.addition.acknowledge,
        "details": parcel.payload,
    }


def sender_environment() -> dict[str, str]:
    """Give a sender the certificates that this machine trusts: its HTTP library would know only those it brings."""
    paths = ssl.get_default_verify_paths()
    places = {"SSL_CERT_FILE": paths.cafile or "", "SSL_CERT_DIR": paths.capath or ""}
    folder = Path(places["SSL_CERT_DIR"] or "/nonexistent")
    bundle = places["SSL_CERT_FILE"] or (str(folder) if folder.is_dir() and any(folder.iterdir()) else "")
    given = {**places, "REQUESTS_CA_BUNDLE": bundle}
    return {"HOME": "/nonexistent", **{name: place for name, place in given.items() if place}}


async def _hand_to_process(address: Address, message: Message, reach: Reach) -> Outcome:
    job = {"url": address.url.reveal(), "listed": [str(each) for each in reach.listed], "message": asdict(message)}
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    # In a session of its own: Ctrl-C at a terminal must not end a message half-way.
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=pipe, stdout=pipe, stderr=nowhere, env=sender_environment(), start_new_session=True
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer, _nothing = await process.communicate(json.dumps(job).encode())
    except TimeoutError:
        return Outcome(Trouble.TIMED_OUT)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if code := process.returncode:
        # Ended by its own alarm, or by something unforeseen.
        return Outcome(Trouble.TIMED_OUT if code < 0 else Trouble.CRASHED)
    given = json.loads(answer)
    return Outcome(Trouble(given["trouble"]) if given["trouble"] else None, given["answer"], given["is_final"])


class Serving(ABC):
    """Sends each receiver, by its id, what comes next until nothing does; several at once, so that none waits.


    Keeps only the current tries.
    """

    # What is logged when a receiver cannot be served.
    not_served: str

    def __init__(
        self, database: DatabaseGateway, clock: Clock, reach: Reach, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        self._database, self._clock, self._reach = database, clock, reach
        self._is_wanted = is_wanted
        self._places = asyncio.Semaphore(RECEIVERS_AT_ONCE)
        self.under_way: dict[int, asyncio.Task[None]] = {}

    def start(self, receivers: Iterable[int]) -> None:
        for receiver in receivers:
            if receiver not in self.under_way:
                task = self.under_way[receiver] = asyncio.create_task(self._serve(receiver))
                task.add_done_callback(partial(self._ended, receiver))

    async def settle(self) -> None:
        """Wait until every receiver that is being served has been."""
        await asyncio.gather(*self.under_way.values())

    async def close(self) -> None:
        """Wait for current tries, but not for long."""
        if tasks := list(self.under_way.values()):
            _done, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    @abstractmethod
    async def send_next(self, receiver: int) -> bool:
        """Try what comes next; False when there is nothing, or it did not arrive."""

    async def _serve(self, receiver: int) -> None:
        async with self._places:
            while self._is_wanted() and await self.send_next(receiver):
                pass

    def _ended(self, receiver: int, task: asyncio.Task[None]) -> None:
        """Log what kept a receiver from being served; the next look tries it again."""
        del self.under_way[receiver]
        if not task.cancelled() and task.exception():
            logger.error("%s id=%s", self.not_served, receiver, exc_info=task.exception())


class Delivery(Serving):
    """Sends what waits while it is wanted; keeps no state but the current tries.

    Reports are written through a gateway of their own, if there is one: no claim waits behind them.
    """

    not_served = "channel.not_served"

    def __init__(
        self,
        database: DatabaseGateway,
        clock: Clock,
        reach: Reach,
        is_wanted: Callable[[], bool] = lambda: True,
        *,
        reports: DatabaseGateway | None = None,
    ) -> None:
        super().__init__(database, clock, reach, is_wanted)
        self._reports = reports or database

    async def look(self) -> None:
        """Start serving the channels that have something due and are not being served."""
        now = self._clock.now()
        forgotten, due = await self._database.run(load_due, now)
        if forgotten:
            logger.warning("notices.given_up count=%s reason=channel_disabled", forgotten)
        self.start(due)

    async def send_next(self, receiver: int) -> bool:
        parcel = await self._database.run(claim_next, receiver, self._clock.now())
        if parcel is None:
            return False
        if parcel.message.kind == NoticeKind.REPORT and parcel.is_mail:
            pdf = await self._reports.run(load_pdf, receiver, parcel.payload["month"])
            parcel = replace(parcel, message=replace(parcel.message, pdf=pdf))
        outcome = await send(parcel, self._reach, now=self._clock.now())
        if outcome.is_sent:
            await self._database.run(save_sent, parcel, now=self._clock.now())
            logger.info("notice.sent %s", _named(parcel))
            return True
        again_at = await self._database.run(
            save_failed,
            parcel,
            outcome,
            now=self._clock.now(),
            chance=random.random(),  # noqa: S311 no secret
        )
        logger.warning("notice.failed %s trouble=%s again_at=%s", _named(parcel), outcome.trouble, again_at)
        # A message that was given up does not hold up the others.
        return again_at is None


def _named(parcel: Parcel) -> str:
    return f"notice={parcel.notice_id} channel={parcel.channel_id} try={parcel.try_number}"

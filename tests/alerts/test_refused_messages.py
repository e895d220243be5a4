"""A message that a service does not take: it is given up, or stands aside, and holds up no other."""

from datetime import datetime, timedelta

import pytest
from django.utils import translation

from alerts.outbox_rows import (
    Post,
    StillClock,
    deliver,
    make_channel,
    make_webhook,
    states,
    titles,
    write_notice,
)
from alerts.sinks import http_sink
from facho.alerts import delivery
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
from facho.alerts.sender import Outcome, Trouble
from factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)


def test_after_a_day_a_message_is_given_up_and_the_next_one_has_its_turn() -> None:
    with http_sink() as gone:
        channel = make_webhook(gone.url)
    old = write_notice(channel)
    young = write_notice(channel, at=NOW + timedelta(hours=23))
    post = Post(StillClock(NOW + timedelta(days=1)))

    deliver(post)

    old.refresh_from_db()
    young.refresh_from_db()
    assert (old.state, old.next_try_at, old.last_error) == ("failed", None, "The server cannot be reached.")
    assert (young.state, young.tries) == ("waiting", 1)


def test_a_message_that_a_webhook_will_never_take_holds_up_nothing() -> None:
    with http_sink() as sink:
        sink.status = 422
        channel = make_webhook(sink.url)
        write_notice(channel, "one")
        write_notice(channel, "two")
        deliver(Post())

    assert titles(sink) == ["one", "two"]
    assert states() == [("failed", 1), ("failed", 1)]
    assert Notice.objects.earliest("id").last_error == "The server refused it with status 422."


def test_a_message_that_a_service_will_never_take_holds_up_nothing() -> None:
    with http_sink() as sink:
        sink.status = 400
        channel = make_channel(f"ntfy://127.0.0.1:{sink.port}/olt-alerts")
        write_notice(channel, "one")
        write_notice(channel, "two")
        deliver(Post())

    assert len(sink.received) == 2
    assert states() == [("failed", 1), ("failed", 1)]


def refuse(channel: AlertChannel, outcome: Outcome, *, times: int) -> None:
    """Let the head of a channel be tried so often, and fail with this outcome."""
    for _ in range(times):
        Notice.objects.filter(tries__gt=0).update(next_try_at=NOW)
        parcel = delivery.claim_next(channel.pk, NOW)
        assert parcel is not None
        delivery.save_failed(parcel, outcome, now=NOW, chance=0.5)


@pytest.mark.parametrize(
    ("outcome", "times", "is_let_by"),
    [
        (Outcome(Trouble.NOT_TAKEN, answer=400), 2, False),
        (Outcome(Trouble.NOT_TAKEN, answer=400), 3, True),
        (Outcome(Trouble.NOT_TAKEN), 3, True),
        (Outcome(Trouble.UNREACHABLE), 3, False),
        (Outcome(Trouble.TIMED_OUT), 9, False),
    ],
)
def test_what_is_refused_again_and_again_lets_the_others_pass(outcome: Outcome, times: int, is_let_by: bool) -> None:
    channel = make_webhook("https://sink.example.net/")
    write_notice(channel, "poison")
    refuse(channel, outcome, times=times)
    fresh = write_notice(channel, "fresh")

    due = delivery.load_due_channels(NOW)
    parcel = delivery.claim_next(channel.pk, NOW)

    assert due == ([channel.pk] if is_let_by else [])
    assert (parcel.notice_id if parcel else None) == (fresh.pk if is_let_by else None)


def test_what_failed_on_its_way_keeps_its_turn_whatever_language_is_spoken() -> None:
    channel = make_webhook("https://sink.example.net/")
    write_notice(channel, "first")
    with translation.override("es"):
        refuse(channel, Outcome(Trouble.UNREACHABLE), times=3)
    write_notice(channel, "second")

    assert delivery.load_due_channels(NOW) == []


def test_what_stands_aside_is_tried_again_after_those_in_turn() -> None:
    with http_sink() as sink:
        channel = make_webhook(sink.url)
        write_notice(channel, "poison")
        refuse(channel, Outcome(Trouble.NOT_TAKEN, answer=500), times=3)
        for title in ("two", "three"):
            write_notice(channel, title)
        deliver(Post())
        assert titles(sink) == ["two", "three"]
        deliver(Post(StillClock(NOW + timedelta(minutes=5))))

    assert titles(sink) == ["two", "three", "poison"]
    assert states() == [("sent", 4), ("sent", 1), ("sent", 1)]


def test_an_end_waits_for_its_beginning_that_stands_aside_and_keeps_nobody_waiting() -> None:
    channel, other = make_webhook("https://a.example.net/"), make_webhook("https://b.example.net/")
    rule = AlertRule.objects.create(name="Cuts", kind="pon_outage")
    alert = Alert.objects.create(rule=rule, subject="pon 1", severity="critical", began_at=NOW)
    beginning = write_notice(channel)
    beginning.alerts.add(alert)
    refuse(channel, Outcome(Trouble.NOT_TAKEN), times=3)
    end, end_elsewhere, fresh = (write_notice(each) for each in (channel, other, channel))
    for notice in (end, end_elsewhere):
        notice.alerts.add(alert)

    def claimed(served: AlertChannel, at: datetime = NOW) -> int | None:
        parcel = delivery.claim_next(served.pk, at)
        if parcel is not None:
            delivery.save_sent(parcel, now=at)
        return parcel.notice_id if parcel else None

    assert claimed(other) == end_elsewhere.pk
    assert [claimed(channel), claimed(channel)] == [fresh.pk, None]
    later = NOW + timedelta(hours=1)
    assert [claimed(channel, later), claimed(channel, later)] == [beginning.pk, end.pk]

"""The outbox is delivered: nothing lost, nothing doubled, in order, and nobody waits for a channel that is down."""

import asyncio
import re
import socket
from datetime import datetime, timedelta

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from alerts.outbox_rows import (
    KEY,
    Post,
    deliver,
    make_channel,
    make_webhook,
    open_delivery,
    states,
    titles,
    write_notice,
)
from alerts.sinks import http_sink, smtp_sink
from facho.alerts import delivery as delivery_module
from facho.alerts.channels import write_test
from facho.alerts.models import AlertChannel, Notice, NoticeKind, NoticeState
from facho.alerts.sender import Outcome, Reach, Trouble
from facho.execution_coordinator.models import QuotaViolation
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

A_MINUTE = timedelta(minutes=1)


def test_a_webhook_down_and_back_gets_everything_once_and_in_order() -> None:
    post = Post()
    with http_sink() as sink:
        channel = make_webhook(sink.url)
        for title in ("one", "two", "three"):
            write_notice(channel, title)
    deliver(post)
    assert states() == [("waiting", 1), ("waiting", 0), ("waiting", 0)]

    with http_sink(sink):
        deliver(post)  # too early: nobody hammers a server that is down
        assert titles(sink) == []
        post.clock.at += A_MINUTE
        deliver(post)
        deliver(post)

    assert titles(sink) == ["one", "two", "three"]
    assert states() == [("sent", 2), ("sent", 1), ("sent", 1)]
    assert Notice.objects.earliest("id").last_error == "The server cannot be reached."


def test_a_violation_was_notified_when_its_message_was_sent() -> None:
    violation = QuotaViolation.objects.create(olt=make_olt(), period_start=NOW, period_end=NOW, severity="HIGH")
    with http_sink() as sink:
        write_notice(make_webhook(sink.url))
        Notice.objects.update(payload={"violations": [violation.id]})
        post = Post()
        post.clock.at += A_MINUTE
        deliver(post)

    violation.refresh_from_db()
    assert (violation.notified, violation.notified_at) == (True, NOW + A_MINUTE)


def test_mail_down_and_back_arrives_once_and_keeps_its_message_id() -> None:
    post = Post()
    with smtp_sink() as sink:
        channel = make_channel(f"mailto://user:pass@127.0.0.1:{sink.port}?from=facho@isp.example&to=noc@isp.example")
        notice = write_notice(channel, "Corte en 0/1/3 ñ")
    deliver(post)
    assert (Notice.objects.get().state, sink.received) == (NoticeState.WAITING, [])

    with smtp_sink(sink):
        post.clock.at += A_MINUTE
        deliver(post)
        deliver(post)

    [mail] = sink.received
    assert (mail["Subject"], mail["To"]) == ("Corte en 0/1/3 ñ", "noc@isp.example")
    message_id = mail["Message-ID"].removeprefix(f"<{notice.key.replace(' ', '-')}-").removesuffix("@127.0.0.1>")
    assert re.fullmatch("[0-9a-f]{20}", message_id)
    assert mail.get_content().strip() == notice.body
    assert states() == [("sent", 2)]


@pytest.mark.parametrize("model", [Notice, AlertChannel])
def test_a_message_keeps_its_id_and_one_of_another_installation_or_backup_has_another(
    model: type[Notice | AlertChannel],
) -> None:
    channel = make_webhook("https://sink.example.net/")
    notice = write_notice(channel)

    def claim_id() -> str:
        Notice.objects.update(next_try_at=NOW)
        parcel = delivery_module.claim_next(channel.pk, NOW)
        assert parcel is not None
        return parcel.message.id

    first, again = claim_id(), claim_id()
    model.objects.update(created_at=NOW - timedelta(microseconds=1))

    assert first == again != claim_id()
    assert first.startswith(f"{notice.key} ")


def test_ntfy_on_a_server_of_ones_own_is_served() -> None:
    with http_sink() as sink:
        write_notice(make_channel(f"ntfy://127.0.0.1:{sink.port}/olt-alerts"))
        deliver(Post())

    [request] = sink.received
    assert b"64 ONUs" in request.body
    assert "github" not in request.body.decode()
    assert states() == [("sent", 1)]


def test_apprise_follows_no_redirect() -> None:
    with http_sink() as other, http_sink() as sink:
        sink.status, sink.location = 307, f"{other.url}/elsewhere"
        write_notice(make_channel(f"ntfy://127.0.0.1:{sink.port}/olt-alerts"))
        deliver(Post())

    assert len(sink.received) == 1
    assert other.received == []
    assert Notice.objects.get().last_error == "The server refused it with status 307."


def test_a_channel_that_is_down_holds_up_no_other() -> None:
    with http_sink() as gone:
        dead = make_webhook(gone.url)
    with http_sink() as sink:
        write_notice(dead)
        write_notice(make_webhook(sink.url))
        deliver(Post())

    assert states() == [("waiting", 1), ("sent", 1)]


def test_nobody_waits_for_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.alerts.http_request.REQUEST_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, http_sink() as sink:
        write_notice(make_webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/"))
        other = make_webhook(sink.url)
        reported_meanwhile = asyncio.run(_tell_twice(other))

    assert reported_meanwhile == ["waiting", "sent", "sent"]
    assert states() == [("waiting", 1), ("sent", 1), ("sent", 1)]


async def _tell_twice(channel: AlertChannel) -> list[str]:
    """Tell something, and something more, while another channel waits for its server."""
    async with open_delivery() as (delivery, database):
        for title in ("one", "two"):
            await database.run(write_notice, channel, title)
            await delivery.look()
            await delivery.under_way[channel.pk]
        return await database.run(lambda: [state for state, _tries in states()])


def test_a_process_that_stops_lets_a_try_end_and_begins_no_other() -> None:
    async def stop_at_once() -> None:
        is_wanted = iter([True, False])
        async with open_delivery(is_wanted=lambda: next(is_wanted)) as (delivery, _database):
            await delivery.look()
            await delivery.close()

    with http_sink() as sink:
        channel = make_webhook(sink.url)
        write_notice(channel, "one")
        write_notice(channel, "two")
        asyncio.run(stop_at_once())

    assert titles(sink) == ["one"]
    assert states() == [("sent", 1), ("waiting", 0)]


def test_a_defect_in_one_channel_is_reported_at_once_and_breaks_off_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, slow = make_webhook("https://a.example.net/"), make_webhook("https://b.example.net/")
    for channel in (broken, slow):
        write_notice(channel)

    async def scene() -> None:
        is_reported = asyncio.Event()

        async def send(parcel: delivery_module.Parcel, *_reach: Reach, now: datetime) -> Outcome:
            if parcel.channel_id == broken.pk:
                asyncio.get_running_loop().call_later(0.01, is_reported.set)
                raise RuntimeError("a defect of ours")
            await is_reported.wait()
            assert f"channel.not_served id={broken.pk}" in caplog.text
            return Outcome()

        monkeypatch.setattr(delivery_module, "send", send)
        async with open_delivery() as (delivery, _database):
            await delivery.look()
            await delivery.close()

    asyncio.run(scene())

    assert states() == [("waiting", 1), ("sent", 1)]
    assert "a defect of ours" in caplog.text


def test_nothing_is_sent_inside_unless_listed() -> None:
    with http_sink() as sink, smtp_sink() as mail:
        write_notice(make_webhook(sink.url))
        write_notice(make_channel(f"ntfy://127.0.0.1:{sink.port}/olt-alerts"))
        write_notice(make_channel(f"mailto://user:pass@127.0.0.1:{mail.port}?from=facho@isp.example"))
        deliver(Post(reach=Reach()))

    assert (sink.received, mail.received) == ([], [])
    assert set(Notice.objects.values_list("last_error", flat=True)) == {
        "The server is inside the network and not listed in FACHO_WEBHOOK_ALLOW."
    }


def test_two_leaders_send_once() -> None:
    async def both(post: Post) -> None:
        await asyncio.gather(post.deliver(), post.deliver())

    with http_sink() as sink:
        channel = make_webhook(sink.url)
        for title in ("one", "two", "three"):
            write_notice(channel, title)
        asyncio.run(both(Post()))

    assert titles(sink) == ["one", "two", "three"]


def test_who_is_killed_with_a_message_in_hand_loses_nothing() -> None:
    with http_sink() as sink:
        write_notice(make_webhook(sink.url))
        delivery_module.claim_next(AlertChannel.objects.get().id, NOW)  # and never heard of again
        post = Post()
        deliver(post)
        assert sink.received == []

        post.clock.at += delivery_module.CLAIM
        deliver(post)

    assert len(sink.received) == 1
    assert states() == [("sent", 2)]


def test_a_late_failure_does_not_undo_what_another_sent() -> None:
    channel = make_webhook("https://sink.example.net/")
    write_notice(channel)
    slow = delivery_module.claim_next(channel.id, NOW)
    fast = delivery_module.claim_next(channel.id, NOW + delivery_module.CLAIM)
    assert slow is not None
    assert fast is not None

    delivery_module.save_sent(fast, now=NOW)
    delivery_module.save_failed(slow, Outcome(Trouble.TIMED_OUT), now=NOW, chance=0.5)

    assert states() == [("sent", 2)]


def test_a_test_goes_first_and_is_tried_once() -> None:
    with http_sink() as gone:
        channel = make_webhook(gone.url)
    write_notice(channel)
    test = write_test(channel, now=NOW)

    deliver(Post())

    test.refresh_from_db()
    assert (test.kind, test.state, test.tries) == (NoticeKind.TEST, "failed", 1)
    assert states()[0] == ("waiting", 1)


def test_a_disabled_channel_keeps_its_messages_for_a_day() -> None:
    channel = make_webhook("https://sink.example.net/")
    write_notice(channel)
    AlertChannel.objects.update(enabled=False)
    post = Post()

    deliver(post)
    assert states() == [("waiting", 0)]
    post.clock.at += timedelta(days=1, seconds=1)
    deliver(post)

    assert states() == [("failed", 0)]
    assert Notice.objects.get().last_error == "The channel is disabled."


def test_a_message_put_off_keeps_no_other_from_its_way() -> None:
    with http_sink() as sink:
        channel = make_webhook(sink.url)
        write_notice(channel, "after the night")
        Notice.objects.update(next_try_at=NOW + timedelta(hours=8))
        write_notice(channel, "at once")
        deliver(Post())

    assert titles(sink) == ["at once"]
    assert states() == [("waiting", 0), ("sent", 1)]


@pytest.mark.parametrize("tries", [0, 1])
def test_a_clock_that_was_set_back_stops_no_message(tries: int) -> None:
    write_notice(make_webhook("https://sink.example.net/"), at=NOW + timedelta(days=300))
    Notice.objects.update(tries=tries)

    assert delivery_module.load_due_channels(NOW) == [AlertChannel.objects.get().id]


def test_an_address_that_cannot_be_decrypted_is_reported(settings: Settings) -> None:
    channel = make_webhook("https://sink.example.net/")
    write_notice(channel)
    settings.FACHO_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    deliver(Post())

    assert "cannot be decrypted" in Notice.objects.get().last_error
    assert KEY not in str(Notice.objects.values())

"""Channels with hours and digests: what waits, what becomes one message, and what is not worth one any more."""

from datetime import time, timedelta

import pytest

from alerts.alert_world import add_onus, answering_olt, cut, make_channel, make_rule, minute, passes, repair
from facho.alerts.delivery import claim_next, load_due_channels, save_sent
from facho.alerts.models import AlertChannel, Notice
from facho.infrastructure.secrets import Secret

pytestmark = pytest.mark.django_db
# The world begins at noon on a Sunday, in UTC.
EVENING = {"on_call_from": time(18), "on_call_to": time(22)}


def outages(channel: AlertChannel, *, ports: int = 2) -> list[object]:
    """Cut ports of an OLT, one minute after the other."""
    olt = answering_olt()
    make_rule("pon_outage", channel, severity="critical")
    found = []
    for port in range(ports):
        found.append(cut(olt, add_onus(olt, 4, port=port), port=port, at=minute(port)))
        passes(port)
    return found


def claimed(channel: AlertChannel, number: float) -> tuple[str, str, str] | None:
    """Claim what is due at a minute; its kind, title and text."""
    parcel = claim_next(channel.pk, minute(number))
    if parcel is None:
        return None
    save_sent(parcel, now=minute(number))
    return parcel.message.kind, parcel.message.title, parcel.message.body


def test_a_digest_collects_what_began_and_what_is_over() -> None:
    channel = make_channel(digest="hour")
    first, _second = outages(channel)
    repair(first, at=minute(5))  # type: ignore[arg-type]
    passes(5)

    assert load_due_channels(minute(59)) == []
    assert load_due_channels(minute(60)) == [channel.pk]
    digest = claimed(channel, 60)

    assert digest is not None
    kind, title, body = digest
    assert (kind, title) == ("digest", "Alerts: 1 open, 1 over")
    assert body.index("Open now:") < body.index("0/1/1") < body.index("Over:") < body.index("0/1/0")
    assert Notice.objects.get().alerts.count() == 2
    assert claimed(channel, 60) is None


def test_the_end_after_a_digest_comes_with_the_next_one() -> None:
    channel = make_channel(digest="quarter")
    [outage] = outages(channel, ports=1)
    claimed(channel, 15)
    repair(outage, at=minute(16))  # type: ignore[arg-type]
    passes(16)

    assert claimed(channel, 29) is None
    digest = claimed(channel, 30)

    assert digest is not None
    assert digest[:2] == ("digest", "Alerts: 0 open, 1 over")


def test_before_the_hours_nothing_is_sent_and_then_what_is_still_open() -> None:
    channel = make_channel(**EVENING)
    first, _second = outages(channel)
    repair(first, at=minute(5))  # type: ignore[arg-type]
    passes(5)

    assert claimed(channel, 359) is None
    sent = claimed(channel, 360)

    assert sent is not None
    assert "0/1/1" in sent[2]
    assert "0/1/0" not in sent[2]


def test_what_was_over_before_the_hours_is_not_sent_and_the_log_says_so() -> None:
    channel = make_channel(**EVENING)
    [outage] = outages(channel, ports=1)
    repair(outage, at=minute(5))  # type: ignore[arg-type]
    passes(5)

    assert claimed(channel, 360) is None
    assert set(Notice.objects.values_list("state", "last_error")) == {
        ("failed", "It was over before the channel's hours began.")
    }


def test_one_that_waited_alone_is_sent_as_written_and_tried_for_a_day_from_then_on() -> None:
    channel = make_channel(on_call_days="3")
    outages(channel, ports=1)
    wednesday = 12 * 60 + 2 * 24 * 60

    assert claimed(channel, wednesday - 1) is None
    sent = claimed(channel, wednesday)

    assert sent is not None
    assert sent[0] == "opened"
    assert Notice.objects.get().created_at == minute(wednesday)


def test_within_its_hours_a_channel_sends_at_once_and_a_test_at_any_time() -> None:
    channel = make_channel(on_call_from=time(11), on_call_to=time(13))
    outages(channel, ports=1)

    assert Notice.objects.get().next_try_at == minute(0)


def test_a_digest_sends_what_a_person_can_read_and_counts_the_rest() -> None:
    channel = make_channel(digest="day")
    olt = answering_olt()
    make_rule("weak_light", channel)
    add_onus(olt, 30, dbm=-30)
    add_onus(olt, 30, port=1, dbm=-30)
    passes(0)

    digest = claimed(channel, timedelta(hours=20) / timedelta(minutes=1))

    assert digest is not None
    assert digest[1] == "Alerts: 60 open, 0 over"
    assert digest[2].count("receives") == 20
    assert "and 40 more" in digest[2]


def test_secrets_stay_out_of_what_is_collected() -> None:
    channel = make_channel(digest="hour")
    AlertChannel.objects.filter(pk=channel.pk).update(url=Secret("json://canary-77e1"))
    outages(channel)

    digest = claimed(channel, 60)

    assert "canary" not in str(digest)

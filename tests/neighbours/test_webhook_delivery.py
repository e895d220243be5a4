"""Events come to a webhook in their order, none is lost, and what comes twice has the same id."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alerts.outbox_rows import KEY, LOOPBACK, StillClock
from alerts.sinks import HttpSink, http_sink
from api.rows import make_olt
from dashboard.outage_rows import make_outage
from facho.alerts.http_request import sign
from facho.hosts.models import OltGroup
from facho.infrastructure.gateway import ThreadGateway
from facho.neighbours.models import DeliveryState, Webhook, WebhookDelivery
from facho.neighbours.webhook_delivery import EventParcel, WebhookSender, claim_next, load_due, save_arrived
from facho.neighbours.webhook_feed import MOST_BYTES, MOST_OF_EACH, Feed, FeedEnd
from facho.neighbours.webhooks import count_waiting, replay, write_test
from facho.onus.models import OnuEvent, Outage
from neighbours.webhook_rows import NOW, Network, Office, bodies, make_webhook, numbers, reported

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    with http_sink() as served:
        yield served


def test_events_come_in_their_order_signed_as_alerts_are(sink: HttpSink) -> None:
    network = Network()
    make_webhook(f"{sink.url}/events")
    rows = [network.event("down", cause="los"), network.event("up", at=NOW + timedelta(minutes=1))]

    Office().send()

    [request] = sink.received
    headers = request.headers
    expected = sign(KEY, timestamp=int(headers["Facho-Timestamp"]), message_id=headers["Facho-Id"], body=request.body)
    assert (request.path, headers["Facho-Signature"]) == ("/events", expected)
    body = json.loads(request.body)
    assert (body["id"], body["kind"], body["replayed"]) == (headers["Facho-Id"], "events", False)
    assert [event["event_id"] for event in body["events"]] == [row.pk for row in rows]
    first = body["events"][0]
    assert first | {"id": ""} == {
        "id": "",
        "kind": "down",
        "at": "2026-03-01T12:00:00+00:00",
        "replayed": False,
        "event_id": rows[0].pk,
        "olt": {"id": network.olt.pk, "name": "North"},
        "port": {"id": network.onu.pon_port_id, "place": "0/1/3"},
        "onu": {"id": network.onu.pk, "number": 7, "serial": "HWTC00000007", "mac": "", "description": "ñandú"},
        "cause": "los",
        "before": None,
        "after": None,
        "other": None,
    }
    assert len({event["id"] for event in body["events"]}) == 2


def test_nothing_from_before_the_webhook_is_sent(sink: HttpSink) -> None:
    network = Network()
    network.event()
    make_outage(network.olt, started_at=NOW - timedelta(hours=1))
    make_webhook(sink.url)

    Office(looks=2).send()
    assert sink.received == []

    network.event("up")
    Office().send()
    assert [event["kind"] for event in reported(sink)] == ["up"]


def test_only_wanted_kinds_of_olts_in_scope_come(sink: HttpSink) -> None:
    group = OltGroup.objects.create(name="West")
    network, west = Network(), Network(make_olt("Western", group=group))
    make_webhook(sink.url, kinds=("down", "outage_began"), group=group)
    for each in (network, west):
        each.event("down")
        each.event("up")
        make_outage(each.olt, started_at=NOW + timedelta(minutes=1))
    make_outage(None)

    Office().send()

    assert [(event["kind"], event["olt"]["name"]) for event in reported(sink)] == [
        ("down", "Western"),
        ("outage_began", "Western"),
    ]


def test_many_events_come_in_bounded_batches(sink: HttpSink) -> None:
    network = Network()
    make_webhook(sink.url)
    rows = network.events(2 * MOST_OF_EACH + 1)

    Office().send()

    assert [len(body["events"]) for body in bodies(sink)] == [MOST_OF_EACH, MOST_OF_EACH, 1]
    assert numbers(sink) == [row.pk for row in rows]


def test_a_batch_of_the_longest_texts_stays_small(sink: HttpSink) -> None:
    network = Network()
    network.onu.description = "\N{SNOWMAN}" * 255
    network.onu.save()
    make_webhook(sink.url)
    texts = {"before": '"' * 255, "after": "\N{OX}" * 255}
    rows = [network.event("description_changed", **texts) for _number in range(150)]

    Office().send()

    assert len(sink.received) > 2
    assert max(len(each.body) for each in sink.received) < MOST_BYTES + 1_000
    assert numbers(sink) == [row.pk for row in rows]


def test_outages_begin_end_and_come_back_once_each(sink: HttpSink) -> None:
    network, office = Network(), Office()
    make_webhook(sink.url)
    outage = make_outage(network.olt, started_at=NOW)
    office.send()
    office.send()
    Outage.objects.filter(pk=outage.pk).update(ended_at=NOW + timedelta(minutes=5))
    office.send()
    Outage.objects.filter(pk=outage.pk).update(ended_at=None, resumed_at=NOW + timedelta(minutes=7))
    office.send()
    Outage.objects.filter(pk=outage.pk).update(ended_at=NOW + timedelta(minutes=9))
    office.send()

    events = reported(sink)
    assert [(event["kind"], event["at"][14:16]) for event in events] == [
        ("outage_began", "00"),
        ("outage_ended", "05"),
        ("outage_began", "07"),
        ("outage_ended", "09"),
    ]
    assert len({event["id"] for event in events}) == 4
    assert events[0] | {"id": ""} == {
        "id": "",
        "kind": "outage_began",
        "at": "2026-03-01T12:00:00+00:00",
        "replayed": False,
        "outage_id": outage.pk,
        "olt": {"id": network.olt.pk, "name": "North"},
        "scope": "pon",
        "place": "0/1/3",
        "cause": "fibre",
        "started_at": "2026-03-01T12:00:00+00:00",
        "resumed_at": "2026-03-01T12:00:00+00:00",
        "ended_at": None,
        "affected_onus": 14,
        "down_onus": 14,
        "affected_olts": 0,
        "part_of": None,
    }


def test_a_receiver_that_is_away_gets_the_same_batch_with_the_same_id_later(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    network.event()
    sink.status = 503
    office.send()
    network.event("up")
    office.send()

    assert len(sink.received) == 1, "it waits"
    webhook.refresh_from_db()
    assert (webhook.failing_since, "503" in webhook.last_error, webhook.enabled) == (NOW, True, True)

    sink.status = 200
    office.wait(minutes=1)
    office.send()

    first, again, rest = bodies(sink)
    assert first == again
    assert [event["kind"] for event in rest["events"]] == ["up"]
    webhook.refresh_from_db()
    assert (webhook.failing_since, webhook.last_error, webhook.last_sent_at) == (None, "", office.clock.at)


def test_pauses_grow_to_a_day_and_nothing_is_given_up(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    network.event()
    sink.status = 422
    pauses = []
    for _try in range(16):
        office.send()
        waiting = WebhookDelivery.objects.get()
        assert waiting.next_try_at is not None
        pauses.append((waiting.next_try_at - office.clock.at).total_seconds())
        office.clock.at = waiting.next_try_at

    assert 24 <= pauses[0] <= 36
    assert all(later > earlier for earlier, later in pairwise(pauses[:11]))
    assert all(0.8 * 86_400 <= pause <= 1.2 * 86_400 for pause in pauses[-3:])
    webhook.refresh_from_db()
    assert (webhook.enabled, webhook.failing_since, len(sink.received)) == (True, NOW, 16)


def test_a_receiver_that_is_away_holds_up_no_other(sink: HttpSink) -> None:
    network = Network()
    with http_sink() as broken:
        broken.status = 500
        make_webhook(broken.url, name="broken")
        make_webhook(sink.url, name="works")
        network.event()

        Office().send()

    assert (len(broken.received), len(sink.received)) == (1, 1)


def test_a_process_that_died_after_sending_sends_that_batch_once_more(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    rows = network.events(MOST_OF_EACH + 5)
    # It claimed the first batch, and was killed before it could write that it arrived.
    claim_next(webhook.pk, FeedEnd(rows[-1].pk, 0), NOW)

    office.send()
    assert sink.received == [], "another process may still be sending it"
    office.wait(minutes=3)
    office.send()

    assert numbers(sink) == [row.pk for row in rows]


class Killed(BaseException):
    """The process is gone."""


class Statements:
    """Counts statements, and dies at one of them."""

    def __init__(self, last: int = 0) -> None:
        self.count, self.last = 0, last

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        """Run a statement, or never get to it."""
        self.count += 1
        if self.count == self.last:
            raise Killed
        return execute(sql, *rest)


def serve(webhook: Webhook, received: list[list[int]], statements: Statements, now: Any) -> None:
    """Do what the sender does, in one thread, with a receiver that takes everything."""
    feed = Feed()
    with connection.execute_wrapper(statements):
        found = load_due(feed, {}, now)
        assert found is not None
        while True:
            parcel = claim_next(webhook.pk, found[0], now)
            if parcel is None or isinstance(parcel, tuple):
                return
            received.append([event.get("event_id") or -event["outage_id"] for event in parcel.content["events"]])
            save_arrived(parcel, now=now)


def test_a_process_that_dies_at_any_statement_loses_nothing_and_repeats_at_most_a_batch() -> None:
    network = Network()
    number = 0
    while True:
        number += 1
        WebhookDelivery.objects.all().delete()
        Webhook.objects.all().delete()
        webhook = make_webhook("https://example.net/")
        outage = make_outage(network.olt, started_at=NOW - timedelta(seconds=1))
        wanted = [-outage.pk, *(row.pk for row in network.events(MOST_OF_EACH + 3))]
        received: list[list[int]] = []
        statements = Statements(number)
        try:
            serve(webhook, received, statements, NOW)
        except Killed:
            repeatable = received[-1:]
            for minutes in (5, 10):
                serve(webhook, received, Statements(), NOW + timedelta(minutes=minutes))
        else:
            break
        finally:
            Outage.objects.all().delete()
        flat = [each for batch in received for each in batch]
        assert list(dict.fromkeys(flat)) == sorted(wanted), f"statement {number}"
        doubled = [batch for batch in received if received.count(batch) > 1]
        assert len(doubled) in (0, 2), f"statement {number}"
        assert all(batch in repeatable for batch in doubled), f"statement {number}"
    assert number > 20


def test_a_replay_sends_again_and_says_so(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    old = network.event("down", at=NOW - timedelta(days=1))
    rows = [network.event("down", at=NOW), network.event("up", at=NOW + timedelta(minutes=1))]
    outage = make_outage(network.olt, started_at=NOW)
    office.send()
    before = {event["id"]: event for event in reported(sink)}
    sink.received.clear()

    done = replay(webhook.pk, NOW)
    new = network.event("gone", at=NOW + timedelta(minutes=2))
    office.send()

    assert (done.events.number, done.events.is_exact, done.outages) == (2, True, 1)
    events = reported(sink)
    assert [event.get("event_id") for event in events if "event_id" in event] == [*(row.pk for row in rows), new.pk]
    assert [event["outage_id"] for event in events if "outage_id" in event] == [outage.pk]
    assert [event["replayed"] for event in events if event.get("event_id") != new.pk] == [True] * 3
    assert [event["replayed"] for event in events if event.get("event_id") == new.pk] == [False]
    assert all(event | {"replayed": False} == before[event["id"]] for event in events if event["replayed"])
    assert old.pk not in numbers(sink)
    assert [each.is_replay for each in WebhookDelivery.objects.order_by("id")] == [False, True]
    assert bodies(sink)[0]["replayed"] is True


def test_a_replay_takes_the_place_of_a_batch_that_waits_even_while_it_is_sent(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    rows = network.events(3)
    parcel = claim_next(webhook.pk, FeedEnd(rows[-1].pk, 0), NOW)
    assert isinstance(parcel, EventParcel)

    replay(webhook.pk, NOW)

    assert save_arrived(parcel, now=NOW) is False
    office.send()
    assert numbers(sink) == [row.pk for row in rows]
    assert list(WebhookDelivery.objects.order_by("id").values_list("state", flat=True)) == ["replaced", "sent"]


def test_a_replay_reaches_back_before_the_webhook_and_never_forward(sink: HttpSink) -> None:
    network, office = Network(), Office()
    old = network.event("down", at=NOW - timedelta(days=9))
    outage = make_outage(network.olt, started_at=NOW - timedelta(days=9), ended_at=NOW - timedelta(days=8))
    webhook = make_webhook(sink.url)
    office.send()
    fresh = network.event("up")

    replay(webhook.pk, NOW + timedelta(days=5))
    office.send()
    assert numbers(sink) == [fresh.pk]

    sink.received.clear()
    replay(webhook.pk, NOW - timedelta(days=30))
    office.send()
    assert numbers(sink) == [old.pk, fresh.pk]
    assert [event["kind"] for event in reported(sink) if event.get("outage_id") == outage.pk] == [
        "outage_began",
        "outage_ended",
    ]


def test_unwanted_events_are_passed_and_looked_through_once(sink: HttpSink) -> None:
    network, office = Network(), Office(looks=3)
    webhook = make_webhook(sink.url, kinds=("gone",))
    rows = network.events(1_500, "up")

    office.send()
    webhook.refresh_from_db()
    assert (webhook.event_cursor, sink.received) == (rows[-1].pk, [])

    gone = network.event("gone")
    office.send()
    assert numbers(sink) == [gone.pk]


def test_a_batch_whose_events_were_deleted_does_not_hold_up_the_rest(sink: HttpSink) -> None:
    network, office = Network(), Office()
    make_webhook(sink.url)
    network.event()
    sink.status = 500
    office.send()
    OnuEvent.objects.all().delete()
    rest = network.event("up")
    sink.status = 200
    sink.received.clear()
    office.wait(minutes=2)

    office.send()

    assert numbers(sink) == [rest.pk]


def test_a_disabled_webhook_waits_and_gets_everything_later(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    Webhook.objects.update(enabled=False)
    row = network.event()
    office.send()
    assert (sink.received, count_waiting(webhook).number) == ([], 1)

    Webhook.objects.update(enabled=True)
    office.send()
    assert numbers(sink) == [row.pk]


def test_a_test_goes_first_is_tried_once_and_ends_a_long_pause(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    network.event()
    sink.status = 500
    office.send()
    failed = write_test(webhook, now=NOW)
    office.send()
    failed.refresh_from_db()
    assert (failed.state, "500" in failed.last_error) == (DeliveryState.FAILED, True)

    sink.status = 200
    sink.received.clear()
    write_test(webhook, now=NOW)
    office.looks = 2
    office.send()

    assert [body["kind"] for body in bodies(sink)] == ["test", "events"]
    assert bodies(sink)[0]["events"] == []


def test_a_webhook_whose_key_was_lost_says_so(sink: HttpSink) -> None:
    network, office = Network(), Office()
    webhook = make_webhook(sink.url)
    network.event()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE neighbours_webhook SET url = 'gAAAAAB'")

    office.send()

    assert Webhook.objects.defer("url", "signing_key").get(pk=webhook.pk).last_error
    assert sink.received == []


class CountingGateway(ThreadGateway):
    """Counts the calls to the database."""

    calls = 0

    async def run(self, call: Any, *args: Any, **named: Any) -> Any:
        """Count and run one."""
        self.calls += 1
        return await super().run(call, *args, **named)


async def look_every_two_seconds(times: int) -> list[int]:
    """Return how often the database was asked until then."""
    clock, database, asked = StillClock(), CountingGateway(), list[int]()
    sender = WebhookSender(database, clock, LOOPBACK)
    try:
        for _look in range(times):
            await sender.look()
            asked.append(database.calls)
            clock.at += timedelta(seconds=2)
    finally:
        await database.close()
    return asked


def test_without_a_webhook_one_statement_in_ten_seconds_is_all() -> None:
    Network().event()

    assert asyncio.run(look_every_two_seconds(7)) == [1, 1, 1, 1, 1, 2, 2]

    with CaptureQueriesContext(connection) as queries:
        assert load_due(Feed(), {}, NOW) is None
    assert len(queries) == 1


def test_a_look_that_finds_nothing_asks_few_questions(sink: HttpSink) -> None:
    network, office = Network(), Office()
    make_webhook(sink.url)
    make_outage(network.olt)
    network.events(50)
    office.send()
    feed = Feed()
    load_due(feed, {}, NOW)

    with CaptureQueriesContext(connection) as queries:
        found = load_due(feed, {}, NOW)

    assert found is not None
    assert found[1] == []
    assert len(queries) <= 8

"""Rows whose transaction is late are waited for: no cursor passes an id that is still to come."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.db import connection

from alerts.sinks import http_sink
from facho.infrastructure.statements import SettledRows
from facho.onus.models import OnuEvent
from neighbours.webhook_rows import NOW, Network, Office, make_webhook, numbers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


@contextmanager
def other_session() -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    place = {
        name: value
        for name, value in connection.get_connection_params().items()
        if name in ("host", "port", "user", "password", "dbname")
    }
    with psycopg.connect(**place) as session:
        yield session


def insert_late(session: "psycopg.Connection[tuple[object, ...]]", network: Network) -> int:
    """Write an event as another engine does, without a commit yet."""
    row = session.execute(
        "INSERT INTO onu_events (olt_id, pon_port_id, onu_id, onu_number, at, kind, cause, before, after)"
        " VALUES (%s, %s, %s, 7, %s, 'down', '', '', '') RETURNING id",
        [network.olt.pk, network.onu.pon_port_id, network.onu.pk, NOW],
    ).fetchone()
    assert row is not None
    return int(str(row[0]))


def test_an_event_whose_transaction_ends_late_is_sent_before_later_ones() -> None:
    with http_sink() as sink:
        network, office = Network(), Office(looks=2)
        make_webhook(sink.url)
        with other_session() as session:
            late = insert_late(session, network)
            soon = network.event("up", at=NOW + timedelta(seconds=1))
            assert soon.pk > late
            office.send()
            assert numbers(sink) == []
            session.commit()
        office.send()

        assert numbers(sink) == [late, soon.pk]


def test_a_transaction_that_never_commits_holds_nothing_up() -> None:
    network, rows = Network(), SettledRows(OnuEvent)
    with other_session() as session:
        insert_late(session, network)
        soon = network.event("up")
        assert rows.look() < soon.pk
        session.rollback()

    assert rows.look() == soon.pk


def test_later_writers_are_not_waited_for() -> None:
    network, rows = Network(), SettledRows(OnuEvent)
    with other_session() as first, other_session() as second:
        insert_late(first, network)
        soon = network.event("up")
        rows.look()
        insert_late(second, network)
        first.commit()

        assert rows.look() == soon.pk


def test_readers_and_writers_of_other_tables_are_not_waited_for() -> None:
    network, rows = Network(), SettledRows(OnuEvent)
    with other_session() as session:
        session.execute("SELECT count(*) FROM onu_events")
        session.execute("UPDATE hosts_olt SET name = name")
        soon = network.event("up")

        assert rows.look() == soon.pk

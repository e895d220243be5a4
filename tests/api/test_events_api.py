"""The timeline of ONUs over the API."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from api.rows import NOW, make_olt, make_onu
from facho.onus import events as onus_events
from facho.onus.models import Onu, OnuEvent
from facho.onus.words import EventKinds

EVENTS = "/api/v1/events/"
MINUTE = timedelta(minutes=1)


def happen(onu: Onu, kind: str = "down", *, minutes: int = 0, **fields: Any) -> OnuEvent:
    values = {"olt_id": onu.olt_id, "pon_port_id": onu.pon_port_id, "onu_number": onu.onu_id, **fields}
    return OnuEvent.objects.create(onu=onu, kind=kind, at=NOW + minutes * MINUTE, **values)


def get(client: APIClient, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def ids(client: APIClient, query: str = "") -> list[int]:
    return [row["id"] for row in get(client, EVENTS + query)["results"]]


def walk(client: APIClient, address: str | None, link: str) -> Iterator[list[int]]:
    while address:
        page = get(client, address)
        yield [row["id"] for row in page["results"]]
        address = page[link]


def test_an_event_says_what_happened_to_whom_and_where(viewer: APIClient) -> None:
    onu = make_onu(make_olt("North"), (0, 1, 2, 7), serial="HWTC00000001")
    happen(onu, cause="dying_gasp")

    (row,) = get(viewer, EVENTS)["results"]

    assert (row["message"], row["cause"]) == ("Went down: dying gasp", "dying_gasp")
    assert (row["olt"], row["pon_port"], row["onu_number"], row["onu"]) == ("North", "0/1/2", 7, "HWTC00000001")
    assert (row["onu_id"], row["pon_port_id"], row["olt_id"]) == (onu.id, onu.pon_port_id, onu.olt_id)
    assert get(viewer, f"{EVENTS}{row['id']}/") == row


def test_every_kind_of_event_has_its_words(viewer: APIClient) -> None:
    onu = make_onu(make_olt())
    for kind in EventKinds.values:
        happen(onu, kind, before="-20.10", after="online", other_port_id=onu.pon_port_id, other_number=3)

    reported = {row["kind"]: row["message"] for row in get(viewer, EVENTS)["results"]}

    assert set(reported) == set(EventKinds.values)
    assert reported["power_drop"] == "Light dropped from -20.10 to online dBm"
    assert reported["calm"] == "Stable again: online"
    assert reported["duplicate_serial"] == "The same serial is also at 0/1/0/3"


def test_there_is_a_timeline_of_an_olt_of_a_port_and_of_an_onu(viewer: APIClient) -> None:
    north, south = make_olt("North"), make_olt("South")
    here, beside, there = make_onu(north, (0, 1, 0, 1)), make_onu(north, (0, 1, 1, 1)), make_onu(south, (0, 1, 0, 1))
    first, second, third = (happen(onu, minutes=number) for number, onu in enumerate((here, beside, there)))

    assert ids(viewer) == [third.id, second.id, first.id]
    assert ids(viewer, "?olt=North") == ids(viewer, f"?olt={north.id}") == [second.id, first.id]
    assert ids(viewer, f"?pon_port={here.pon_port_id}") == ids(viewer, f"?onu={here.id}") == [first.id]
    assert ids(viewer, "?olt=West") == []


def test_who_moved_is_in_the_timelines_of_both_ports_once(viewer: APIClient) -> None:
    olt = make_olt()
    onu, other = make_onu(olt, (0, 1, 0, 1)), make_onu(olt, (0, 1, 1, 1))
    within = happen(onu, "moved", other_port_id=onu.pon_port_id, other_number=5)
    away = happen(onu, "moved", minutes=1, other_port_id=other.pon_port_id, other_number=9)

    assert ids(viewer, f"?pon_port={onu.pon_port_id}") == [away.id, within.id]
    assert ids(viewer, f"?pon_port={other.pon_port_id}") == [away.id]
    assert get(viewer, f"{EVENTS}{away.id}/")["message"] == "Moved here from 0/1/1/9"


def test_events_are_found_by_kind_cause_and_time(viewer: APIClient) -> None:
    onu = make_onu(make_olt())
    down, up = happen(onu, cause="los"), happen(onu, "up", minutes=5)

    assert ids(viewer, "?kind=up") == [up.id]
    assert ids(viewer, "?cause=los") == [down.id]
    assert ids(viewer, "?from=2030-05-06T12:05:00Z") == [up.id]
    assert ids(viewer, "?to=2030-05-06T12:05:00Z") == [down.id]


@pytest.mark.parametrize("query", ["", "pon_port"])
def test_pages_lead_through_all_events_and_back_also_of_one_moment(viewer: APIClient, query: str) -> None:
    onu = make_onu(make_olt())
    elsewhere = make_onu(onu.olt, (0, 2, 0, 1))
    events = [happen(onu, minutes=number // 4) for number in range(7)]
    events.append(happen(elsewhere, "moved", minutes=1, other_port_id=onu.pon_port_id, other_number=3))
    newest_first = [event.id for event in reversed(events)]
    start = f"{EVENTS}?page_size=3" + (f"&pon_port={onu.pon_port_id}" if query else "")

    forward = list(walk(viewer, start, "next"))
    last = f"{start}&cursor=older-{int(NOW.timestamp() * 1_000_000) - 1}-0"

    assert forward == [newest_first[:3], newest_first[3:6], newest_first[6:]]
    assert get(viewer, last)["results"] == []
    back = get(viewer, get(viewer, get(viewer, start)["next"])["next"])["previous"]
    assert list(walk(viewer, back, "previous")) == [newest_first[3:6], newest_first[:3]]


def test_a_count_that_was_not_finished_says_so(viewer: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onus_events, "MANY", 2)
    onu = make_onu(make_olt())
    happen(onu)
    happen(onu)
    assert (get(viewer, EVENTS)["count"], get(viewer, EVENTS)["count_is_exact"]) == (2, True)

    happen(onu)

    assert (get(viewer, EVENTS)["count"], get(viewer, EVENTS)["count_is_exact"]) == (2, False)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("kind=exploded", "kind"),
        ("cause=magic", "cause"),
        ("from=yesterday", "from"),
        ("onu=HWTC", "onu"),
        ("pon_port=0/1/2", "pon_port"),
        ("cursor=3", "cursor"),
        ("cursor=older-999999999999999999-1", "cursor"),
    ],
)
def test_what_cannot_be_meant_is_refused(viewer: APIClient, query: str, field: str) -> None:
    answer = viewer.get(f"{EVENTS}?{query}")

    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_events_are_for_who_may_read_and_cost_so_many_queries(
    anonymous: APIClient, viewer: APIClient, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for _ in range(3):
        onu = make_onu(make_olt(), serial="")
        happen(onu, "duplicate_serial", other_port_id=onu.pon_port_id, other_number=1)
    document = viewer.get("/api/v1/schema/?format=json").json()

    assert anonymous.get(EVENTS).status_code == 401
    with django_assert_max_num_queries(5):
        body = get(viewer, EVENTS)
    with django_assert_max_num_queries(6):
        get(viewer, f"{EVENTS}?olt={onu.olt.name}&pon_port={onu.pon_port_id}")

    assert "canary" not in json.dumps(body)
    success = document["paths"][EVENTS]["get"]["responses"]["200"]["content"]["application/json"]
    Draft202012Validator({**success["schema"], "components": document["components"]}).validate(body)

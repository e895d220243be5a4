"""The history of ONUs and PON ports over the API."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from api.rows import make_olt, make_onu
from facho.onus.history import Samples, append
from facho.onus.history_models import Metric
from facho.onus.models import Onu

ONU, PORT = "onus/{onu_id}/history/", "pon-ports/{pon_port_id}/history/"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def poll(at: datetime, powers: dict[Onu, float | None]) -> None:
    ports = [onu.pon_port_id for onu in powers]
    append(at, Samples.of([onu.id for onu in powers], ports, {Metric.RX_POWER: list(powers.values())}))


@pytest.fixture
def onus(db: None) -> list[Onu]:
    """Two ONUs of a port, read every five minutes of the last hour, but for a poll that did not come."""
    olt = make_olt("North")
    near, far = make_onu(olt, (0, 1, 0, 1), serial="HWTC00000001"), make_onu(olt, (0, 1, 0, 2), serial="HWTC00000002")
    start = timezone.now().replace(minute=0, second=0, microsecond=0) - HOUR
    for number in (0, 1, 2, 4, 5):
        poll(start + number * 5 * MINUTE, {near: -20.0 - number, far: None if number == 1 else -25.5})
    return [near, far]


def address(path: str, onu: Onu) -> str:
    return "/api/v1/" + path.format(onu_id=onu.id, pon_port_id=onu.pon_port_id)


def test_an_onu_is_shown_with_its_gaps(viewer: APIClient, onus: list[Onu]) -> None:
    body = viewer.get(address(ONU, onus[0])).json()

    assert (body["onu_id"], body["metric"], body["unit"], body["resolution"]) == (onus[0].id, "rx_power", "dBm", "full")
    assert [point["value"] for point in body["points"]] == [-20.0, -21.0, -22.0, None, -24.0, -25.0]
    assert set(body["points"][0]) == {"at", "value"}
    moments = [datetime.fromisoformat(point["at"]) for point in body["points"]]
    assert moments == [moments[0] + number * 5 * MINUTE for number in range(6)]


def test_hours_have_their_extremes(viewer: APIClient, onus: list[Onu]) -> None:
    (point,) = viewer.get(address(ONU, onus[0]) + "?resolution=hour").json()["points"]

    assert (point["value"], point["min"], point["max"]) == (-22.4, -25.0, -20.0)


def test_a_port_shows_its_onus_at_the_times_they_share(viewer: APIClient, onus: list[Onu]) -> None:
    body = viewer.get(address(PORT, onus[0])).json()

    assert len(body["at"]) == 6
    assert {row["onu"]: row["value"] for row in body["onus"]} == {
        "HWTC00000001": [-20.0, -21.0, -22.0, None, -24.0, -25.0],
        "HWTC00000002": [-25.5, None, -25.5, None, -25.5, -25.5],
    }


def test_nothing_known_is_an_empty_series(viewer: APIClient, onus: list[Onu]) -> None:
    assert viewer.get(address(ONU, onus[0]) + "?metric=temperature").json()["points"] == []
    assert viewer.get(address(PORT, onus[0]) + "?metric=temperature").json()["onus"] == []


@pytest.mark.parametrize(
    ("query", "field", "sentence"),
    [
        ("metric=light", "metric", "Choose one of: rx_power, tx_power, olt_rx_power, temperature, distance, state."),
        ("resolution=minute", "resolution", "Choose one of: auto, full, hour, day."),
        ("from=yesterday", "from", "Enter a time such as 2030-05-06T12:00:00Z."),
        ("to=9999-12-31T23:59:59-23:00", "to", "Enter a time such as 2030-05-06T12:00:00Z."),
        ("from=2000-01-01&resolution=full", "from", "This resolution shows at most 31 days"),
        ("from=2000-01-02&to=2000-01-01", "from", "Choose a time before the end, which is 2000-01-01T00:00:00+00:00."),
        ("from=0001-01-01", "from", "36525 days"),
        ("from=%00", "from", "Enter a time"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(
    viewer: APIClient, onus: list[Onu], query: str, field: str, sentence: str
) -> None:
    for path in (ONU, PORT):
        answer = viewer.get(f"{address(path, onus[0])}?{query}")

        assert answer.status_code == 400
        (error,) = answer.json()["errors"]
        assert error["field"] == field
        assert sentence in error["detail"]


@pytest.mark.parametrize("path", [ONU, PORT])
@pytest.mark.parametrize("query", ["", "?resolution=hour", "?resolution=day&from=2020-01-01", "?metric=state&to="])
def test_every_answer_is_as_the_document_says_in_six_queries(
    viewer: APIClient,
    onus: list[Onu],
    path: str,
    query: str,
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    document = viewer.get("/api/v1/schema/?format=json").json()

    with django_assert_max_num_queries(6):
        body = viewer.get(address(path, onus[0]) + query).json()

    success = document["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]["content"]["application/json"]
    Draft202012Validator({**success["schema"], "components": document["components"]}).validate(body)


@pytest.mark.parametrize("path", [ONU, PORT])
def test_history_is_for_who_may_read_and_of_what_exists(
    anonymous: APIClient, viewer: APIClient, onus: list[Onu], path: str
) -> None:
    assert anonymous.get(address(path, onus[0])).status_code == 401
    assert viewer.get("/api/v1/" + path.format(onu_id=10**30, pon_port_id=10**30)).status_code == 404

"""The load of the pollers as every minute left it: drawn over hours and 30 days, and the same over the API."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_user
from facho.accounts.roles import Role
from facho.zabbix_pollers.models import PollerStats
from facho.zabbix_pollers.read_model import MOST_POINTS, load_history
from factories import make_olt

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def store(at: datetime, busy: float = 10.0, queue: int = 0, *, saturated: bool = False) -> None:
    row = PollerStats.objects.create(
        total_pollers=10, busy_percentage=busy, queue_size=queue, is_saturated=saturated, free_pollers=9, busy_pollers=1
    )
    PollerStats.objects.filter(pk=row.pk).update(timestamp=at)


def store_a_month(now: datetime) -> None:
    """Store a row a minute; the column itself would say now for each."""
    field: Any = PollerStats._meta.get_field("timestamp")
    field.auto_now_add = False
    try:
        PollerStats.objects.bulk_create(
            (
                PollerStats(total_pollers=10, busy_percentage=n % 101, queue_size=n % 7, timestamp=now - n * MINUTE)
                for n in range(30 * 1_440)
            ),
            batch_size=5_000,
        )
    finally:
        field.auto_now_add = True


@pytest.fixture
def page() -> Client:
    client = Client(headers={"accept-language": "es"})
    client.force_login(make_user(Role.VIEWER))
    return client


@pytest.fixture
def api() -> APIClient:
    client = APIClient()
    client.force_authenticate(make_user(Role.VIEWER))
    return client


def test_minutes_are_summed_up_in_steps_and_a_gap_stays_one() -> None:
    """S0-21: what PollerStats keeps is shown."""
    for minute, busy, queue, saturated in ((0, 60.0, 2, False), (1, 90.0, 8, True), (7, 20.0, 0, False)):
        store(START + minute * MINUTE, busy, queue, saturated=saturated)

    history = load_history(START, START + timedelta(hours=24))

    assert history.step_seconds == 300
    first, second, third = history.points[:3]
    assert (first.at, first.busy_percentage, first.busy_percentage_min, first.busy_percentage_max) == (
        START,
        75,
        60,
        90,
    )
    assert (first.queue_size, first.queue_size_max, first.saturated_share) == (5, 8, 0.5)
    assert (second.at, second.busy_percentage, second.saturated_share) == (START + 5 * MINUTE, 20, 0)
    assert (third.busy_percentage, third.queue_size, third.saturated_share) == (None, None, None)


@pytest.mark.parametrize("length", [timedelta(minutes=5), timedelta(hours=6), timedelta(days=1), timedelta(days=30)])
def test_any_length_of_time_has_few_points_and_needs_one_query(length: timedelta) -> None:
    with CaptureQueriesContext(connection) as captured:
        history = load_history(START, START + length)

    assert len(history.points) <= MOST_POINTS + 1
    assert len(captured) == 1


def test_the_page_draws_load_saturation_and_queue_in_spanish(page: Client) -> None:
    now = timezone.now()
    for minute in range(30):
        store(now - minute * MINUTE, 90.0 if minute < 10 else 30.0, minute, saturated=minute < 10)

    text = page.get("/pollers/").content.decode()

    assert "Carga de los pollers" in text
    assert "Pollers ocupados" in text
    assert re.search(r"ocupados \d\d %, máximo 90 %, saturados el \d\d,\d % del tiempo", text)
    assert "cola más larga 29" in text
    assert text.count('class="curve rx"') == 2
    assert 'class="load-high"' in text


@pytest.mark.parametrize("span", ["hours", "day", "week", "month", "nonsense"])
def test_every_span_can_be_chosen_and_a_part_is_the_drawings_alone(page: Client, span: str) -> None:
    store(timezone.now() - 2 * MINUTE)

    whole, part = page.get(f"/pollers/?span={span}"), page.get(f"/pollers/?span={span}", headers={"hx-request": "true"})

    chosen = "hours" if span == "nonsense" else span
    assert f'id="span-{chosen}" href="?span={chosen}#load"' in whole.content.decode()
    assert "<html" in whole.content.decode()
    assert "<html" not in part.content.decode()


def test_without_figures_the_page_says_so(page: Client) -> None:
    assert "No se guardaron datos en este período." in page.get("/pollers/").content.decode()


def test_the_overview_leads_there(page: Client) -> None:
    make_olt()

    assert 'href="/pollers/"' in page.get("/").content.decode()


def test_a_month_of_minutes_is_a_small_page_with_few_queries(page: Client) -> None:
    store_a_month(timezone.now())
    page.get("/pollers/")

    with CaptureQueriesContext(connection) as captured:
        answer = page.get("/pollers/?span=month")

    assert len(captured) <= 6
    assert len(answer.content) < 100_000


def test_the_api_shows_the_same_over_any_time(api: APIClient) -> None:
    store(START + MINUTE, 80.0, 3, saturated=True)

    answer = api.get("/api/v1/pollers/stats/history/?from=2026-03-01T12:00:00Z&to=2026-03-01T13:00:00Z").json()

    assert (answer["from"], answer["to"], answer["step_seconds"]) == (
        "2026-03-01T12:00:00Z",
        "2026-03-01T13:00:00Z",
        120,
    )
    assert len(answer["points"]) == 31
    assert answer["points"][0] == {
        "at": "2026-03-01T12:00:00Z",
        "total_pollers": 10,
        "busy_percentage": 80.0,
        "busy_percentage_min": 80.0,
        "busy_percentage_max": 80.0,
        "queue_size": 3.0,
        "queue_size_max": 3,
        "saturated_share": 1.0,
    }
    assert answer["points"][1]["busy_percentage"] is None


def test_the_api_shows_the_last_day_unless_asked(api: APIClient) -> None:
    store(timezone.now() - 2 * MINUTE, 42.0)

    answer = api.get("/api/v1/pollers/stats/history/").json()

    assert answer["step_seconds"] == 300
    assert [point["busy_percentage"] for point in answer["points"] if point["busy_percentage"] is not None] == [42.0]


@pytest.mark.parametrize(
    "question", ["from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "from=2026-01-01T00:00:00Z", "from=x", "step=1"]
)
def test_the_api_refuses_what_it_cannot_show(api: APIClient, question: str) -> None:
    assert api.get(f"/api/v1/pollers/stats/history/?{question}").status_code == 400

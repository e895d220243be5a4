"""Plots over time: any period from the address, ONUs compared, events marked, and the same values as a file."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import numpy as np
import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from api.rows import make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.dashboard.onu.plot import MAX_POINTS, Frame, PlotCurve, thin_out
from facho.dashboard.shared.plot_range import MAX_COMPARED, SHORTEST, range_of
from facho.hosts.models import OltGroup
from facho.onus.history import Samples, append
from facho.onus.history_models import STATE_CODES, Metric
from facho.onus.models import Onu, OnuEvent

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOSTILE = "<script>alert(1)</script>=cmd()"


def shown(text: str) -> tuple[datetime, datetime]:
    found = range_of(QueryDict(text), NOW)
    return found.start, found.end


def keep_light(onu: Onu, *powers: float, minutes: int = 5) -> None:
    """Let the ONU have been read with these powers, the last of them just now."""
    now = timezone.now()
    for ago, power in enumerate(reversed(powers)):
        values = {Metric.RX_POWER: [power], Metric.STATE: [STATE_CODES["online"]]}
        append(now - ago * timedelta(minutes=minutes), Samples.of([onu.id], [onu.pon_port_id], values))


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_a_period_is_a_span_until_now_or_any_times() -> None:
    assert shown("") == shown("span=day") == shown("span=century") == (NOW - DAY, NOW)
    assert shown("span=month") == (NOW - 30 * DAY, NOW)
    assert shown("from=2026-03-01T10:00:00Z&to=2026-03-02T10:00:00Z") == (
        datetime(2026, 3, 1, 10, tzinfo=UTC),
        datetime(2026, 3, 2, 10, tzinfo=UTC),
    )
    assert shown("from=2026-03-09T12:00:00Z") == (NOW - DAY, NOW)
    assert shown("to=2030-01-01T00:00:00Z") == (NOW - DAY, NOW)


def test_times_without_a_zone_are_those_of_the_reader() -> None:
    with timezone.override("America/Bogota"):
        assert shown("from=2026-03-01T10:00&to=2026-03-01T12:00")[0] == datetime(2026, 3, 1, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "from=soon",
        "from=2026-02-31T10:00",
        "from=2026-03-09T10:00:00Z&to=2026-03-08T10:00:00Z",
        "from=0001-01-01T00:00:00Z&to=0001-01-02T00:00:00Z",
        f"from={'9' * 5000}",
    ],
)
def test_a_period_that_is_none_becomes_the_usual_one_and_says_why(text: str) -> None:
    found = range_of(QueryDict(text), NOW)

    assert (found.start, found.end) == (NOW - DAY, NOW)
    assert found.problem


def test_the_neighbours_of_a_period_are_addresses_that_lead_back() -> None:
    whole = range_of(QueryDict("from=2026-03-01T00:00:00Z&to=2026-03-03T00:00:00Z&with=7"), NOW).with_compared([7])

    closer = range_of(QueryDict(whole.closer), NOW)

    assert (closer.start, closer.end) == (whole.start + 12 * HOUR, whole.end - 12 * HOUR)
    assert shown(closer.wider) == (whole.start, whole.end)
    assert shown(whole.earlier) == (whole.start - DAY, whole.end - DAY)
    assert shown(whole.later) == (whole.start + DAY, whole.end + DAY)
    assert parse_qs(whole.later)["with"] == ["7"]
    assert range_of(QueryDict("span=day"), NOW).later == ""
    assert range_of(QueryDict(whole.later), NOW + 10 * DAY).query == whole.later.replace("&with=7", "")


def test_no_period_is_shorter_than_what_can_be_seen() -> None:
    start, end = shown("from=2026-03-01T10:00:00Z&to=2026-03-01T10:00:01Z")

    assert end - start == SHORTEST
    assert range_of(QueryDict("from=2026-03-01T10:00:00Z&to=2026-03-01T10:05:00Z"), NOW).closer == ""


def test_a_curve_of_very_many_values_keeps_its_ends_and_its_gaps() -> None:
    at = np.arange(20_000, dtype=np.float64)
    values = np.full(20_000, -20.0)
    values[7_001], values[12_345] = -29.5, np.nan
    curve = PlotCurve("rx", "light", "dBm", at, values, values, values)

    points = thin_out(curve, Frame(0, 20_000, -30, -8))

    assert len(points) <= MAX_POINTS + 4
    assert min(point[2] for point in points) == -29.5
    assert sum(np.isnan(point[1]) for point in points) == 1


def test_what_was_typed_becomes_an_address_that_can_be_shared(viewer: Client) -> None:
    olt = make_olt()
    onu, other = make_onu(olt, (0, 1, 1, 1)), make_onu(olt, (0, 1, 1, 2), serial="HWTC00000002")

    answer = viewer.get(f"/onus/{onu.id}/?from=2026-03-01T10:00&to=2026-03-01T12:00&with=hwtc00000002")

    shared = f"/onus/{onu.id}/?from=2026-03-01T10:00:00Z&to=2026-03-01T12:00:00Z&with={other.id}"
    assert answer.headers["Location"] == shared
    assert viewer.get(shared).status_code == 200


def test_onus_are_compared_in_one_plot_and_can_be_taken_out_again(viewer: Client) -> None:
    olt = make_olt()
    onu, other = make_onu(olt, (0, 1, 1, 1)), make_onu(olt, (0, 1, 1, 2), serial="OTHER", description=HOSTILE)
    keep_light(onu, -20, -20.5)
    keep_light(other, -25, -25.5)

    light = page(viewer, f"/onus/{onu.id}/light/?with={other.id}")

    assert f"<bdi>{escape(HOSTILE)} OTHER</bdi></a>: lowest -25.50, highest -25.00 dBm" in light
    assert '<a class="remove" href="?span=day#light"' in light
    assert "<script>alert" not in light


def test_a_long_name_is_not_repeated_in_every_column(viewer: Client) -> None:
    olt = make_olt()
    onu, other = make_onu(olt, (0, 1, 1, 1)), make_onu(olt, (0, 1, 1, 2), description="A" * 255)
    keep_light(other, *[-25.0] * 200)

    light = page(viewer, f"/onus/{onu.id}/light/?with={other.id}")

    assert "A" * 40 in light
    assert "A" * 41 not in light


def test_only_onus_in_scope_are_compared_and_no_more_than_can_be_told_apart() -> None:
    mine, others = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="others")
    user = make_user(Role.VIEWER)
    Profile.objects.create(user=user).olt_groups.add(mine)
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    olt = make_olt(group=mine)
    onu, *neighbours = [make_onu(olt, (0, 1, 1, number)) for number in range(MAX_COMPARED + 3)]
    hidden = make_onu(make_olt("Hidden", group=others), serial="SECRET")
    for each in (*neighbours, hidden):
        keep_light(each, -20, -21)

    assert "No such ONU: SECRET" in page(client, f"/onus/{onu.id}/light/?with=SECRET")
    assert f"No such ONU: {hidden.id}" in page(client, f"/onus/{onu.id}/light/?with={hidden.id}")
    many = page(client, f"/onus/{onu.id}/light/?with={','.join(str(each.id) for each in neighbours)}")
    assert many.count('<path class="curve other-') == 2 * MAX_COMPARED
    hostile = page(client, f"/onus/{onu.id}/light/?with=<script>alert(1)</script>,{'9' * 40}")
    assert "<script>alert" not in hostile


def test_events_are_marked_where_they_happened(viewer: Client) -> None:
    onu = make_onu(make_olt(), (0, 1, 3, 12))
    keep_light(onu, *[-20.0] * 30)
    for hours in (1, 50):
        OnuEvent.objects.create(
            olt=onu.olt, pon_port=onu.pon_port, onu=onu, onu_number=12, at=timezone.now() - hours * HOUR, kind="down"
        )

    assert page(viewer, f"/onus/{onu.id}/light/").count('class="plot-mark down"') == 1
    assert page(viewer, f"/onus/{onu.id}/light/?span=week").count('class="plot-mark down"') == 2


def test_a_fixed_period_is_not_refreshed_and_one_until_now_is(viewer: Client) -> None:
    onu = make_onu(make_olt())

    assert 'hx-trigger="every 30s"' in page(viewer, f"/onus/{onu.id}/light/")
    fixed = page(viewer, f"/onus/{onu.id}/light/?from=2026-01-01T10:00:00Z&to=2026-01-02T10:00:00Z")
    assert 'hx-trigger="none"' in fixed


def test_the_file_has_every_value_of_the_plot_and_no_formula(viewer: Client) -> None:
    olt = make_olt()
    onu, other = make_onu(olt, (0, 1, 1, 1)), make_onu(olt, (0, 1, 1, 2), serial="OTHER", description="=cmd()")
    keep_light(onu, *[-20.25] * 600, minutes=1)
    keep_light(other, -25)

    answer = viewer.get(f"/onus/{onu.id}/history.csv?with={other.id}")

    head, *rows = answer.content.decode().splitlines()
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert head.split(",")[:2] == ["time", "The ONU receives (dBm)"]
    assert "'=cmd() OTHER (dBm)" in head
    assert len([row for row in rows if "-20.25" in row]) == 600


def test_the_file_of_an_onu_is_for_those_who_may_see_it() -> None:
    mine, others = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="others")
    user = make_user(Role.VIEWER)
    Profile.objects.create(user=user).olt_groups.add(mine)
    client = Client()
    client.force_login(user)

    assert client.get(f"/onus/{make_onu(make_olt(group=mine)).id}/history.csv").status_code == 200
    assert client.get(f"/onus/{make_onu(make_olt(group=others)).id}/history.csv").status_code == 404
    assert Client().get("/onus/1/history.csv").headers["Location"] == "/login/?next=/onus/1/history.csv"

"""What can be asked of the history, and what is shown of it."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from facho.onus.history import Resolution, Samples, append
from facho.onus.history_models import STATE_CODES, Metric
from facho.onus.history_read_model import Detail, HistoryQuery, WrongQuestion, ask, load_onu_history
from factories import NOW
from history_world import FIVE_MINUTES, make_onus, make_ports

DAY = timedelta(days=1)


def question(length: timedelta, *, ago: timedelta = timedelta(0), detail: Detail = Detail.AUTO) -> HistoryQuery:
    end = NOW - ago
    return ask(Metric.RX_POWER, start=end - length, end=end, detail=detail, now=NOW)


def test_the_last_day_is_shown_unless_asked_otherwise() -> None:
    asked = ask(Metric.RX_POWER, start=None, end=None, detail=Detail.AUTO, now=NOW)

    assert (asked.start, asked.end, asked.detail, asked.unit) == (NOW - DAY, NOW, Detail.FULL, "dBm")


@pytest.mark.parametrize(
    ("length", "ago", "detail"),
    [
        (2 * DAY, 0 * DAY, Detail.FULL),
        (3 * DAY, 0 * DAY, Detail.HOUR),
        (62 * DAY, 0 * DAY, Detail.HOUR),
        (63 * DAY, 0 * DAY, Detail.DAY),
        # Samples are kept for 30 days, hours for 90.
        (DAY, 29 * DAY, Detail.FULL),
        (DAY, 30 * DAY, Detail.HOUR),
        (DAY, 90 * DAY, Detail.DAY),
    ],
)
def test_auto_shows_as_much_as_fits_and_is_kept(length: timedelta, ago: timedelta, detail: Detail) -> None:
    assert question(length, ago=ago).detail is detail


@pytest.mark.parametrize(("detail", "days"), [(Detail.FULL, 31), (Detail.HOUR, 366), (Detail.DAY, 36_525)])
def test_a_span_that_is_too_long_is_refused_with_its_limit(detail: Detail, days: int) -> None:
    assert question(days * DAY, detail=detail).detail is detail

    with pytest.raises(WrongQuestion, match=f"{days} days"):
        question(days * DAY + timedelta(seconds=1), detail=detail)


@pytest.mark.parametrize(("start", "end"), [(NOW, NOW), (NOW, NOW - DAY), (NOW + DAY, NOW + 2 * DAY)])
def test_what_ends_before_it_begins_is_refused(start: datetime, end: datetime) -> None:
    with pytest.raises(WrongQuestion, match="before the end"):
        ask(Metric.RX_POWER, start=start, end=end, detail=Detail.AUTO, now=NOW)


@pytest.mark.django_db
@pytest.mark.parametrize(("detail", "shares"), [(Detail.FULL, [100.0, None, 0.0]), (Detail.HOUR, [50.0])])
def test_a_state_is_a_share_online_and_who_is_unknown_is_not_down(detail: Detail, shares: list[float | None]) -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    for number, state in enumerate(("online", "unknown", "offline")):
        append(NOW + number * FIVE_MINUTES, Samples.of([onu.id], [port.id], {Metric.STATE: [STATE_CODES[state]]}))

    asked = ask(Metric.STATE, start=None, end=NOW + DAY, detail=detail, now=NOW + DAY)
    series = load_onu_history(onu.id, asked)

    assert [None if np.isnan(share) else share for share in series.average] == shares
    assert asked.unit == "percent"


@pytest.mark.django_db
def test_an_answer_that_would_weigh_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.onus.history_read_model.MAX_VALUES", 1)
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    for number in range(2):
        append(NOW + number * FIVE_MINUTES, Samples.of([onu.id], [port.id], {Metric.RX_POWER: [-20.0]}))

    with pytest.raises(WrongQuestion, match="shorter period"):
        load_onu_history(onu.id, HistoryQuery(Metric.RX_POWER, NOW, NOW + DAY, Resolution.SAMPLES))

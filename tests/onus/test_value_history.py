"""Values that somebody wants kept: what is, what is not, and what becomes of them when they are old."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

import pytest

from facho.hosts.history_models import HistoryRow, OltHistoryDays, OltHistoryPoll, OltHistorySamples
from facho.hosts.models import Olt
from facho.hosts.olt_data import save_olt_values
from facho.onus import value_history
from facho.onus.history import Resolution, read_olt_row, read_onu
from facho.onus.value_history import (
    find_metric,
    find_row,
    find_rows,
    save_olt_figures,
    save_olt_history,
    save_onu_history,
)
from facho.polling.domain.collection import OltValue
from facho.polling.vendors.index import Place
from factories import NOW, make_olt
from history_world import FIVE_MINUTES, FOREVER, compact_all, make_onus, make_ports, points
from onu_tables import Told, table_of

pytestmark = pytest.mark.django_db

CPU, TRAFFIC = "1.3.6.1.4.1.9.1", "1.3.6.1.2.1.31.1.1.1.6"
LATER = NOW + timedelta(days=1)


def value(text: str, oid: str = CPU, index: str = "1", *, is_counter: bool = False) -> OltValue:
    return OltValue(oid, index, "", "", text, "", text, is_counter)


def keep(olt: Olt, *values: OltValue, now: datetime = NOW) -> None:
    save_olt_values(olt.id, values, whole_oids=(), now=now)
    save_olt_history(olt.id, values, now=now)


def history(
    olt: Olt, oid: str = CPU, index: str = "1", resolution: Resolution = Resolution.SAMPLES
) -> list[tuple[int, float]]:
    metric, row = find_metric(oid), find_row(olt.id, index)
    return points(read_olt_row(olt.id, row, metric, *FOREVER, resolution)) if metric and row else []


def seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def test_numbers_are_kept_by_row_and_what_is_none_is_not() -> None:
    olt = make_olt()

    keep(olt, value("23.5"), value("-7", index="2"), value("up", index="3"), value("nan", index="4"))

    assert history(olt) == [(seconds(NOW), 23.5)]
    assert history(olt, index="2") == [(seconds(NOW), -7.0)]
    assert history(olt, index="3") == history(olt, index="4") == []


def test_of_a_counter_its_growth_is_kept() -> None:
    olt = make_olt()

    keep(olt, value("1000", TRAFFIC, is_counter=True))
    keep(olt, value("4000", TRAFFIC, is_counter=True), now=NOW + FIVE_MINUTES)

    assert history(olt, TRAFFIC) == [(seconds(NOW + FIVE_MINUTES), 10.0)]


def test_two_olts_with_the_same_oid_have_each_their_own(
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    north, south = make_olt(), make_olt()
    keep(north, value("1"))
    keep(south, value("2"))

    with django_assert_max_num_queries(3):
        save_olt_history(south.id, [value("3"), value("4", index="1")], now=NOW + FIVE_MINUTES)

    assert history(north) == [(seconds(NOW), 1.0)]
    assert history(south) == [(seconds(NOW), 2.0), (seconds(NOW + FIVE_MINUTES), 4.0)]


def test_old_values_are_summed_up_like_those_of_onus() -> None:
    olt = make_olt()
    for number, text in enumerate(("10", "20", "60")):
        keep(olt, value(text), now=NOW + number * FIVE_MINUTES)

    compact_all(LATER)
    assert (OltHistoryPoll.objects.count(), OltHistorySamples.objects.count()) == (0, 1)
    assert [number for _, number in history(olt)] == [10.0, 20.0, 60.0]
    compact_all(NOW + timedelta(days=200))

    assert OltHistoryDays.objects.count() == 1
    assert [number for _, number in history(olt, resolution=Resolution.DAYS)] == [30.0]


def test_history_goes_with_its_olt() -> None:
    olt = make_olt()
    keep(olt, value("1"))
    compact_all(LATER)
    keep(olt, value("2"), now=LATER)

    olt.delete()
    compact_all(LATER + timedelta(days=1))

    assert [model.objects.count() for model in (OltHistorySamples, OltHistoryPoll, HistoryRow)] == [0, 0, 0]


def test_a_device_that_invents_rows_and_oids_gets_no_more_of_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(value_history, "MAX_ROWS_PER_OLT", 2)
    monkeypatch.setattr(value_history, "OWN_NUMBERS", range(16, 18))
    olt = make_olt()

    keep(olt, *(value("1", index=str(number)) for number in range(5)))
    keep(olt, *(value("1", f"1.3.{number}", index="0") for number in range(5)), now=NOW + FIVE_MINUTES)

    assert HistoryRow.objects.count() == 2
    assert len(history(olt, index="0")) == len(history(olt, "1.3.0", "0")) == 1
    assert history(olt, "1.3.4", "0") == []
    assert "history.numbers_spent oids=4" in caplog.text
    assert f"history.rows_spent olt={olt.id} rows=3" in caplog.text


def test_values_of_an_onu_follow_it() -> None:
    ports = make_ports(2)
    (onu,) = make_onus(ports[0], 1, now=NOW)
    here, nobody = Told(Place(0, 1, 0, 1), {}, {CPU: "5"}), Told(Place(9, 9, 9, 9), {}, {CPU: "6"})
    save_onu_history(onu.olt_id, table_of(here, nobody), {CPU}, now=NOW)
    compact_all(LATER)
    onu.pon_port = ports[1]
    onu.save()

    there = Told(Place(0, 1, 1, 1), {}, {CPU: "7"})
    save_onu_history(onu.olt_id, table_of(there), {CPU}, now=LATER)

    metric = find_metric(CPU)
    assert metric
    found = points(read_onu(onu.id, metric, *FOREVER, Resolution.SAMPLES))
    assert found == [(seconds(NOW), 5.0), (seconds(LATER), 7.0)]


def figure(text: str, name: str, index: str, *, is_counter: bool = False) -> OltValue:
    return OltValue(f"1.3.6.1.4.1.7.{name.count('o')}", index, name, index, text, "", text, is_counter)


def test_figures_of_cards_and_uplinks_are_kept_without_a_wish_and_others_are_not() -> None:
    olt = make_olt()
    for minutes, octets in ((0, "1000"), (5, "4000")):
        now = NOW + timedelta(minutes=minutes)
        values = [
            figure(octets, "if.in_octets", "7", is_counter=True),
            figure("41", "board.temperature", "0.1"),
            figure("3", "fan.speed", "1"),
        ]
        save_olt_values(olt.id, values, whole_oids=(), now=now)
        save_olt_figures(olt.id, values, now=now)

    assert history(olt, "if.in_octets", "7") == [(seconds(NOW + FIVE_MINUTES), 10.0)]
    assert [number for _, number in history(olt, "board.temperature", "0.1")] == [41.0, 41.0]
    assert find_metric("fan.speed") is None


def test_of_a_table_with_very_many_rows_the_first_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_history, "MAX_FIGURE_ROWS", 2)
    olt = make_olt()

    save_olt_figures(olt.id, [figure("40", "board.temperature", index) for index in ("10", "9", "2")], now=NOW)

    assert sorted(find_rows(olt.id)) == ["2", "9"]

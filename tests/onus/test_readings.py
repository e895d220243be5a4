"""What a poll read, stored by comparing with what is known; and the events that follow from it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from onu_world import HERE, THERE, after, poll, raw_values, reading, reported, street, walk

from facho.onus.history import Resolution, read_onu
from facho.onus.history_models import HistoryPoll, Metric
from facho.onus.models import Onu, OnuData, OnuEvent, OnuReading
from facho.onus.store import save_inventory, save_table
from facho.polling.domain.onu_presence import OnuIdentity, Walk
from facho.polling.vendors.column import RowRule, settle
from facho.polling.vendors.index import Place
from factories import NOW, make_olt
from onu_tables import Told, table_of

pytestmark = pytest.mark.django_db

LATER = after(1)


def test_readings_are_stored_with_since_when_the_state_holds() -> None:
    """S3-11: raw values land in onu_data, typed ones in the reading."""
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    poll(olt, reading(HERE, description="CLI-1", run_state="online", rx_power=-21.37, distance=1200))
    poll(olt, reading(HERE, run_state="online", rx_power=-21.4), now=LATER)

    onu = Onu.objects.select_related("reading").get()
    assert onu.description == "CLI-1"
    assert (onu.reading.run_state, onu.reading.state_since) == ("online", NOW)
    assert (onu.reading.rx_power_dbm, onu.reading.power_at) == (-21.4, LATER)
    assert onu.reading.distance_m == 1200
    assert raw_values(onu)["onu.rx_power"] == "-21.4"


@pytest.mark.parametrize("count", [1, 100])
def test_an_unchanged_poll_takes_four_statements(count: int, django_assert_num_queries: Any) -> None:
    """The ONUs, their raw values, history, and when states were read."""
    olt, onus = make_olt(), street(count)
    walk(olt, onus)
    poll(olt, *(reading(place, run_state="online") for place in onus))

    with django_assert_num_queries(4):
        poll(olt, *(reading(place, run_state="online") for place in onus), now=LATER)


@pytest.mark.parametrize("count", [1, 100])
def test_light_that_moves_takes_two_statements_more_and_loads_no_onu(
    count: int, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of all ONUs, and their raw values."""
    olt, onus = make_olt(), street(count)
    walk(olt, onus)
    poll(olt, *(reading(place, run_state="online", rx_power=-20.0, distance=100) for place in onus))
    monkeypatch.setattr("facho.onus.store.load_present", None)

    with django_assert_num_queries(6):
        changed = poll(olt, *(reading(p, run_state="online", rx_power=-20.1, distance=100) for p in onus), now=LATER)

    assert changed == count
    assert set(OnuReading.objects.values_list("rx_power_cdbm", "distance_m", "power_at")) == {(-2010, 100, LATER)}


def test_another_raw_value_of_the_same_light_changes_nothing() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll(olt, reading(HERE, rx_power=-21.001, temperature=40.01))

    assert poll(olt, reading(HERE, rx_power=-21.002, temperature=40.02), now=LATER) == 0
    assert OnuReading.objects.get().power_at == NOW


def test_light_that_another_column_stands_in_for_is_stored_when_that_one_moves() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    rules = {"onu.other_rx": RowRule(fills="onu.rx_power")}
    for now, light in ((NOW, -20.0), (LATER, -20.5)):
        table = table_of(reading(HERE, rx_power=None, other_rx=light), reading(THERE, rx_power=-25.0, other_rx=light))
        save_table(olt.id, settle(rules, table), now=now)

    assert list(OnuReading.objects.order_by("onu__serial").values_list("rx_power_cdbm", flat=True)) == [-2050, -2500]


def test_everything_that_a_definition_offers_has_its_column() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    up, down = datetime(2026, 2, 1, 8, tzinfo=UTC), datetime(2026, 2, 1, 7, tzinfo=UTC)

    poll(
        olt,
        reading(HERE, mac="02:00:00:00:00:01", name="Ana", model="HG8310M", sw_version="V3R017", admin_state="enabled"),
    )
    poll(
        olt,
        reading(
            HERE,
            tx_power=2.11,
            olt_rx_power=-24.5,
            temperature=47.25,
            voltage=3.312,
            bias=12.5,
            last_up=up,
            last_down=down,
        ),
    )

    onu = Onu.objects.select_related("reading").get()
    row = onu.reading
    assert (onu.mac, onu.name, onu.model) == ("02:00:00:00:00:01", "Ana", "HG8310M")
    assert (onu.firmware, onu.admin_state) == ("V3R017", "enabled")
    assert (row.tx_power_dbm, row.olt_rx_power_dbm) == (2.11, -24.5)
    assert (row.temperature_celsius, row.voltage_v, row.bias_ma) == (47.2, 3.312, 12.5)
    assert (row.last_up_at, row.last_down_at) == (up, down)


def test_a_power_that_was_not_readable_is_no_power_and_a_distance_stays() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll(olt, reading(HERE, rx_power=-21.0, distance=900))

    poll(olt, reading(HERE, rx_power=None, distance=None), now=LATER)

    row = OnuReading.objects.get()
    assert (row.rx_power_cdbm, row.distance_m) == (None, 900)
    assert reported() == []


@pytest.mark.parametrize(
    "values",
    [
        {"distance": 4_000_000_000, "rx_power": 1e9, "voltage": -3, "bias": float("nan"), "temperature": float("inf")},
        {"distance": -1, "rx_power": -400.0, "voltage": 1e12, "bias": "x", "last_up": datetime(1, 1, 1, tzinfo=UTC)},
        {"run_state": "melted", "last_down_cause": "gremlins", "admin_state": "perhaps", "description": 7, "name": 7},
    ],
)
def test_values_beyond_their_columns_are_left_out(values: dict[str, object]) -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    poll(olt, reading(HERE, **values))

    row = OnuReading.objects.select_related("onu").get()
    assert (row.run_state, row.distance_m, row.rx_power_cdbm, row.voltage_mv) == ("unknown", None, None, None)
    assert (row.bias_ua, row.temperature_tenths, row.last_up_at) == (None, None, None)
    assert (row.onu.description, row.onu.name, row.onu.admin_state) == ("", "", "")


def test_what_an_onu_that_is_away_does_not_tell_stays() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll(olt, reading(HERE, model="HG8245", sw_version="V5", mac="02:00:00:00:00:01", admin_state="enabled"))

    poll(olt, reading(HERE, model="", sw_version="", mac=None, admin_state=None), now=LATER)

    onu = Onu.objects.get()
    assert (onu.model, onu.firmware, onu.mac, onu.admin_state) == ("HG8245", "V5", "02:00:00:00:00:01", "enabled")


def test_a_time_of_a_device_without_a_zone_is_taken_for_ours() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    poll(olt, reading(HERE, last_up=datetime(2026, 2, 1, 8)))  # noqa: DTZ001 as a device sends it

    assert OnuReading.objects.get().last_up_at is not None


def test_a_hardware_address_that_is_read_makes_nobody_another_onu() -> None:
    """In EPON it is who somebody is: only a walk that sees all places may say that another one is there."""
    olt = make_olt()
    before, after_swap = OnuIdentity(mac="02:00:00:00:00:01"), OnuIdentity(mac="02:00:00:00:00:02")
    save_inventory(olt.id, Walk({HERE: before}, is_complete=True), now=NOW)

    poll(olt, reading(HERE, mac=after_swap.mac), now=after(1))
    save_inventory(olt.id, Walk({HERE: after_swap}, is_complete=True), now=after(2))

    assert reported() == [("new", HERE), ("gone", HERE)]
    assert set(Onu.objects.values_list("mac", "is_present")) == {(before.mac, False), (after_swap.mac, True)}


def test_an_unchanged_poll_writes_no_reading(django_assert_max_num_queries: object) -> None:
    """It reads ONUs, raw values and outages, keeps the samples and remembers when it was."""
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    readings = [reading(place, description="x", run_state="online") for place in (HERE, THERE)]
    poll(olt, *readings)

    with django_assert_max_num_queries(5):  # type: ignore[operator]
        assert poll(olt, *readings, now=LATER) == 0

    assert not OnuData.objects.filter(updated_at=LATER).exists()


def test_a_poll_of_many_costs_a_handful_of_statements(django_assert_max_num_queries: object) -> None:
    olt = make_olt()
    onus = street(400)
    walk(olt, onus)
    poll(olt, *(reading(place, run_state="online", rx_power=-20.0, description="a") for place in onus))

    with django_assert_max_num_queries(15):  # type: ignore[operator]
        changed = poll(
            olt,
            *(
                reading(place, run_state="offline", last_down_cause="los", rx_power=-25.0, description="b", distance=7)
                for place in onus
            ),
            now=LATER,
        )

    assert changed == 400
    assert OnuEvent.objects.count() == 800


def test_readings_of_unknown_places_are_left_out() -> None:
    olt = make_olt()

    assert poll(olt, reading(HERE, run_state="online")) == 0


def test_an_onu_goes_down_with_its_cause_and_comes_up() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll(olt, reading(HERE, run_state="online"))

    poll(olt, reading(HERE, run_state="offline", last_down_cause="dying_gasp"), now=after(1))
    poll(olt, reading(HERE, run_state="offline", last_down_cause="dying_gasp"), now=after(2))
    poll(olt, reading(HERE, run_state="online"), now=after(3))

    assert list(OnuEvent.objects.order_by("at").values_list("kind", "at", "cause")) == [
        ("down", after(1), "dying_gasp"),
        ("up", after(3), ""),
    ]
    assert OnuReading.objects.get().last_down_cause == "dying_gasp"


def test_a_cause_that_is_reported_later_completes_the_event() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll(olt, reading(HERE, run_state="online"))
    poll(olt, reading(HERE, run_state="offline"), now=after(1))

    poll(olt, reading(HERE, run_state="offline", last_down_cause="los"), now=after(2))

    event = OnuEvent.objects.get()
    assert (event.at, event.cause) == (after(1), "los")


def test_light_and_text_that_change_are_reported_with_before_and_after() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll(olt, reading(HERE, rx_power=-20.0, description="a"))

    poll(olt, reading(HERE, rx_power=-23.5, description="b"), now=LATER)

    assert list(OnuEvent.objects.order_by("id").values_list("kind", "before", "after")) == [
        ("power_drop", "-20.00", "-23.50"),
        ("description_changed", "a", "b"),
    ]


def test_flapping_is_remembered_in_the_row_and_reported_once() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll(olt, reading(HERE, run_state="online"))

    for number in range(1, 9):
        poll(olt, reading(HERE, run_state="offline" if number % 2 else "online"), now=after(number))
    poll(olt, reading(HERE, run_state="online"), now=after(20))

    assert [kind for kind, _ in reported()] == ["down", "up", "down", "up", "flapping", "calm"]
    assert OnuReading.objects.get().flap_changes == 0


def test_samples_go_to_the_history_in_the_same_breath() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    poll(olt, reading(HERE, run_state="online", rx_power=-20.5, description="x"), reading(THERE, run_state="offline"))
    poll(olt, reading(HERE, description="y"), now=LATER)

    onu = Onu.objects.get(serial="HWTC1")
    series = read_onu(onu.id, Metric.RX_POWER, NOW, NOW + timedelta(days=1), Resolution.SAMPLES)
    assert HistoryPoll.objects.count() == 1
    assert series.average.tolist() == [-20.5]


def test_a_free_oid_changes_nothing_but_its_raw_value() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    assert poll(olt, Told(HERE, {}, {"1.3.6.1": "7"})) == 0

    assert raw_values(Onu.objects.get()) == {"1.3.6.1": "7"}


def test_a_place_beyond_the_olt_is_nobodys() -> None:
    olt, other = make_olt(), make_olt()
    walk(olt, {HERE: "HWTC1"})
    walk(other, {HERE: "HWTC2"})

    poll(other, reading(HERE, run_state="online"), reading(Place(0, 9, 9, 9), run_state="online"))

    assert dict(Onu.objects.values_list("serial", "reading__run_state")) == {"HWTC1": "unknown", "HWTC2": "online"}

"""Every family with parts of its SNMP view closed: ONUs without a serial are stored by place, and zero is a failure."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from facho.hosts.models import Olt, SnmpVersionChoice
from facho.onus.models import Onu, OnuReading
from facho.polling.domain.collection import Collected
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.onu_presence import MISPLACED_ROWS
from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.definition import MAC, SERIAL, Definition
from facho.polling.vendors.index import LearnedIndex
from facho.polling.vendors.loader import load_definitions
from facho.simulator.agent import Faults
from facho.simulator.readings import read_optics
from facho.simulator.world import SimulatedOnu
from facho.snmp_get.collector import PORT_COUNTS
from factories import NOW
from snmp_get.closed_views import COUNTING, FAMILIES, identity_keys, onu_keys, stored_place
from snmp_get.olt_bench import Bench, on_bench

ONUS = 30
# Tenths of a microwatt tell weak light coarsely.
LIGHT_STEP_DB = 0.6
NEXT_DAYS = [NOW + timedelta(hours=hours) for hours in (1, 25, 50)]
Places = dict[tuple[int, ...], tuple[str, float | None]]

pytestmark = pytest.mark.django_db(transaction=True)


async def discover(bench: Bench, **more: object) -> Collected:
    job = bench.simulated.definition.job("descubrimiento")
    return await bench.collect(job.query_type, job.columns, **more)  # type: ignore[arg-type]


async def read_values(bench: Bench) -> None:
    for slug in ("estado", "potencia"):
        job = bench.simulated.definition.job(slug)
        collected = await bench.collect(job.query_type, job.columns)
        assert collected.failure is None, slug


def stored() -> Places:
    rows = OnuReading.objects.filter(onu__is_present=True).values_list(
        "onu__pon_port__frame",
        "onu__pon_port__slot",
        "onu__pon_port__port",
        "onu__onu_id",
        "run_state",
        "rx_power_cdbm",
    )
    return {row[:4]: (row[4], None if row[5] is None else row[5] / 100) for row in rows}


def expected(family: Definition, truth: list[SimulatedOnu]) -> Places:
    places: Places = {}
    for onu in truth:
        light = read_optics(onu, at=0.0).rx_dbm if onu.is_online else None
        places[stored_place(family, onu)] = (onu.state.value, light)
    return places


def assert_equal(rows: Places, truth: Places) -> None:
    assert rows.keys() == truth.keys()
    assert {place: state for place, (state, _) in rows.items()} == {place: state for place, (state, _) in truth.items()}
    lights = {place: light for place, (_, light) in truth.items()}
    assert {place: light for place, (_, light) in rows.items()} == pytest.approx(lights, abs=LIGHT_STEP_DB)


@pytest.mark.parametrize("key", FAMILIES)
def test_onus_whose_serial_column_is_closed_are_stored_by_place_with_state_and_light(key: str) -> None:
    family, truth = load_definitions()[key], list[SimulatedOnu]()

    async def scene(bench: Bench) -> None:
        bench.simulated.close_columns(identity_keys(family))
        collected = await discover(bench)
        assert (collected.failure, collected.summary["onus"]) == (None, ONUS)
        has_identity = family.has_column(SERIAL) or family.has_column(MAC)
        assert collected.summary.get("by_place") == (ONUS if has_identity else None)
        onu = next(iter(bench.simulated.world.onus))
        if not any(isinstance(index, LearnedIndex) for index in family.onu_indexes.values()):
            bench.simulated.world.take_down(onu, DownCause.LOS)
        await read_values(bench)
        truth.extend(bench.simulated.world.onus)

    on_bench(scene, vendor=key, onus=ONUS)

    assert not Onu.objects.exclude(serial="", mac="").exists()
    assert_equal(stored(), expected(family, truth))


@pytest.mark.parametrize("key", FAMILIES)
def test_a_serial_that_appears_later_belongs_to_the_same_onu_and_stays_when_it_is_hidden_again(key: str) -> None:
    family = load_definitions()[key]

    async def scene(bench: Bench) -> None:
        database = bench.collector.devices.database
        bench.simulated.close_columns(identity_keys(family))
        await discover(bench)
        nameless = await database.run(identities)
        bench.simulated.close_columns(())
        assert "by_place" not in (await discover(bench, now=NEXT_DAYS[0])).summary
        named = await database.run(identities)
        bench.simulated.close_columns(identity_keys(family))
        assert (await discover(bench, now=NEXT_DAYS[1])).failure is None
        seen.extend((nameless, named, await database.run(identities)))

    seen: list[dict[int, tuple[str, str]]] = []
    on_bench(scene, vendor=key, onus=ONUS)

    nameless, named, hidden = seen
    assert nameless.keys() == named.keys()
    assert set(nameless.values()) == {("", "")}
    if family.has_column(SERIAL) or family.has_column(MAC):
        assert len(set(named.values())) == ONUS
    assert hidden == named
    assert Onu.objects.count() == ONUS


def identities() -> dict[int, tuple[str, str]]:
    rows = Onu.objects.filter(is_present=True).values_list("id", "serial", "mac")
    return {onu_id: (serial, mac) for onu_id, serial, mac in rows}


@pytest.mark.parametrize("key", COUNTING)
def test_no_onu_beside_ports_that_count_them_is_a_failure(key: str) -> None:
    family = load_definitions()[key]

    async def scene(bench: Bench) -> None:
        bench.simulated.close_columns(onu_keys(family))
        collected = await discover(bench)
        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.HIDDEN_ONUS
        assert f"the PON ports count {ONUS} ONUs" in collected.failure.message
        assert (collected.summary["onus"], collected.summary["counted_onus"]) == (0, ONUS)
        assert not any(rows.walk for rows in collected.rows)

    on_bench(scene, vendor=key, onus=ONUS)

    assert not Onu.objects.exists()


@pytest.mark.parametrize("key", FAMILIES)
def test_onus_known_before_are_never_lost_to_a_closed_view(key: str) -> None:
    family = load_definitions()[key]

    async def scene(bench: Bench) -> None:
        await discover(bench)
        bench.simulated.close_columns(
            onu_keys(family) + [c for keys in PORT_COUNTS for c in keys if family.has_column(c)]
        )
        for now in NEXT_DAYS:
            collected = await discover(bench, now=now)
            assert collected.failure is not None
            assert collected.failure.kind is FailureKind.HIDDEN_ONUS
            assert f"{ONUS} ONUs were known" in collected.failure.message

    on_bench(scene, vendor=key, onus=ONUS)

    assert Onu.objects.filter(is_present=True, misses=0).count() == ONUS


@pytest.mark.parametrize("key", FAMILIES)
def test_an_olt_without_onus_is_a_success(key: str) -> None:
    async def scene(bench: Bench) -> None:
        collected = await discover(bench)
        assert (collected.failure, collected.summary["onus"]) == (None, 0)

    on_bench(scene, vendor=key, onus=0)


@pytest.mark.parametrize(
    ("key", "closed"),
    [
        ("bdcom_gpon", "onu.id"),
        ("datacom_dmos", "onu.id"),
        ("ubiquiti_ufiber", "onu.pon_port"),
        ("intelbras_8820i", "onu.registered"),
    ],
)
def test_rows_that_cannot_be_placed_or_reported_from_free_ones_are_a_failure(key: str, closed: str) -> None:
    async def scene(bench: Bench) -> None:
        bench.simulated.close_columns([closed])
        collected = await discover(bench)
        assert collected.failure is not None
        assert f"the tables list {ONUS} ONUs, but none with a place" in collected.failure.message
        assert collected.summary["unplaced_rows"] == ONUS

    on_bench(scene, vendor=key, onus=ONUS)

    assert not Onu.objects.exists()


def test_an_olt_whose_ports_count_none_loses_its_onus_after_a_day() -> None:
    async def scene(bench: Bench) -> None:
        await discover(bench)
        for onu in list(bench.simulated.world.onus):
            bench.simulated.world.remove(onu)
        for now in NEXT_DAYS:
            collected = await discover(bench, now=now)
            ends.append(collected.failure.kind if collected.failure else None)
        ends.append((await discover(bench, now=NEXT_DAYS[-1] + timedelta(hours=1))).failure)

    ends: list[object] = []
    on_bench(scene, onus=ONUS)

    assert ends == [FailureKind.HIDDEN_ONUS] * 3 + [None]
    assert not Onu.objects.filter(is_present=True).exists()


@pytest.mark.parametrize("slug", ["descubrimiento", "estado"])
def test_rows_without_a_place_that_are_most_of_a_table_are_not_silent(slug: str) -> None:
    async def scene(bench: Bench) -> None:
        family, view = bench.simulated.definition, bench.simulated._personality.view
        job, at = family.job(slug), view.column_of(family.column("onu.serial").oid)
        assert at is not None
        reported.append((await bench.collect(job.query_type, job.columns)).summary)
        # Numbers of another slot than the definition knows.
        indexes = view.columns[at].rows.indexes
        indexes[5:] = [(number + (1 << 24),) for (number,) in indexes[5:]]
        for column in view.columns:
            column.forget_all()
        reported.append((await bench.collect(job.query_type, job.columns)).summary)

    reported: list[Mapping[str, object]] = []
    on_bench(scene, vendor="hsgq_gpon", onus=ONUS)

    assert [(each["onus"], each.get(MISPLACED_ROWS)) for each in reported] == [(ONUS, None), (5, ONUS - 5)]


def test_an_snmp_v1_agent_shows_its_columns_one_by_one() -> None:
    """Such an agent refuses a whole question when one column is at the end of its tables."""

    async def scene(bench: Bench) -> None:
        await bench.collector.devices.database.run(speak_v1, bench.olt.id)
        bench.simulated.close_columns([SERIAL])
        collected = await discover(bench)
        assert (collected.failure, collected.summary["onus"]) == (None, ONUS)
        bench.simulated.faults = Faults(closed=((1, 3, 6, 1, 4),))
        assert "30 ONUs were known" in str((await discover(bench)).failure)

    on_bench(scene, onus=ONUS)


def speak_v1(olt_id: int) -> None:
    Olt.objects.filter(id=olt_id).update(snmp_version=SnmpVersionChoice.V1)


def test_a_row_is_free_only_if_it_says_so() -> None:
    family = load_definitions()["intelbras_8820i"]

    assert family.is_free({"onu.registered": 0})
    assert not family.is_free({"onu.registered": 1})
    assert not family.is_free({"onu.registered": None})

"""OIDs of an operator's own, read from simulated OLTs over real UDP: whatever the way, their values end somewhere."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from facho.hosts.models import Olt, OltData, SnmpVersionChoice
from facho.onus.models import OnuData
from facho.polling.domain.collection import FreeOid
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions
from raw_rows import raw_values
from snmp_get.olt_bench import Bench, Spent, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

HUAWEI = load_definitions()["huawei_smartax"]
# What the device has and the definition of these tests does not know.
UNKNOWN = ("onu.description", "pon.onu_count", "board.memory")
UPTIME = FreeOid("1.3.6.1.2.1.1.3.0", "Uptime", "cs")
DESCRIPTION, ONU_COUNT, MEMORY = (FreeOid(format_oid(HUAWEI.column(key).oid), f"my {key}", "u") for key in UNKNOWN)


@pytest.fixture(autouse=True)
def definition(monkeypatch: pytest.MonkeyPatch) -> Definition:
    columns = {key: column for key, column in HUAWEI.columns.items() if key not in UNKNOWN}
    thin = replace(HUAWEI, columns=MappingProxyType(columns))
    monkeypatch.setattr("facho.snmp_get.collector.load_definitions", lambda: {HUAWEI.key: thin})
    return thin


def reported(free: FreeOid) -> dict[str, str]:
    rows = OltData.objects.filter(oid=free.oid)
    assert set(rows.values_list("name", "unit")) <= {(free.name, free.unit)}
    return dict(rows.values_list("place", "value"))


@pytest.mark.parametrize("version", [SnmpVersionChoice.V1, SnmpVersionChoice.V2C])
@pytest.mark.parametrize("query_type", [QueryType.GET, QueryType.WALK, QueryType.TABLE, QueryType.BULK])
def test_every_query_type_stores_single_values_and_tables(query_type: QueryType, version: SnmpVersionChoice) -> None:
    """S3-02: a job has several OIDs; rows of ONUs land in onu_data, all others in olt_data."""

    async def scene(bench: Bench) -> None:
        await bench.collector.devices.database.run(
            Olt.objects.filter(id=bench.olt.id).update, snmp_version=version.value
        )
        await bench.discover()
        collected = await bench.collect(query_type, [], oids=[UPTIME, DESCRIPTION, ONU_COUNT, MEMORY])

        assert collected.failure is None
        world = bench.simulated.world
        expected.update({onu.serial: onu.description for onu in world.onus})
        counts.update({f"{p.frame}/{p.slot}/{p.port}": str(len(port.onus)) for p, port in world.ports.items()})
        assert bench.simulated.counters.max_in_flight == 1

    expected: dict[str, str] = {}
    counts: dict[str, str] = {}
    on_bench(scene)

    assert int(reported(UPTIME)[""]) > 0
    assert reported(ONU_COUNT) == counts
    assert set(reported(MEMORY).values()) == {"23"}
    assert dict(raw_values(DESCRIPTION.oid)) == expected


def test_a_job_may_read_columns_and_oids_side_by_side() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        collected = await bench.collect(QueryType.GET, ["onu.distance", "board.cpu"], oids=[UPTIME])

        assert collected.failure is None
        assert collected.summary["onus"] == 40
        assert collected.summary["olt_values"] == len(bench.simulated.world.shape.boards) + 1

    on_bench(scene)

    assert set(OltData.objects.values_list("name", flat=True)) == {"Uptime", "board.cpu"}


def test_the_oid_of_a_table_brings_all_its_columns() -> None:
    entry = FreeOid("1.3.6.1.4.1.2011.6.128.1.1.2.43")

    async def scene(bench: Bench) -> None:
        await bench.discover()
        collected = await bench.collect(QueryType.TABLE, [], oids=[entry])

        assert collected.summary["onu_values"] == 40 * 5

    on_bench(scene)

    assert len(raw_values(DESCRIPTION.oid)) == 40
    assert not OltData.objects.exists()


def test_the_oid_of_a_column_is_read_as_that_column() -> None:
    distance = FreeOid("." + format_oid(HUAWEI.column("onu.distance").oid))

    async def scene(bench: Bench) -> None:
        await bench.discover()
        collected = await bench.collect(QueryType.WALK, [], oids=[distance])

        assert collected.summary["onus"] == 40
        assert "onu_values" not in collected.summary

    on_bench(scene)


def test_the_value_of_one_onu_is_that_onus() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        onu = next(bench.simulated.world.onus)
        one = HUAWEI.column("onu.serial").instance(onu.place)
        await bench.collect(QueryType.GET, [], oids=[FreeOid(format_oid(one))])
        asked.append(onu.serial)

    asked: list[str] = []
    on_bench(scene)

    assert [serial for serial, _ in raw_values(format_oid(HUAWEI.column("onu.serial").oid))] == asked
    assert not OltData.objects.exists()


def test_rows_of_onus_that_nobody_discovered_are_counted() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.WALK, [], oids=[DESCRIPTION])

        assert (collected.failure, collected.summary["unknown_onus"]) == (None, 40)

    on_bench(scene)

    assert not OnuData.objects.exists()
    assert not OltData.objects.exists()


def test_hostile_values_are_printable_bounded_and_counted() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        first, second, *_ = bench.simulated.world.onus
        bench.simulated.world.describe(first, "\x1b[2J\x00gone")
        bench.simulated.world.describe(second, "x" * 1_000)

        collected = await bench.collect(QueryType.WALK, [], oids=[DESCRIPTION])

        assert collected.summary["odd_values"] == 2

    on_bench(scene)

    values = [value for _, value in raw_values(DESCRIPTION.oid)]
    assert all(value.isprintable() and len(value) <= 255 for value in values)
    assert "0x1b5b324a00676f6e65" in values


def test_what_is_not_there_is_counted_and_no_failure() -> None:
    nothing = [FreeOid("1.3.6.1.4.1.9.9.9.0"), FreeOid("1.3.6.1.4.1.9.9.9")]

    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.GET, [], oids=[UPTIME, *nothing])

        assert (collected.failure, collected.summary["missing_oids"]) == (None, 2)

    on_bench(scene)

    assert OltData.objects.get().name == "Uptime"


def test_a_broken_read_keeps_the_rows_of_the_one_before() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect(QueryType.WALK, [], oids=[ONU_COUNT])
        collected = await bench.collect(QueryType.WALK, [], Spent(1), oids=[ONU_COUNT])

        assert collected.failure is not None
        ports.append(len(bench.simulated.world.ports))

    ports: list[int] = []
    on_bench(scene)

    assert OltData.objects.count() == ports[0]


def test_an_oid_above_everything_ends_at_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.snmp_get.olt_values.MAX_FREE_ROWS", 100)

    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.WALK, [], oids=[FreeOid("1.3.6.1")])

        assert collected.failure is not None
        assert "more than 100 rows under 1.3.6.1" in collected.failure.message

    on_bench(scene)


@pytest.mark.parametrize("oid", ["", "sysUpTime.0", "1.3.6..1"])
def test_what_is_no_oid_fails_before_any_packet(oid: str) -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.GET, [], oids=[FreeOid(oid)])

        assert collected.failure is not None
        assert (collected.failure.kind, collected.failure.message) == (FailureKind.MISSING, f"{oid!r} is no OID")
        assert bench.simulated.counters.requests == 0

    on_bench(scene)


def test_a_job_that_reads_nothing_says_so() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.WALK, [])

        assert collected.failure is not None
        assert collected.failure.message == "the job reads nothing"

    on_bench(scene)

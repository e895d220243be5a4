"""What a run makes of an OLT that sends too much, makes rows up, or is talked over by forgers."""

import pytest

from facho.hosts import olt_data
from facho.hosts import store as olt_rows
from facho.hosts.models import Olt, OltData, WaitingOnu
from facho.hosts.olt_data import save_olt_values
from facho.hosts.store import save_waiting
from facho.onus import store as onu_rows
from facho.onus.models import Onu, OnuData, PonPort
from facho.onus.store import load_places, save_table
from facho.polling.domain.collection import FreeOid, OltValue, UnauthorisedOnu
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.snmp.memory import MEGABYTE
from facho.polling.snmp.oid import format_oid
from facho.simulator.agent import FORGED_VALUE, HOSTILE, Faults
from facho.simulator.responder import LoopKind
from factories import NOW, make_olt
from onu_tables import Told, table_of
from raw_rows import raw_values
from snmp_get.olt_bench import Bench, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

ENDLESS = Faults(loop=LoopKind.ENDLESS, value_bytes=2_000)


@pytest.mark.parametrize(
    ("query_type", "columns"),
    [
        (QueryType.DISCOVERY, ["onu.serial"]),
        (QueryType.WALK, ["onu.description", "onu.run_state"]),
        (QueryType.TABLE, ["if.name", "if.oper"]),
        (QueryType.TABLE, ["autofind.serial", "autofind.model"]),
    ],
)
def test_a_run_without_end_stores_nothing_and_says_why(query_type: QueryType, columns: list[str]) -> None:
    async def scene(bench: Bench) -> None:
        memory = bench.collector.devices.network.memory
        memory._run_bytes = MEGABYTE

        collected = await bench.collect(query_type, columns)

        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.TOO_MUCH
        assert "sent more than the 1 MB that a run may keep" in collected.failure.message
        assert collected.was_heard
        assert int(collected.summary["packets"]) > 1
        assert memory.used == 0

    on_bench(scene, faults=ENDLESS, waiting=3)

    stored = [model.objects.count() for model in (Onu, OnuData, OltData, WaitingOnu)]
    assert stored == [0] * 4


def test_free_oids_without_end_store_nothing() -> None:
    async def scene(bench: Bench) -> None:
        bench.collector.devices.network.memory._run_bytes = MEGABYTE
        oid = format_oid(bench.simulated.definition.column("onu.description").oid[:-1])

        collected = await bench.collect(QueryType.GET, [], oids=[FreeOid(oid)])

        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.TOO_MUCH

    on_bench(scene, faults=ENDLESS)

    assert OltData.objects.count() == 0


def test_rows_that_wait_to_be_stored_hold_their_memory() -> None:
    async def scene(bench: Bench) -> None:
        memory = bench.collector.devices.network.memory

        collected = await bench.collect(QueryType.DISCOVERY, ["onu.serial"])

        assert collected.failure is None
        assert memory.used > 0
        collected.release()
        assert memory.used == 0

    on_bench(scene)


def test_forged_answers_are_counted_and_none_is_stored() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect(QueryType.DISCOVERY, ["onu.serial"])

        collected = await bench.collect(QueryType.WALK, ["onu.description", "onu.run_state"])

        assert collected.failure is None
        assert int(collected.summary["forged_answers"]) >= 24
        assert "malformed_answers" not in collected.summary

    on_bench(scene, faults=HOSTILE["forger"])

    assert Onu.objects.count() == 40
    assert FORGED_VALUE.decode() not in [value for _, value in raw_values()]
    assert not Onu.objects.filter(description=FORGED_VALUE.decode()).exists()


def test_an_olt_has_only_so_many_onus_and_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onu_rows, "MAX_ONUS", 30)
    monkeypatch.setattr(onu_rows, "MAX_PORTS", 1)

    async def scene(bench: Bench) -> None:
        for _ in range(2):
            assert (await bench.collect(QueryType.DISCOVERY, ["onu.serial"])).failure is None

    on_bench(scene)

    assert 0 < Onu.objects.count() <= 30
    assert PonPort.objects.count() == 1


def test_an_olt_has_only_so_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(olt_data, "MAX_VALUES", 25)
    monkeypatch.setattr(olt_data, "PART", 10)
    olt = make_olt()

    for run in range(3):
        values = [OltValue("1.3.6", f"{run}.{n}", "x", "", str(n), "", str(n)) for n in range(20)]
        save_olt_values(olt.id, values, whole_oids=(), now=NOW)

    assert OltData.objects.count() == 25


def test_only_so_many_onus_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(olt_rows, "MAX_WAITING", 8)
    olt = make_olt()

    for run in range(3):
        found = [UnauthorisedOnu(0, 1, n, f"SERIAL{run}{n}") for n in range(6)]
        save_waiting(olt.id, found, is_complete=False, now=NOW)
        assert WaitingOnu.objects.count() <= 8


def test_an_olt_has_only_so_many_raw_values(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        await bench.collect(QueryType.WALK, ["onu.description", "onu.distance"])

    on_bench(scene)

    assert len(raw_values()) == 40 * 3
    monkeypatch.setattr("facho.onus.raw_values.MAX_VALUES", 125)
    made_up = [Told(place, {}, {"1.3.9": "made up"}) for place in load_places(Olt.objects.get().id)]
    for _ in range(2):
        save_table(Olt.objects.get().id, table_of(*made_up), now=NOW)
    assert len(raw_values()) == 125
    assert "raw_values.too_many" in caplog.text
    assert "left_out=35" in caplog.text

"""Values of which a job keeps the history, read from a simulated OLT over real UDP."""

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

import pytest

from facho.hosts.history_models import HistoryOid, OltHistoryPoll
from facho.onus.history import Resolution, read_olt_row, read_onu
from facho.onus.models import Onu
from facho.onus.value_history import find_metric, find_row, find_rows
from facho.polling.domain.collection import FreeOid
from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJobOid
from factories import NOW, make_job
from raw_rows import raw_values
from snmp_get.olt_bench import Bench, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

HUAWEI = load_definitions()["huawei_smartax"]
UPTIME = FreeOid("1.3.6.1.2.1.1.3.0", "Uptime", "cs")
SERVICES = FreeOid("1.3.6.1.2.1.1.7.0")
# Pages show neither over time, so that a history of them is a wish.
VOLTAGE, DISTANCE = (format_oid(HUAWEI.column(key).oid) for key in ("pon.voltage", "onu.distance"))
SPAN = NOW - timedelta(days=1), NOW + timedelta(days=1), Resolution.SAMPLES


def collect(columns: list[str], oids: list[FreeOid]) -> int:
    ids: list[int] = []

    async def scene(bench: Bench) -> None:
        ids.append(bench.olt.id)
        assert (await bench.collect(QueryType.GET, columns, oids=oids)).failure is None

    on_bench(scene)
    return ids[0]


def test_a_value_that_is_to_be_kept_has_a_history_and_its_neighbour_has_none() -> None:
    job = make_job(columns=("pon.onu_count",))
    SnmpJobOid.objects.create(job=job, column_key="pon.voltage", keeps_history=True)
    SnmpJobOid.objects.create(job=job, oid=UPTIME.oid, keeps_history=True)

    olt_id = collect(["pon.voltage", "pon.onu_count"], [UPTIME, SERVICES])

    assert set(HistoryOid.objects.values_list("oid", flat=True)) == {VOLTAGE, UPTIME.oid}
    metric, row_id = find_metric(UPTIME.oid), find_row(olt_id, "")
    assert metric
    assert row_id
    assert read_olt_row(olt_id, row_id, metric, *SPAN).average.size == 1


def test_an_oid_about_onus_is_kept_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {key: column for key, column in HUAWEI.columns.items() if key != "onu.distance"}
    thin = replace(HUAWEI, columns=MappingProxyType(columns))
    monkeypatch.setattr("facho.snmp_get.collector.load_definitions", lambda: {HUAWEI.key: thin})
    SnmpJobOid.objects.create(job=make_job(columns=()), oid=DISTANCE, keeps_history=True)

    async def scene(bench: Bench) -> None:
        await bench.discover()
        assert (await bench.collect(QueryType.WALK, [], oids=[FreeOid(DISTANCE)])).failure is None

    on_bench(scene, onus=3)

    metric, reported = find_metric(DISTANCE), dict(raw_values(DISTANCE))
    assert metric
    assert len(reported) == 3
    kept = {onu.serial: read_onu(onu.id, metric, *SPAN).average.tolist() for onu in Onu.objects.all()}
    assert kept == {serial: [float(value)] for serial, value in reported.items()}


def test_without_a_wish_nothing_is_kept() -> None:
    make_job(columns=("pon.voltage",))

    collect(["pon.voltage"], [UPTIME])

    assert not OltHistoryPoll.objects.exists()
    assert not HistoryOid.objects.exists()


def test_what_the_pages_show_over_time_is_kept_without_a_wish() -> None:
    make_job(columns=("board.cpu",))

    olt_id = collect(["board.cpu", "pon.voltage"], [])

    assert list(HistoryOid.objects.values_list("oid", flat=True)) == ["board.cpu"]
    metric = find_metric("board.cpu")
    assert metric
    assert all(read_olt_row(olt_id, row, metric, *SPAN).average.size for row in find_rows(olt_id).values())

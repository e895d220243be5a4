"""Collecting from simulated OLTs over real UDP: what is asked, how gently, and what becomes of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db.models import QuerySet

from facho.hosts.models import LearnedSize, Olt
from facho.onus.history import Resolution, read_onu
from facho.onus.history_models import Metric
from facho.onus.models import Onu, OnuEvent, OnuReading
from facho.onus.store import ONU_COLUMNS, READING_COLUMNS
from facho.polling.domain.collection import Rows
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.onu_state import DownCause
from facho.polling.snmp.oid import Oid
from facho.polling.snmp.session import Session
from facho.polling.snmp.walk import WalkOptions, WalkResult, walk_columns
from facho.polling.vendors.loader import load_definitions
from facho.simulator.agent import Faults
from facho.simulator.plant import PlantFault, TrueFault
from facho.snmp_get.reading import FIRST_LIVE_ONUS
from factories import NOW, give_secrets
from snmp_get.olt_bench import Bench, HandingOver, Spent, Yielding, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

OPTICS = ("onu.rx_power", "onu.tx_power", "onu.temperature")
# Of a call that has an end; ten thousand times its time-out.
PATIENCE_SECONDS = 60


@pytest.mark.parametrize("vendor", [key for key, d in load_definitions().items() if d.onu_indexes])
def test_every_vendors_ready_made_jobs_end_well(vendor: str) -> None:
    """S3-02, S3-09: discovery, get and walk, by the definition alone."""

    async def scene(bench: Bench) -> None:
        for job in load_definitions()[vendor].jobs:
            collected = await bench.collect(job.query_type, job.columns)
            assert collected.failure is None, job.slug
        assert bench.simulated.counters.max_in_flight == 1

    on_bench(scene, vendor=vendor)

    assert Onu.objects.count() == OnuReading.objects.filter(run_state="online").count() == 40
    assert not OnuReading.objects.filter(rx_power_cdbm=None).exists()
    has_texts = bool({"onu.description", "onu.name"} & set(load_definitions()[vendor].columns))
    assert Onu.objects.filter(description="").exists() is not has_texts


@pytest.mark.parametrize(
    ("kind", "size", "days", "down_db", "up_db"),
    [
        (PlantFault.BRANCH_STEP, 3.1, 0.01, 3.1, 3.1),
        (PlantFault.AGEING, 0.2, 12.0, 2.4, 2.4),
        (PlantFault.WATER, 0.25, 10.0, 2.5, 2.5),
        (PlantFault.WEAK_LASER, 0.2, 15.0, 0.0, 3.0),
    ],
)
def test_a_poll_sees_what_a_fault_of_the_plant_takes_from_the_light_of_those_behind_it(
    kind: PlantFault, size: float, days: float, down_db: float, up_db: float
) -> None:
    columns = ("onu.rx_power", "onu.olt_rx_power")
    readings: list[dict[str, tuple[float, float]]] = []
    behind: list[str] = []

    def scene_of(share_db: float) -> Callable[[Bench], Awaitable[None]]:
        async def scene(bench: Bench) -> None:
            world = bench.simulated.world
            # Weaker ones would reach the floor of their meters.
            members = sorted((onu for onu in world.onus if onu.is_online), key=lambda onu: -onu.rx_dbm)[:8]
            behind.extend(onu.serial for onu in members)
            since = world.now - days * 86_400
            fault = TrueFault(kind, since, world.now + 86_400, np.ones(len(members), dtype=bool), share_db)
            for number, onu in enumerate(members):
                onu.plant_faults.append((fault, number))
            await bench.collect(QueryType.DISCOVERY, ("onu.serial",))
            await bench.collect(QueryType.GET, columns)

        return scene

    for each in (0.0, size):
        Olt.objects.all().delete()
        on_bench(scene_of(each), vendor="huawei")
        rows = OnuReading.objects.values_list("onu__serial", "rx_power_cdbm", "olt_rx_power_cdbm")
        readings.append({serial: (down / 100, up / 100) for serial, down, up in rows})

    before, after = readings
    lost = {serial: [was - now for was, now in zip(before[serial], after[serial], strict=True)] for serial in before}
    for serial, (down, up) in lost.items():
        expected = (down_db, up_db) if serial in behind else (0.0, 0.0)
        # Meters have their noise, members differ a little, and water makes light unsteady.
        assert down == pytest.approx(expected[0], abs=0.75), serial
        assert up == pytest.approx(expected[1], abs=0.9), serial
    assert len(set(behind)) == 8


@pytest.mark.parametrize("vendor", [key for key, d in load_definitions().items() if d.onu_indexes])
def test_whatever_a_vendor_offers_of_its_onus_is_known_after_the_ready_made_jobs(vendor: str) -> None:
    definition = load_definitions()[vendor]

    async def scene(bench: Bench) -> None:
        world = bench.simulated.world
        down, up, *_ = world.onus
        for onu in (down, up):
            world.take_down(onu, DownCause.DYING_GASP)
        world.bring_up(up)
        for job in definition.jobs:
            await bench.collect(job.query_type, job.columns)

    on_bench(scene, vendor=vendor)

    # A hardware address in the column of the serials is reported by EPON cards alone.
    offered = {key for key, column in definition.columns.items() if not (key == "onu.mac" and column.shares)}
    for model, columns in ((Onu, ONU_COLUMNS), (OnuReading, READING_COLUMNS)):
        for column in columns:
            values = set(model.objects.values_list(column.name, flat=True))
            assert (column.key in offered) == bool(values - {None, ""}), column.key


@pytest.mark.parametrize("slug", ["estado", "potencia"])
@pytest.mark.parametrize("vendor", [key for key, d in load_definitions().items() if d.onu_indexes])
def test_whoever_is_found_down_is_found_down_with_its_cause(vendor: str, slug: str) -> None:
    """In the same run, also when it is the light that was asked for."""

    async def scene(bench: Bench) -> None:
        await bench.discover()
        bench.simulated.world.take_down(next(iter(bench.simulated.world.onus)), DownCause.LOS)
        job = load_definitions()[vendor].job(slug)

        await bench.collect(job.query_type, job.columns, now=NOW + timedelta(minutes=5))

    on_bench(scene, vendor=vendor)

    event = OnuEvent.objects.get()
    column = load_definitions()[vendor].columns.get("onu.last_down_cause")
    # An OLT on which no ONU shows another cause may not tell them apart.
    is_reported = column and DownCause.LOS in column.rule.words.values() and not column.row_rule.shown_with
    cause = "los" if is_reported else "unknown"
    assert (event.kind, event.cause, event.onu.reading.last_down_cause) == ("down", cause, cause)


def test_light_is_asked_of_online_onus_only_all_columns_at_once() -> None:
    """S0-04: batches run inside the claim."""

    async def scene(bench: Bench) -> None:
        await bench.discover()
        for onu in list(bench.simulated.world.onus)[:10]:
            bench.simulated.world.take_down(onu, DownCause.DYING_GASP)
        await bench.collect(QueryType.GET, OPTICS)
        bench.simulated.reset_counters()

        collected = await bench.collect(QueryType.GET, OPTICS)

        assert collected.summary["onus"] == 30
        ports = {onu.place.pon for onu in bench.simulated.world.onus}
        states = 1 + 40 // load_definitions()["huawei_smartax"].polling.max_repetitions
        assert bench.simulated.counters.requests <= states + 1 + 2 * len(ports)

    on_bench(scene)

    assert OnuReading.objects.exclude(rx_power_cdbm=None).count() == 30
    assert OnuReading.objects.filter(run_state="offline").count() == 10


@pytest.mark.parametrize("in_flight", [None, 1, 2])
def test_no_more_requests_are_in_flight_than_the_olt_takes(in_flight: int | None) -> None:
    """D16: as many as the operator says for it, else as the vendor definition does; seen at the device."""
    by_definition = load_definitions()["huawei_smartax"].polling.in_flight

    async def scene(bench: Bench) -> None:
        await bench.discover()
        limit = Olt.objects.filter(id=bench.olt.id)
        await bench.collector.devices.database.run(limit.update, max_in_flight=in_flight)
        await bench.collect(QueryType.GET, OPTICS)
        assert bench.simulated.counters.max_in_flight == (in_flight or by_definition)

    on_bench(scene, onus=400, latency_ms=20)


def test_packets_are_paced_as_the_olt_takes_them() -> None:
    """D16: so many a second at most, if the operator says so; as they arrive at the device."""
    # So slow that a busy machine, which sends few packets in any case, is not taken for a patient one.
    packets_per_second = 2

    async def scene(bench: Bench) -> None:
        await bench.discover()
        limit = Olt.objects.filter(id=bench.olt.id)
        await bench.collector.devices.database.run(limit.update, max_in_flight=2, packets_per_second=packets_per_second)
        began_at = asyncio.get_running_loop().time()
        await bench.collect(QueryType.GET, OPTICS)
        seconds = asyncio.get_running_loop().time() - began_at
        packets = bench.simulated.counters.requests
        assert packets >= 5
        assert seconds >= (packets - 1) / packets_per_second

    on_bench(scene, onus=80)


def test_the_slices_of_a_light_pass_count_every_onu_once() -> None:
    """D22: they go on at the port where they stopped, and their figures add up."""

    async def scene(bench: Bench) -> None:
        await bench.discover()
        ports = {onu.place.pon for onu in bench.simulated.world.onus}
        slices = [await bench.collect(QueryType.GET, OPTICS, Yielding())]
        while slices[-1].cursor:
            slices.append(await bench.collect(QueryType.GET, OPTICS, Yielding(), cursor=slices[-1].cursor))
        assert len(slices) == len(ports) > 1
        assert sum(int(each.summary["onus"]) for each in slices) == 40

    on_bench(scene)

    assert OnuReading.objects.exclude(rx_power_cdbm=None).count() == 40


def test_finished_ports_of_a_long_pass_are_stored_while_it_goes_on() -> None:
    """States at once and all of them, light by port; together they are what one pass stores, without a gap."""
    lights: list[int] = []

    class Counting(HandingOver):
        async def hand_over(self, *rows: Rows) -> None:
            await super().hand_over(*rows)
            lights.append(await self.bench.collector.devices.database.run(lit().count))

    async def scene(bench: Bench) -> None:
        await bench.discover()
        ports = {onu.place.pon for onu in bench.simulated.world.onus}
        permit = Counting(bench, NOW)

        collected = await bench.collect(QueryType.GET, OPTICS, permit, now=NOW + timedelta(hours=1))

        assert len(permit.handed) == len(ports) - 1 > 1
        assert (collected.failure, collected.summary["onus"]) == (None, 100)
        assert [part.ports for part in permit.shown if part.ports_in_all] == list(range(len(ports)))
        states, *parts = [rows.table for handed in permit.handed for rows in handed if rows.table]
        assert len(states) == 100
        assert sum(map(len, parts)) < 100
        is_poll, *others = [rows.is_poll for handed in permit.handed for rows in handed]
        assert is_poll
        assert not any(others)

    def lit() -> QuerySet[OnuReading]:
        return OnuReading.objects.exclude(rx_power_cdbm=None)

    on_bench(scene, onus=100)

    assert lights == sorted(set(lights))
    assert lit().count() == 100
    for onu in Onu.objects.all():
        light = read_onu(onu.pk, Metric.RX_POWER, NOW, NOW + timedelta(hours=2), Resolution.SAMPLES)
        assert len(light.at) == 1
        assert not np.isnan(light.average).any()


def test_a_pass_that_breaks_off_keeps_what_it_handed_over() -> None:
    """No ONU is absent for it, and the sizes that worked are known to the next try."""

    async def scene(bench: Bench) -> None:
        await bench.discover()
        permit = HandingOver(bench, NOW)

        def hand_over_once() -> bool:
            if permit.handed:
                raise ZeroDivisionError
            return True

        permit.wants_rows = hand_over_once  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            await bench.collect(QueryType.GET, OPTICS, permit)

    on_bench(scene, onus=100)

    assert 0 < OnuReading.objects.exclude(rx_power_cdbm=None).count() < 100
    assert Onu.objects.filter(is_present=True, misses=0).count() == 100
    assert LearnedSize.objects.filter(subject__startswith="get ").exists()


def test_an_olt_with_no_onus_is_asked_nothing_for_light() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.GET, OPTICS)
        assert (collected.failure, collected.was_heard, collected.is_empty) == (None, False, True)
        assert bench.simulated.counters.requests == 0
        assert not (await bench.collect(QueryType.DISCOVERY, ["onu.serial"])).is_empty

    on_bench(scene, onus=0)


def test_the_size_that_worked_is_remembered_and_used_again() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect(QueryType.DISCOVERY, ["onu.serial"])
        first = bench.simulated.counters.requests
        bench.simulated.reset_counters()

        await bench.collect(QueryType.DISCOVERY, ["onu.serial"])

        assert bench.simulated.counters.requests < first

    on_bench(scene, faults=Faults(too_big_above=700))

    learned = LearnedSize.objects.get()
    assert learned.subject == "walk onu.serial"
    assert 1 <= learned.rows < load_definitions()["huawei_smartax"].polling.max_repetitions


def test_first_light_of_an_agent_that_drops_large_answers_asks_little_more_than_the_next() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()

        await bench.collect(QueryType.GET, OPTICS)
        first = bench.simulated.counters.requests
        bench.simulated.reset_counters()
        await bench.collect(QueryType.GET, OPTICS)

        assert first <= 3 * bench.simulated.counters.requests

    on_bench(scene, onus=64, timeout=1.0, faults=Faults(lost_above=484))


@pytest.mark.parametrize("vendor", ["cdata_gpon", "cdata_epon", "hsgq_epon"])
def test_first_light_that_has_to_be_walked_begins_with_few_rows(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be asked for by ONU, and what an agent leaves unanswered costs a long time-out."""
    family, first_pages = load_definitions()[vendor], list[int | None]()

    async def walk_and_note(session: Session, oids: Sequence[Oid], options: WalkOptions) -> WalkResult:
        first_pages.append(options.first_repetitions)
        return await walk_columns(session, oids, options)

    async def scene(bench: Bench) -> None:
        await bench.discover()
        monkeypatch.setattr("facho.snmp_get.reading.walk_columns", walk_and_note)
        await bench.collect(QueryType.GET, family.job("potencia").columns)

    on_bench(scene, vendor=vendor)

    assert first_pages[-1] == FIRST_LIVE_ONUS


def test_a_packet_holds_no_more_values_than_a_page_of_the_familys_walks() -> None:
    family = load_definitions()["zte_c300_c320"]
    light = family.job("potencia").columns
    assert len(light) > family.polling.max_varbinds

    async def scene(bench: Bench) -> None:
        await bench.discover()
        # It begins with few and doubles.
        for _ in range(2):
            await bench.collect(QueryType.GET, light)

    on_bench(scene, vendor=family.key, onus=80)

    most = family.polling.max_repetitions * family.polling.max_varbinds
    learned = LearnedSize.objects.get(subject__startswith="get ")
    assert most - len(light) < learned.rows * len(light) <= most


def test_a_lost_claim_stops_the_walk_and_its_rows_are_no_absence() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        collected = await bench.collect(QueryType.DISCOVERY, ["onu.serial"], Spent(1))
        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.CANCELLED
        assert bench.simulated.counters.requests == 1

    on_bench(scene)

    assert Onu.objects.filter(is_present=True, misses=0).count() == 40


def test_a_silent_olt_is_a_timeout_that_was_not_heard() -> None:
    """S3-27: every call has a time-out."""

    async def scene(bench: Bench) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            collected = await bench.collect(QueryType.WALK, ["onu.run_state"])
        assert collected.failure is not None
        assert (collected.failure.kind, collected.was_heard) == (FailureKind.TIMEOUT, False)

    on_bench(scene, timeout=0.02, faults=Faults(is_silent=True))


def test_what_cannot_be_asked_fails_with_a_reason_before_any_packet() -> None:
    async def scene(bench: Bench) -> None:
        unknown = await bench.collect(QueryType.WALK, ["onu.horoscope"])
        assert unknown.failure is not None
        assert "onu.horoscope" in unknown.failure.message
        bench.olt.vendor = "acme"
        strange = await bench.collect(QueryType.WALK, ["onu.run_state"])
        assert strange.failure is not None
        assert "acme" in strange.failure.message
        assert bench.simulated.counters.requests == 0

    on_bench(scene)


def test_a_secret_of_another_installation_fails_as_authentication(settings: Any) -> None:
    async def scene(bench: Bench) -> None:
        settings.FACHO_ENCRYPTION_KEYS = ("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",)
        collected = await bench.collect(QueryType.WALK, ["onu.run_state"])
        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.AUTH

    on_bench(scene)


def test_impossible_values_are_rejected_and_counted() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        column = load_definitions()["huawei_smartax"].column("onu.rx_power")
        assert column.decode(2, -8000).reason == "out_of_range"
        for onu in bench.simulated.world.onus:
            onu.rx_dbm = 40.0

        collected = await bench.collect(QueryType.GET, OPTICS)

        assert collected.summary.get("out_of_range") == 40

    on_bench(scene)

    assert not OnuReading.objects.exclude(rx_power_cdbm=None).exists()


def test_a_wrong_community_is_silence() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collector.devices.database.run(give_secrets, community="wrong")
        collected = await bench.collect(QueryType.WALK, ["onu.run_state"])
        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.TIMEOUT
        assert bench.simulated.counters.wrong_community > 0

    on_bench(scene, timeout=0.02)

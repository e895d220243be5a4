"""ONUs that wait at simulated OLTs are listed over real UDP, and gone once they are authorised."""

from datetime import timedelta

import pytest

from facho.hosts.models import WaitingOnu
from facho.polling.domain.execution_state import QueryType
from facho.polling.vendors.loader import load_definitions
from facho.simulator.readings import hardware_address
from facho.snmp_get.olt_values import SERIAL
from factories import NOW
from snmp_get.olt_bench import Bench, Spent, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

FAMILIES = [key for key, definition in load_definitions().items() if definition.has_column(SERIAL)]
LATER = NOW + timedelta(seconds=300)


@pytest.mark.parametrize("vendor", FAMILIES)
def test_who_waits_is_listed_by_serial_and_port_and_since_when(vendor: str) -> None:
    job = load_definitions()[vendor].job("por_autorizar")
    # ONUs of EPON have no serial.
    is_address = load_definitions()[vendor].column(SERIAL).rule.decoder.name == "mac"
    name = hardware_address if is_address else str

    async def scene(bench: Bench) -> None:
        for now in (NOW, LATER):
            collected = await bench.collect(job.query_type, job.columns, now=now)
            assert (collected.failure, collected.summary["waiting_onus"]) == (None, 3)
        waiting.extend((name(onu.serial), onu.place[:3]) for onu in bench.simulated.waiting)

    waiting: list[tuple[str, tuple[int, ...]]] = []
    on_bench(scene, vendor=vendor, waiting=3)

    listed = WaitingOnu.objects.all()
    assert sorted((row.serial, (row.frame, row.slot, row.port)) for row in listed) == sorted(waiting)
    assert set(listed.values_list("first_seen_at", "last_seen_at")) == {(NOW, LATER)}
    has_model = load_definitions()[vendor].has_column("autofind.model")
    assert all(bool(row.model) == has_model for row in listed)


def test_whoever_is_authorised_waits_no_longer() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect(QueryType.TABLE, [SERIAL])
        first, _ = bench.simulated.waiting
        bench.simulated.authorise(first.serial)
        await bench.collect(QueryType.TABLE, [SERIAL], Spent(0))
        listed.append(await bench.collector.devices.database.run(WaitingOnu.objects.count))
        await bench.collect(QueryType.TABLE, [SERIAL])
        left.extend(onu.serial for onu in bench.simulated.waiting)

    listed: list[int] = []
    left: list[str] = []
    on_bench(scene, waiting=2)

    assert listed == [2]  # a walk that broke takes nobody off the list
    assert [row.serial for row in WaitingOnu.objects.all()] == left


def test_rows_without_a_serial_or_a_place_are_counted_and_left_out() -> None:
    async def scene(bench: Bench) -> None:
        odd, far, _ = bench.simulated.waiting
        odd.serial = ""
        far.place = far.place._replace(slot=200_000)

        collected = await bench.collect(QueryType.TABLE, ["autofind.slot", "autofind.port", SERIAL])

        assert (collected.summary["waiting_onus"], collected.summary["refused_rows"]) == (1, 2)

    on_bench(scene, vendor="fiberhome_an5516", waiting=3)

    assert WaitingOnu.objects.count() == 1


def test_who_has_no_serial_is_listed_by_its_hardware_address() -> None:
    """An EPON card of FiberHome tells the address in octets."""

    async def scene(bench: Bench) -> None:
        [onu] = bench.simulated.waiting
        onu.serial = "\x02\x00\x0a\x1b\x2c\x3d"
        collected = await bench.collect(QueryType.TABLE, [SERIAL])
        assert (collected.summary["waiting_onus"], collected.summary["refused_rows"]) == (1, 0)

    on_bench(scene, vendor="fiberhome_an5516", waiting=1)

    assert WaitingOnu.objects.get().serial == "02:00:0A:1B:2C:3D"

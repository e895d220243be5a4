"""Every family with each value that means "no reading": such a value is stored as none, and others as they are."""

import pytest

from facho.onus.models import OnuReading
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Reject
from facho.simulator.readings import read_optics
from facho.simulator.world import SimulatedOnu
from snmp_get.closed_views import FAMILIES, identity_keys, stored_place
from snmp_get.olt_bench import Bench, on_bench

# Every second ONU is measured; the others send the sentinels in turn, of which no column has more.
SENTINELS = 6
ONUS = 2 * SENTINELS
FIELDS = {
    "onu.distance": "distance_m",
    "onu.rx_power": "rx_power_cdbm",
    "onu.tx_power": "tx_power_cdbm",
    "onu.olt_rx_power": "olt_rx_power_cdbm",
    "onu.temperature": "temperature_tenths",
    "onu.voltage": "voltage_mv",
    "onu.bias": "bias_ua",
}
PLACE = ("onu__pon_port__frame", "onu__pon_port__slot", "onu__pon_port__port", "onu__onu_id")
# Tenths of a microwatt tell weak light coarsely.
LIGHT_STEP_CDBM = 60

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("is_closed", [False, True], ids=["with-serials", "serials-closed"])
@pytest.mark.parametrize("key", FAMILIES)
def test_a_sentinel_is_no_reading_and_no_fault(key: str, is_closed: bool) -> None:
    family, onus = load_definitions()[key], list[SimulatedOnu]()

    async def scene(bench: Bench) -> None:
        onus.extend(bench.simulated.world.onus)
        for at, onu in enumerate(onus[::2]):
            bench.simulated.world.stop_measuring(onu, at)
        bench.simulated.close_columns(identity_keys(family) if is_closed else ())
        for job in family.jobs:
            if job.slug not in ("descubrimiento", "descripcion", "estado", "potencia"):
                continue
            collected = await bench.collect(job.query_type, job.columns)
            assert collected.failure is None, job.slug
            assert not set(collected.summary) & set(Reject), job.slug

    on_bench(scene, vendor=key, onus=ONUS)

    read = {tuple(row[part] for part in PLACE): row for row in OnuReading.objects.values(*PLACE, *FIELDS.values())}
    assert len(read) == ONUS
    for at, onu in enumerate(onus):
        row, optics = read[stored_place(family, onu)], read_optics(onu, at=0.0)
        has_reading = at % 2 == 1
        reported = {column for column, field in FIELDS.items() if row[field] is not None}
        assert reported == stored_columns(family, has_reading=has_reading), (onu.place, onu.sentinel)
        if has_reading:
            assert row["rx_power_cdbm"] == pytest.approx(optics.rx_dbm * 100, abs=LIGHT_STEP_CDBM)
            assert row["distance_m"] in (None, onu.distance_m)


def stored_columns(family: Definition, *, has_reading: bool) -> set[str]:
    """Return which values an ONU has; a column without sentinels always has one."""
    known = [family.column(key) for key in FIELDS if family.has_column(key)]
    return {column.key for column in known if has_reading or not column.rule.sentinels}


def test_no_column_has_more_sentinels_than_are_played() -> None:
    measured = [
        family.column(key) for family in load_definitions().values() for key in FIELDS if family.has_column(key)
    ]

    assert max(len(column.rule.sentinels) for column in measured) <= SENTINELS

"""The past of the demo: what it contains, that it continues into the first polls, and that it is written once."""

from datetime import timedelta

import numpy as np
import pytest

from facho.alerts.models import Alert, AlertState
from facho.core.cli import demo_data
from facho.core.cli.demo_data import DemoOlt, save_olts
from facho.core.processes.simulator import demo_config
from facho.hosts.models import Olt
from facho.onus.history import Resolution, read_onu
from facho.onus.history_models import HistorySamples, Metric
from facho.onus.models import Onu, OnuCustomer, OnuEvent, OnuReading, Outage
from facho.plant.days import judge_days
from facho.plant.models import Box, FindingKinds, LightFinding, OnuMonth, Zone
from facho.plant.months import compute_month, zone
from facho.plant.watch import SETTLED, LightWatcher
from facho.polling.domain.availability import Month
from facho.polling.domain.onu_state import WEAKEST_CDBM
from facho.simulator.plant import PlantFault
from facho.simulator.readings import read_optics
from facho.simulator.server import build_world, choose_definitions
from facho.simulator.story import (
    DECAY_DB_PER_DAY,
    PAST_DAYS,
    PLANT_FAULTS,
    POWER_CUT_AT,
    light_of,
    past_faults,
)
from facho.simulator.world import JournalKind
from factories import NOW

pytestmark = pytest.mark.django_db

OLTS, ONUS = 6, 160


@pytest.fixture
def worlds() -> list[demo_data.DemoWorld]:
    definitions = choose_definitions("mixed")
    lines = [DemoOlt(f"olt-{n + 1:03d}", "127.0.0.1", 20_000 + n, definitions[n].key, "public") for n in range(OLTS)]
    save_olts(lines, now=NOW)
    return demo_data.new_worlds(OLTS, ONUS)


@pytest.fixture
def seeded(worlds: list[demo_data.DemoWorld]) -> list[demo_data.DemoWorld]:
    demo_data.save_inventory(worlds, now=NOW)
    demo_data.save_history(worlds, now=NOW)
    return worlds


def test_every_olt_has_its_onus_with_customers_from_the_start(seeded: list[demo_data.DemoWorld]) -> None:
    assert Onu.objects.count() == OnuReading.objects.count() == OLTS * ONUS
    assert OnuCustomer.objects.exclude(address="").exclude(phone="").count() > 0.8 * OLTS * ONUS
    assert not Olt.objects.filter(discovered_at__isnull=True).exists()


def test_some_are_weak_some_flap_and_one_alert_waits(seeded: list[demo_data.DemoWorld]) -> None:
    weak = OnuReading.objects.filter(rx_power_cdbm__lt=WEAKEST_CDBM)

    assert weak.count() >= OLTS
    assert any(reading.is_flapping for reading in OnuReading.objects.all())
    assert OnuEvent.objects.filter(kind="flapping").exists()
    alert = Alert.objects.get()
    assert (alert.state, alert.acknowledged_at) == (AlertState.FIRING, None)
    assert alert.facts["dbm"] * 100 == weak.order_by("rx_power_cdbm")[0].rx_power_cdbm


def test_a_power_cut_and_fibre_cuts_are_over(seeded: list[demo_data.DemoWorld]) -> None:
    outages = Outage.objects.all()

    assert {outage.cause for outage in outages} == {"power", "fibre"}
    assert all(outage.ended_at and outage.started_at < outage.ended_at < NOW for outage in outages)


def test_light_of_thirty_days_ends_in_what_is_read_now(seeded: list[demo_data.DemoWorld]) -> None:
    onu = Onu.objects.filter(reading__run_state="online", olt__name="olt-003").select_related("reading")[20]

    series = read_onu(onu.id, Metric.RX_POWER, NOW - timedelta(days=31), NOW, Resolution.SAMPLES)

    known = series.average[~np.isnan(series.average)]
    assert len(known) > 0.95 * PAST_DAYS * 48
    assert onu.reading.rx_power_dbm is not None
    assert abs(known[-1] - onu.reading.rx_power_dbm) < 1.0


def test_decaying_light_was_stronger_a_month_ago(seeded: list[demo_data.DemoWorld]) -> None:
    fading = next(onu for onu in seeded[0].world.onus if onu.fade_db_per_day == DECAY_DB_PER_DAY and onu.is_online)
    row = Onu.objects.get(serial=fading.serial)

    days = read_onu(row.id, Metric.RX_POWER, NOW - timedelta(days=30), NOW, Resolution.DAYS)

    assert days.average[0] - days.average[-1] == pytest.approx(DECAY_DB_PER_DAY * PAST_DAYS, abs=1.0)


def test_the_plant_of_the_demo_has_faults_that_the_rules_find_at_once(seeded: list[demo_data.DemoWorld]) -> None:
    watcher, later = LightWatcher(), NOW + SETTLED
    while watcher.look(later) or judge_days(later):
        pass

    kinds = set(LightFinding.objects.filter(ended_at=None).values_list("kind", flat=True))
    assert kinds >= {
        FindingKinds.COMMON_STEP,
        FindingKinds.BRANCH_DECAY,
        FindingKinds.DECAY,
        FindingKinds.SENDER,
    }
    # A loose connector is one or the other, by how many of its drops are as long as two readings.
    assert kinds & {FindingKinds.FLAPPING, FindingKinds.NOISE}
    reported = {kind: (size, until) for kind, size, _since, until, _most in PLANT_FAULTS}
    bent = LightFinding.objects.filter(kind=FindingKinds.COMMON_STEP)[0]
    assert (bent.size_db, bent.hint) == (pytest.approx(-reported[PlantFault.BRANCH_STEP][0], abs=0.3), "bend")
    repaired = compute_month(Month.of(NOW - timedelta(days=reported[PlantFault.ONU_STEP][1] - 4), zone()), NOW)
    assert repaired.finished_at
    assert OnuMonth.objects.filter(rise_on__isnull=False).exists()


def test_a_fault_of_the_plant_is_read_as_its_past_was(worlds: list[demo_data.DemoWorld]) -> None:
    hurt = [onu for onu in worlds[0].world.onus if onu.plant_faults and onu.is_online]
    assert len(hurt) > 8

    assert light_of(hurt, np.zeros(1))[:, 0].tolist() == [read_optics(onu, at=0.0).rx_dbm for onu in hurt]


def test_who_was_out_has_a_gap_and_a_state(seeded: list[demo_data.DemoWorld]) -> None:
    fault = next(fault for fault in past_faults(seeded[0].world, 0) if fault.place)
    row = Onu.objects.get(serial=fault.onus[0].serial)
    during = NOW + timedelta(seconds=fault.began_at), NOW + timedelta(seconds=fault.ended_at)

    light = read_onu(row.id, Metric.RX_POWER, *during, Resolution.SAMPLES)
    state = read_onu(row.id, Metric.STATE, *during, Resolution.SAMPLES)

    assert np.isnan(light.average).all()
    assert set(state.average) == {2.0}


def test_a_second_start_writes_nothing_again(seeded: list[demo_data.DemoWorld]) -> None:
    blocks = HistorySamples.objects.count()

    again = demo_data.new_worlds(OLTS, ONUS)

    assert again == []
    assert HistorySamples.objects.count() == blocks


def test_light_of_many_is_that_of_each() -> None:
    [definition, *_] = choose_definitions("mixed")
    world = build_world("olt-001", demo_config(1, 64), definition, 0)
    onus, moments = list(world.onus), np.array([-90_000.0, -61.0, 0.0, 7_200.0])

    light = light_of(onus, moments)

    assert light.tolist() == [[read_optics(onu, at=at).rx_dbm for at in moments] for onu in onus]


def test_a_street_loses_its_power_after_minutes() -> None:
    definition = choose_definitions("mixed")[1]
    world = build_world("olt-002", demo_config(2, 160), definition, 1)

    world.advance(POWER_CUT_AT + 1)

    assert JournalKind.POWER_LOST in {entry.kind for entry in world.journal}


def test_the_demo_has_a_plant_with_every_onu_on_a_box_and_every_customer_somewhere(
    seeded: list[demo_data.DemoWorld],
) -> None:
    assert Zone.objects.filter(latitude__isnull=False).count() == OLTS
    assert not Box.objects.filter(latitude__isnull=True).exists()
    assert not Onu.objects.filter(attachment__isnull=True).exists()
    assert not OnuCustomer.objects.filter(latitude__isnull=True).exists()
    assert Box.objects.filter(kind="cto", parent__isnull=True).count() == 0

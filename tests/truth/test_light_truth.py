"""A fault of the plant of a simulated OLT, polled over SNMP by the engine, is what the light is found to show."""

from datetime import timedelta

import numpy as np
import pytest

from facho.onus.models import OnuEvent, PonPort
from facho.plant.models import FindingKinds, LightFinding, LightHints, OnuBox
from facho.plant.store import fold_steps, load_step_folds
from facho.plant.watch import SETTLED, LightWatcher
from facho.simulator.plant import PlantFault, TrueFault
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL, Chassis, OltWorld, SimulatedOnu
from truth.polled_fleet import EPOCH, INTERVAL, Fleet, polled

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CONFIG = SimulatorConfig(vendor="huawei_smartax", onus=40, offline_share=0.0, life=STILL, chassis=Chassis(1, 4, 2))
# What is normal for an ONU is the last hour.
HOUR = timedelta(hours=1) // INTERVAL
LOST_DB = 3.6


def bend_a_branch(world: OltWorld, *, since: float, until: float) -> tuple[list[SimulatedOnu], list[SimulatedOnu]]:
    """Bend the fibre to the largest street of a port; return its ONUs, and the others of the port."""
    streets: dict[tuple[object, int], list[SimulatedOnu]] = {}
    for onu in world.onus:
        # Of chance alone some lose decibels a day, and a street lies all over the town.
        onu.fade_db_per_day, onu.distance_m = 0.0, 1_000 + 400 * onu.street + 5 * onu.place.onu
        # The agent has answers ready; this is what renews them.
        world.dim(onu, 0.0)
        streets.setdefault((onu.place.pon, onu.street), []).append(onu)
    hit = max(streets.values(), key=len)
    fault = TrueFault(PlantFault.BRANCH_STEP, since, until, np.ones(len(hit), dtype=bool), LOST_DB, upstream=0.5)
    for number, onu in enumerate(hit):
        onu.plant_faults.append((fault, number))
    return hit, [onu for onu in world.onus if onu.place.pon == hit[0].place.pon and onu not in hit]


def watch(watcher: LightWatcher, fleet: Fleet) -> None:
    while watcher.look(fleet.now + SETTLED):
        pass


def test_a_bent_branch_is_found_with_the_second_poll_after_it_and_its_repair_too() -> None:
    with polled(CONFIG) as fleet:
        [simulated] = fleet.olts
        polls = HOUR + 4
        bent_at = (polls * INTERVAL).total_seconds() - 60
        repaired_at = bent_at + (6 * INTERVAL).total_seconds()
        hit, spared = bend_a_branch(simulated.world, since=bent_at, until=repaired_at)
        watcher = LightWatcher()
        fleet.poll(polls - 1)
        watch(watcher, fleet)
        assert not LightFinding.objects.exists()

        fleet.poll(2)
        watch(watcher, fleet)

        finding = LightFinding.objects.get()
        first_poll = EPOCH + polls * INTERVAL
        assert finding.kind == FindingKinds.COMMON_STEP
        assert finding.pon_port == PonPort.objects.get(onus__serial=hit[0].serial)
        assert first_poll <= finding.since < first_poll + INTERVAL
        assert finding.size_db == pytest.approx(-LOST_DB, abs=0.3)
        assert finding.hint == LightHints.BEND
        serials = {
            is_hit: {each.onu.serial for each in finding.members.filter(is_hit=is_hit).select_related("onu")}
            for is_hit in (True, False)
        }
        assert serials == {True: {onu.serial for onu in hit}, False: {onu.serial for onu in spared}}
        boxes = dict(OnuBox.objects.values_list("onu__serial", "number"))
        assert len({boxes[onu.serial] for onu in hit}) == 1
        assert boxes[hit[0].serial] not in {boxes[onu.serial] for onu in spared}
        drops = OnuEvent.objects.filter(kind="power_drop")
        assert drops.count() == len(hit)
        assert fold_steps(drops, load_step_folds(LightFinding.objects.all(), None, 10)).count() == 1

        fleet.poll(6)
        watch(watcher, fleet)
        finding.refresh_from_db()
        assert LightFinding.objects.count() == 1
        assert finding.ended_at is not None
        assert finding.ended_at - finding.since == 6 * INTERVAL

"""The simulated plant does what each of its faults says, at any time and the same again from one seed."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from facho.simulator.plant import (
    CONNECTOR_SECONDS,
    DAY_SECONDS,
    OWN_SHARE,
    WATER_NOISE_DB,
    FaultRates,
    Layout,
    PlantFault,
    PlantPort,
    TrueFault,
    Weather,
)

CALM = FaultRates(*[0.0] * 9)
# The rules of light are tuned on such seeds, never on those that they are judged by.
SEED = 77


def draw(*, days: int = 90, rates: FaultRates = CALM, seed: int = SEED) -> PlantPort:
    return PlantPort.draw(np.random.default_rng(seed), days=days, rates=rates)


def hourly(days: int, onus: int) -> NDArray[np.float64]:
    return np.tile(np.arange(days * 24) * 3600.0, (onus, 1))


def lost(port: PlantPort, fault: TrueFault, days: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a fault alone takes from both directions, by the hour."""
    at = hourly(days, len(port.layout.box))
    before, after = (replace(port, faults=faults).light(at) for faults in ((), (fault,)))
    return before[0] - after[0], before[1] - after[1]


def fault_of(port: PlantPort, kind: PlantFault, size: float, *, onus: int, upstream: float = 1.0) -> TrueFault:
    members = np.arange(len(port.layout.box)) < onus
    return TrueFault(kind, 2.0 * DAY_SECONDS, 12.0 * DAY_SECONDS, members, size, upstream, salt=5)


def test_a_tree_is_the_port_its_streets_and_its_boxes() -> None:
    layout = draw().layout

    first, *branches = layout.branches
    boxes = branches[-int(layout.box.max()) - 1 :]

    assert first.all()
    assert (np.sum(boxes, axis=0) == 1).all()
    assert all(len(set(layout.box[box])) == 1 for box in boxes)
    assert all((layout.distance_m[box].max() - layout.distance_m[box].min()) < 500 for box in boxes)


def test_light_is_what_fibre_and_splitters_leave() -> None:
    port = draw()
    down, up = port.light(np.zeros((len(port.layout.box), 1)))

    assert ((down > -30) & (down < -10)).all()
    assert np.corrcoef(down[:, 0], -port.layout.loss_db)[0, 1] > 0.95
    assert np.isfinite(up).all()


def test_temperature_moves_light_by_some_tenths_of_a_db_within_a_day() -> None:
    port = draw()

    down, _ = port.light(hourly(30, len(port.layout.box)))

    swing = np.ptp(down.reshape(len(down), 30, 24), axis=2).mean()
    assert 0.02 < swing < 0.6


def test_a_warm_day_is_the_same_for_all_who_ask() -> None:
    weather = Weather.draw(np.random.default_rng(SEED), 30)
    at = np.arange(30 * 24) * 3600.0

    assert np.array_equal(weather.degrees(at), weather.degrees(at[::-1])[::-1])
    assert 8 < np.ptp(weather.degrees(at)) < 45


def test_ageing_takes_the_same_again_each_day() -> None:
    port = draw()

    down, up = lost(port, fault_of(port, PlantFault.AGEING, 0.1, onus=1), 12)

    assert down[0, 7 * 24] == pytest.approx(0.5, rel=OWN_SHARE + 0.01)
    assert down[0, 11 * 24] == pytest.approx(0.9, rel=OWN_SHARE + 0.01)
    assert up[0] == pytest.approx(down[0])
    assert not down[1:].any()


def test_an_ageing_laser_takes_only_what_the_olt_receives() -> None:
    port = draw()

    down, up = lost(port, fault_of(port, PlantFault.WEAK_LASER, 0.1, onus=1), 12)

    assert not down.any()
    assert up[0, 7 * 24] == pytest.approx(0.5, rel=OWN_SHARE + 0.01)


def test_a_bend_takes_the_same_at_once_from_a_branch_and_less_upstream() -> None:
    port = draw()

    down, up = lost(port, fault_of(port, PlantFault.BRANCH_STEP, 3.0, onus=4, upstream=0.5), 12)

    assert not down[:, : 2 * 24].any()
    assert down[:4, 3 * 24] == pytest.approx(np.full(4, 3.0), rel=OWN_SHARE + 0.01)
    assert up[:4, 3 * 24] == pytest.approx(down[:4, 3 * 24] / 2)
    assert not down[4:].any()


def test_water_in_a_box_takes_more_each_day_and_makes_light_unsteady() -> None:
    port = draw()

    down, _ = lost(port, fault_of(port, PlantFault.WATER, 0.2, onus=4), 12)

    days = down[:4].reshape(4, 12, 24)
    assert days[:, 11].mean() - days[:, 6].mean() == pytest.approx(1.0, abs=0.15)
    assert np.ptp(days[:, 11], axis=1).max() > WATER_NOISE_DB / 2
    assert not down[4:].any()


def test_a_bad_connector_jumps_between_two_levels() -> None:
    port = draw()

    down, _ = lost(port, fault_of(port, PlantFault.BAD_CONNECTOR, 2.0, onus=1), 12)

    during = down[0, 2 * 24 :]
    assert set(np.round(during, 6)) == {0.0, 2.0}
    assert np.count_nonzero(np.diff(during)) > 10
    assert CONNECTOR_SECONDS < 3600


def test_a_visit_repairs_what_was_broken() -> None:
    port = draw()
    kinds = (PlantFault.AGEING, PlantFault.WATER, PlantFault.BRANCH_STEP, PlantFault.BAD_CONNECTOR)

    for kind in kinds:
        down, up = lost(port, fault_of(port, kind, 1.0, onus=3), 20)
        assert down[:3, 2 * 24 : 12 * 24].any()
        assert not down[:, 12 * 24 :].any()
        assert not up[:, 12 * 24 :].any()


def test_a_cut_leaves_its_branch_without_light_and_a_power_cut_part_of_it() -> None:
    port = draw()
    cut = fault_of(port, PlantFault.CUT, 0.0, onus=4)
    at = hourly(20, len(port.layout.box))

    dark = replace(port, faults=(cut,)).without((PlantFault.CUT,), at)

    assert dark[:4, 2 * 24 : 12 * 24].all()
    assert dark.sum() == 4 * 10 * 24
    assert not replace(port, faults=(cut,)).without((PlantFault.POWER_CUT,), at).any()


def test_faults_come_as_often_as_their_rates_and_hit_whom_they_can() -> None:
    rates = FaultRates()
    ports = [draw(rates=rates, seed=SEED + number) for number in range(60)]

    faults = [(port.layout, fault) for port in ports for fault in port.faults]

    counted = {kind: sum(fault.kind is kind for _, fault in faults) / len(ports) for kind in PlantFault}
    assert counted[PlantFault.BRANCH_STEP] == pytest.approx(rates.branch_steps, rel=0.3)
    assert counted[PlantFault.ONU_STEP] == pytest.approx(rates.onu_steps, rel=0.3)
    assert counted[PlantFault.CUT] == pytest.approx(rates.cuts, rel=0.3)
    assert all(_is_branch(layout, fault) for layout, fault in faults if fault.kind is PlantFault.BRANCH_STEP)
    assert all(fault.members.sum() == 1 for _, fault in faults if fault.kind is PlantFault.AGEING)


def _is_branch(layout: Layout, fault: TrueFault) -> bool:
    return any(np.array_equal(fault.members, branch) for branch in layout.branches)


def test_a_seed_gives_the_same_plant_again() -> None:
    one, other, third = draw(rates=FaultRates()), draw(rates=FaultRates()), draw(rates=FaultRates(), seed=SEED + 1)
    at = hourly(3, len(one.layout.box))

    assert np.array_equal(one.light(at)[0], other.light(at)[0])
    assert not np.array_equal(one.layout.distance_m, third.layout.distance_m)

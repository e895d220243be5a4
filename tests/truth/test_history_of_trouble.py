"""The history of an ONU through trouble: a sample for each poll that read it, a gap for each that could not."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from facho.executions.models import Execution
from facho.onus.compaction import CompactionLimits, compact
from facho.onus.history import Resolution, Series, read_onu
from facho.onus.history_models import STATE_CODES, Metric
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ExecutionState
from facho.simulator.agent import NO_FAULTS, Faults
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL, Chassis
from truth.polled_fleet import EPOCH, INTERVAL, polled

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CONFIG = SimulatorConfig(vendor="huawei_smartax", onus=24, offline_share=0.0, life=STILL, chassis=Chassis(1, 4, 2))
SILENT = Faults(is_silent=True)
LATER = timedelta(days=2)


def history(serial: str, metric: Metric) -> Series:
    onu = Onu.objects.get(serial=serial)
    return read_onu(onu.id, metric, EPOCH, EPOCH + LATER, Resolution.SAMPLES)


def samples(series: Series) -> list[int]:
    return series.at[np.isfinite(series.average)].tolist()


def gaps(series: Series) -> list[int]:
    return series.at[np.isnan(series.average)].tolist()


def polls(*task_types: str) -> list[int]:
    """Return when polls of these kinds ended well, each moment once."""
    runs = Execution.objects.filter(task_type__in=task_types, status=ExecutionState.SUCCESS)
    return sorted({int(run.finished_at.timestamp()) for run in runs if run.finished_at})


def seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def test_each_poll_is_one_sample_and_what_could_not_be_read_is_a_gap() -> None:
    with polled(CONFIG) as fleet:
        [simulated] = fleet.olts
        dark, *_, lit = simulated.world.onus
        fleet.poll(3)
        simulated.world.power_off(dark.place.pon, dark.street)
        fleet.poll(2)
        simulated.world.power_on(dark.place.pon, dark.street)
        fleet.poll(3)
        simulated.faults = SILENT
        fleet.poll(3)
        simulated.faults = NO_FAULTS
        fleet.poll(5)

        in_the_dark = [seconds(EPOCH + number * INTERVAL) for number in (4, 5)]
        before_silence, silence = seconds(EPOCH + 8 * INTERVAL), seconds(EPOCH + 9 * INTERVAL)
        for is_compact in (False, True):
            while is_compact and compact(EPOCH + LATER, CompactionLimits()):
                pass
            light, darkness = history(lit.serial, Metric.RX_POWER), history(dark.serial, Metric.RX_POWER)
            states = history(dark.serial, Metric.STATE)
            assert samples(light) == polls("get_potencia")
            assert before_silence in samples(light)
            assert gaps(light) == [silence]
            assert gaps(darkness) == [*in_the_dark, silence]
            assert samples(states) == polls("get_potencia", "walk_estado")
            offline = states.at[states.average == STATE_CODES["offline"]].tolist()
            assert offline == in_the_dark

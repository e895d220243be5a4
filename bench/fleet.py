"""Plays a fleet until it is told to stop, in a process: `python -m bench.fleet OLTS ONUS LATENCY_MS SPEED`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.processes import cpu_seconds, own_module, running
from facho.simulator.config import SimulatorConfig
from facho.simulator.life import NATURAL, STILL
from facho.simulator.run import run_simulator

VENDOR = "huawei_smartax"


@dataclass(frozen=True, slots=True)
class Fleet:
    """A running fleet by the ports of its OLTs."""

    ports: list[int]
    pid: int

    @property
    def cpu_seconds(self) -> float:
        """What it cost so far."""
        return cpu_seconds(self.pid)


@contextmanager
def running_fleet(*, olts: int, onus: int, latency_ms: float, speed: float = 0.0) -> Iterator[Fleet]:
    """Play the fleet until the block is left; without a speed nothing happens on it."""
    command = own_module("bench.fleet", str(olts), str(onus), str(latency_ms), str(speed))
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdout is None:
            raise RuntimeError("the fleet has no output")
        yield Fleet([int(process.stdout.readline().split()[2]) for _ in range(olts)], process.pid)


def _play(olts: str, onus: str, latency_ms: str, speed: str) -> int:
    config = SimulatorConfig(
        vendor=VENDOR,
        olts=int(olts),
        onus=int(onus),
        latency_ms=float(latency_ms),
        speed=float(speed) or 1.0,
        life=NATURAL if float(speed) else STILL,
    )
    return run_simulator(config, tells_counters=False)


if __name__ == "__main__":
    sys.exit(_play(*sys.argv[1:]))

"""Plays a fleet in a process of its own: `python -m bench.simulate OLTS ONUS LATENCY_MS` until it is told to stop."""

import sys

from facho.simulator.config import SimulatorConfig
from facho.simulator.life import STILL
from facho.simulator.run import run_simulator

VENDOR = "huawei_smartax"


def main(olts: str, onus: str, latency_ms: str) -> int:
    """Announce each OLT in a line on standard output, and serve."""
    return run_simulator(
        SimulatorConfig(vendor=VENDOR, olts=int(olts), onus=int(onus), latency_ms=float(latency_ms), life=STILL),
        tells_counters=True,
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

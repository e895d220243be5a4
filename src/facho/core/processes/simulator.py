"""The demo's simulated OLTs, in a process of their own."""

import sys
from dataclasses import replace

from facho.core.processes.supervisor import exit_with_parent
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatorConfig, run_simulator

# Slow enough that a visitor sees pollers at work, as real OLTs show them.
LATENCY_MS = 20.0
LIVE_ROW_SECONDS = 0.03
# In this world a fibre of the first OLT is cut after a minute and stays cut for a while: what a visitor comes to see.
SEED = 156_801


def main() -> int:
    """Run as a child of `facho demo`; the arguments are the numbers of OLTs, of ONUs on each, and the first port.

    A fourth one is the port of the receiver of notifications on this machine; without it none are sent.
    """
    exit_with_parent()
    olts, onus, port, *receiver = map(int, sys.argv[1:])
    config = replace(demo_config(olts, onus), port=port, traps=("127.0.0.1", receiver[0]) if receiver else None)
    return run_simulator(config, tells_counters=False)


def demo_config(olts: int, onus: int) -> SimulatorConfig:
    """Describe the worlds of the demo, which are simulated here and get their past from the parent."""
    faults = Faults(live_row_seconds=LIVE_ROW_SECONDS)
    return SimulatorConfig(olts=olts, onus=onus, latency_ms=LATENCY_MS, seed=SEED, faults=faults, has_story=True)


if __name__ == "__main__":
    sys.exit(main())

"""The demo's simulated OLTs, in a process of their own."""

import sys

from facho.core.processes.supervisor import exit_with_parent
from facho.simulator.config import SimulatorConfig
from facho.simulator.faults import Faults
from facho.simulator.server import run_simulator

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
    config = SimulatorConfig(
        olts=olts,
        onus=onus,
        port=port,
        latency_ms=LATENCY_MS,
        seed=SEED,
        faults=Faults(live_row_seconds=LIVE_ROW_SECONDS),
        traps=("127.0.0.1", receiver[0]) if receiver else None,
    )
    return run_simulator(config, tells_counters=False)


if __name__ == "__main__":
    sys.exit(main())

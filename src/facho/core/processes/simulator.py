"""The demo's simulated OLTs, in a process of their own."""

import sys

from facho.core.processes.parent import exit_with_parent
from facho.simulator.config import SimulatorConfig
from facho.simulator.run import run_simulator


def main() -> int:
    """Run as a child of `facho demo`; the arguments are the numbers of OLTs and of ONUs on each."""
    exit_with_parent()
    olts, onus = map(int, sys.argv[1:])
    return run_simulator(SimulatorConfig(olts=olts, onus=onus))


if __name__ == "__main__":
    sys.exit(main())

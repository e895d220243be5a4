"""Runs a simulation as a process: announces its OLTs, stops at a signal, tells what it counted."""

import asyncio
import gc
import json
import signal
import sys
from collections.abc import Callable

from facho.simulator.config import ConfigError, SimulatorConfig
from facho.simulator.server import Simulation


def run_simulator(config: SimulatorConfig, *, tells_counters: bool = True) -> int:
    """Simulate until SIGINT or SIGTERM, then tell what was counted; return the exit status of the command."""
    try:
        asyncio.run(serve(config, announce=_print_line, tells_counters=tells_counters))
    except ConfigError as error:
        sys.stderr.write(f"facho: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"facho: {error.strerror}\n")
        return 1
    return 0


async def serve(config: SimulatorConfig, *, announce: Callable[[str], None], tells_counters: bool = True) -> None:
    """Announce each OLT as `name host port vendor community` and serve until SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with Simulation.start(config) as simulation:
        # A fleet is hundreds of thousands of objects that stay: looking through them again and again would stall it.
        gc.freeze()
        loop.add_signal_handler(signal.SIGUSR1, _print_counters, simulation)
        for olt in simulation.olts:
            announce(olt.line)
        await stopped.wait()
        if tells_counters:
            _print_counters(simulation)


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_counters(simulation: Simulation) -> None:
    sys.stderr.write(json.dumps(simulation.counters_as_json()) + "\n")
    sys.stderr.flush()

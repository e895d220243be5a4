"""`facho simulate`: OLTs to try things on, of custom definitions too. Needs neither data folder nor database."""

import os
from argparse import Namespace

from facho.core.data_folder import DataFolder
from facho.core.env import read_environment
from facho.core.product import OperatorError
from facho.polling.vendors.loader import load_definitions, use_own_definitions
from facho.polling.vendors.schema import DefinitionError
from facho.simulator.config import ConfigError, SimulatorConfig
from facho.simulator.server import run_simulator


def simulate(arguments: Namespace) -> int:
    """Simulate until SIGINT or SIGTERM."""
    host, port = arguments.bind
    use_own_definitions(DataFolder.of(read_environment(os.environ)).definitions)
    try:
        load_definitions()
    except DefinitionError as error:
        raise OperatorError(str(error)) from error
    try:
        config = SimulatorConfig(
            vendor=arguments.vendor,
            olts=arguments.olts,
            onus=arguments.onus,
            host=host,
            port=port,
            latency_ms=arguments.latency_ms,
            loss=arguments.loss,
            seed=arguments.seed,
            community=arguments.community,
            hostile=arguments.hostile,
            traps=arguments.traps,
        )
    except ConfigError as error:
        arguments.usage_error(str(error))
    return run_simulator(config)

"""`facho simulate`: OLTs to try things on, of custom definitions too. Needs neither data folder nor database."""

import os
from argparse import Namespace

from facho.core.data_folder import DataFolder
from facho.core.env import read_environment
from facho.core.product import OperatorError
from facho.polling.vendors.loader import load_definitions, use_own_definitions
from facho.polling.vendors.schema import DefinitionError
from facho.simulator.server import ConfigError, SimulatorConfig, run_simulator


def simulate(arguments: Namespace) -> int:
    host, port = arguments.bind
    use_own_definitions(DataFolder.of(read_environment(os.environ)).definitions)
    try:
        load_definitions()
    except DefinitionError as error:
        raise OperatorError(str(error)) from error
    given = ("vendor", "olts", "onus", "latency_ms", "loss", "seed", "community", "hostile", "traps")
    try:
        config = SimulatorConfig(host=host, port=port, **{name: getattr(arguments, name) for name in given})
    except ConfigError as error:
        arguments.usage_error(str(error))
    return run_simulator(config)

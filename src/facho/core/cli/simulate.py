"""`facho simulate`: OLTs to try things on. Needs neither data folder nor database."""

from argparse import Namespace
from gettext import gettext as _

from facho.core.cli.arguments import Subparsers, add_command, host_and_port, whole_number


def register(subparsers: Subparsers) -> None:
    """Add `simulate`."""
    command = add_command(
        subparsers,
        "simulate",
        _("play OLTs over SNMP; prints name, host, port, vendor and community of each"),
        simulate,
    )
    command.add_argument("--vendor", default="mixed", help=_("vendor definition (default: several)"))
    command.add_argument("--olts", type=whole_number, default=1, metavar="N", help=_("how many OLTs (default: 1)"))
    command.add_argument("--onus", type=whole_number, default=64, metavar="N", help=_("ONUs of each OLT (default: 64)"))
    command.add_argument(
        "--bind",
        type=host_and_port,
        default=("127.0.0.1", 0),
        metavar="H:P",
        help=_("address and first port; 0 takes free ports (default: 127.0.0.1:0)"),
    )
    command.add_argument("--latency-ms", type=float, default=0.0, metavar="N", help=_("delay of each answer"))
    command.add_argument("--loss", type=float, default=0.0, metavar="P", help=_("share of answers lost, 0 to 1"))
    command.add_argument("--seed", type=int, default=1, metavar="N", help=_("same seed, same network"))
    command.add_argument("--community", default="public", help=_("what the OLTs listen to (default: public)"))


def simulate(arguments: Namespace) -> int:
    """Simulate until SIGINT or SIGTERM."""
    from facho.simulator.config import ConfigError, SimulatorConfig
    from facho.simulator.run import run_simulator

    host, port = arguments.bind
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
        )
    except ConfigError as error:
        arguments.usage_error(str(error))
    return run_simulator(config)

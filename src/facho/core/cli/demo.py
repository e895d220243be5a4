"""`facho demo`: the whole product on simulated OLTs, in a data folder of its own."""

import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from argparse import Namespace
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.arguments import Subparsers, add_command, bind_address, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.product import bring_up_to_date, open_product, tell_warnings
from facho.core.cli.run import product_children, refuse_second_engine, start, tell_end
from facho.core.processes import listening, supervisor
from facho.core.processes.supervisor import Child

if TYPE_CHECKING:
    from facho.core.demo_data import Access

DEFAULT_FOLDER = "facho-demo-data"
DEFAULT_OLTS, DEFAULT_ONUS = 6, 160
# Where simulated OLTs listen, one port after the other; a block that is taken is given up for another.
PORTS = range(20_000, 60_000)
TRIES = 8
READY_SECONDS = 60.0
READY_LOOK_SECONDS = 0.1


def register(subparsers: Subparsers) -> None:
    """Add `demo`."""
    demo = add_command(subparsers, "demo", _("try the product on simulated OLTs"), run_demo)
    demo.add_argument("--olts", type=whole_number, default=DEFAULT_OLTS, metavar="N", help=_("simulated OLTs"))
    demo.add_argument("--onus", type=whole_number, default=DEFAULT_ONUS, metavar="N", help=_("ONUs on each of them"))
    demo.add_argument("--bind", metavar="H:P", type=bind_address, help=_("address of the web (default: FACHO_BIND)"))


def run_demo(arguments: Namespace) -> int:
    """Run until SIGINT or SIGTERM; a second start finds what the first one stored."""
    os.environ.setdefault("FACHO_DATA_DIR", DEFAULT_FOLDER)
    # A visitor looks at the page; what went well is no news on the terminal.
    os.environ.setdefault("FACHO_LOG_LEVEL", "WARNING")
    open_product()
    _refuse_real_data()
    refuse_second_engine()
    tell_warnings()
    children = product_children(arguments.bind)
    _tell_start()
    bring_up_to_date()
    simulator = Child("facho.core.processes.simulator", reads_stdout=True)
    children.append(simulator)
    try:
        supervisor.raise_on_signals()
        access = _seed(_start_simulator(simulator, arguments))
        start(children[:2])
        url = listening.url_of(children[0].inherited[0])
        _wait_until_ready(url, children[0])
        print(f"url: {url}\nlogin: {access.user} {access.password}\ntoken: {access.token}", flush=True)
        print(_("Press Ctrl-C to stop."), flush=True)
        supervisor.supervise(children, tell=tell_end)
    except supervisor.Stopped:
        return 0
    finally:
        supervisor.stop(children)


def _refuse_real_data() -> None:
    """Never mix simulated OLTs into a folder that holds an operator's."""
    from django.conf import settings

    folder = settings.DATA_FOLDER
    has_database = (folder.path / "facho.sqlite3").exists()
    if has_database and not folder.demo_mark.exists():
        raise CliError(_("%s holds real data: the demo wants a folder of its own, set FACHO_DATA_DIR.") % folder.path)


def _tell_start() -> None:
    """Speak before the long part; standard output is for the address and the login."""
    from django.conf import settings

    print(_("Starting; the data is in %s.") % settings.DATA_FOLDER.path, file=sys.stderr, flush=True)


def _start_simulator(simulator: Child, arguments: Namespace) -> list[str]:
    """Start the simulated OLTs on ports of their own, which they get again after a crash; return what they announce."""
    from facho.core.demo_data import load_first_port

    for port in (load_first_port(), *(secrets.choice(PORTS) for _try in range(TRIES))):
        if port is None:
            continue
        simulator.arguments = [str(number) for number in (arguments.olts, arguments.onus, port)]
        simulator.start()
        lines = [simulator.stdout.readline() for _number in range(arguments.olts)]
        if all(lines):
            return lines
    raise CliError(_("The simulated OLTs could not be started."))


def _seed(lines: list[str]) -> "Access":
    """Store the OLTs that the simulator announced, and the demo's login."""
    from django.conf import settings
    from django.utils import timezone

    from facho.core.demo_data import SimulatedOlt, provide_access, save_olts

    access = provide_access(settings.DATA_FOLDER)
    save_olts([SimulatedOlt.parse(line) for line in lines], now=timezone.now())
    return access


def _wait_until_ready(url: str, web: Child) -> None:
    give_up_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up_at and web.exit_status is None:
        try:
            with urllib.request.urlopen(f"{url}/livez", timeout=5):  # noqa: S310 our own address
                return
        except (urllib.error.URLError, OSError):
            time.sleep(READY_LOOK_SECONDS)
    raise CliError(_("The web did not start; see the messages above."))

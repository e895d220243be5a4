"""`facho demo`: the whole product on simulated OLTs, in a data folder of its own."""

import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from argparse import Namespace
from gettext import gettext as _
from socket import AF_INET, SOCK_DGRAM, socket
from typing import IO

from django.conf import settings
from django.utils import timezone

from facho.core.cli.run import alone_on_folder, listen, product_children, start, tell_end
from facho.core.env import split_bind
from facho.core.processes import supervisor
from facho.core.processes.supervisor import Child
from facho.core.product import OperatorError, bring_up_to_date, open_product, tell_warnings

DEFAULT_FOLDER = "facho-demo-data"
# Where simulated OLTs listen, one port after the other; a block that is taken is given up for another.
PORTS = range(20_000, 60_000)
TRIES = 8
READY_SECONDS = 60.0
READY_LOOK_SECONDS = 0.1


def run_demo(arguments: Namespace) -> int:
    """Run until SIGINT or SIGTERM; a second start finds what the first one stored."""
    os.environ.setdefault("FACHO_DATA_DIR", DEFAULT_FOLDER)
    # A visitor looks at the page; successes are not printed on the terminal.
    os.environ.setdefault("FACHO_LOG_LEVEL", "WARNING")
    # Any port that is free: the demo must not take that of a real receiver.
    os.environ.setdefault("FACHO_TRAPS_BIND", f"127.0.0.1:{_free_udp_port()}")
    open_product()
    folder = settings.DATA_FOLDER
    if (folder.path / "facho.sqlite3").exists() and not folder.demo_mark.exists():
        # Never mix simulated OLTs into a folder that holds an operator's.
        text = _("%s holds real data: the demo wants a folder of its own, set FACHO_DATA_DIR.")
        raise OperatorError(text % folder.path)
    with alone_on_folder() as lock:
        return _run(arguments, lock)


def _run(arguments: Namespace, lock: IO[str]) -> int:
    # It needs the models, so it is loaded after Django.
    from facho.core.cli import demo_data

    folder = settings.DATA_FOLDER
    tell_warnings()
    listening = listen(arguments.bind)
    product = product_children(listening, lock)
    # Before the long part; standard output is for the address and the login.
    print(_("Starting; the data is in %s.") % folder.path, file=sys.stderr, flush=True)
    bring_up_to_date()
    simulator = Child("facho.core.processes.simulator", reads_stdout=True, needs_django=False)
    children = [*product, simulator]
    try:
        supervisor.raise_on_signals()
        lines = _start_simulator(simulator, arguments, demo_data.load_first_port())
        access = demo_data.provide_access(folder)
        demo_data.switch_traps_on()
        demo_data.save_olts([demo_data.DemoOlt.parse(line) for line in lines], now=timezone.now())
        start(product)
        url = supervisor.url_of(listening)
        _wait_until_ready(url, product[0])
        print(f"url: {url}\nlogin: {access.user} {access.password}\ntoken: {access.token}", flush=True)
        print(_("Press Ctrl-C to stop."), flush=True)
        supervisor.supervise(children, tell=tell_end)
    except supervisor.Stopped:
        return 0
    finally:
        supervisor.stop(children)


def _free_udp_port() -> int:
    with socket(AF_INET, SOCK_DGRAM) as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def _start_simulator(simulator: Child, arguments: Namespace, first_port: int | None) -> list[str]:
    """Start the simulated OLTs on ports of their own, which they get again after a crash; return what they announce."""
    for port in (first_port, *(secrets.choice(PORTS) for _try in range(TRIES))):
        if port is None:
            continue
        numbers = (arguments.olts, arguments.onus, port, split_bind(settings.FACHO_TRAPS_BIND)[1])
        simulator.arguments = [str(number) for number in numbers]
        simulator.start()
        lines = [simulator.stdout.readline() for _number in range(arguments.olts)]
        if all(lines):
            return lines
    raise OperatorError(_("The simulated OLTs could not be started."))


def _wait_until_ready(url: str, web: Child) -> None:
    give_up_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up_at and web.exit_status is None:
        try:
            with urllib.request.urlopen(f"{url}/livez", timeout=5):  # noqa: S310 our own address
                return
        except (urllib.error.URLError, OSError):
            time.sleep(READY_LOOK_SECONDS)
    raise OperatorError(_("The web did not start; see the messages above."))

"""`facho demo`: the whole product on simulated OLTs, in a data folder of its own."""

import os
import secrets
from argparse import Namespace
from gettext import gettext as _
from socket import AF_INET, SOCK_DGRAM, socket
from typing import IO

from django.conf import settings
from django.utils import timezone

from facho.core.cli.run import alone_on_folder, listen, product_children, report_exit, start, wait_until_ready
from facho.core.env import split_bind
from facho.core.processes import supervisor
from facho.core.processes.supervisor import Child
from facho.core.product import OperatorError, bring_up_to_date, open_product, print_warnings, say

DEFAULT_FOLDER = "facho-demo-data"
# Where simulated OLTs listen, one port after the other; a block that is taken is given up for another.
PORTS = range(20_000, 60_000)
TRIES = 8
# Nothing is lost when the read of a simulated OLT is broken off: the next engine ends it, as after a kill.
STOP_SECONDS = 2.0


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
        text = _("%s contains real data: the demo needs its own folder; set FACHO_DATA_DIR.")
        raise OperatorError(text % folder.path)
    with alone_on_folder() as lock:
        return _run(arguments, lock)


def _run(arguments: Namespace, lock: IO[str]) -> int:
    # It needs the models, so it is loaded after Django.
    from facho.core.cli import demo_data
    from facho.traps.store import switch

    folder = settings.DATA_FOLDER
    print_warnings()
    listening = listen(arguments.bind)
    product = product_children(listening, lock)
    # Before the long part; standard output is for the address and the login.
    say(_("Starting; the data is in %s.") % folder.path)
    simulator = Child("facho.core.processes.simulator", reads_stdout=True, needs_django=False)
    children = [*product, simulator]
    try:
        supervisor.raise_on_signals()
        # It loads while the database is made; one that is there knows where the OLTs were.
        is_new = not folder.demo_mark.exists()
        if is_new:
            _start_simulator(simulator, arguments, secrets.choice(PORTS))
        bring_up_to_date(holds_lock=True)
        if not is_new:
            _start_simulator(simulator, arguments, demo_data.load_first_port() or secrets.choice(PORTS))
        lines = _read_olts(simulator, arguments)
        access = demo_data.provide_access(folder)
        # The cut fibre of the demo appears within seconds.
        switch(is_on=True)
        now = timezone.now()
        demo_data.save_olts([demo_data.DemoOlt.parse(line) for line in lines], now=now)
        worlds = demo_data.new_worlds(arguments.olts, arguments.onus)
        demo_data.save_inventory(worlds, now=now)
        start(product)
        # While the others load.
        demo_data.save_history(worlds, now=now)
        url = supervisor.url_of(listening)
        if not wait_until_ready(url, product[0]):
            raise OperatorError(_("The web did not start; see the messages above."))
        print(f"url: {url}\nlogin: {access.user} {access.password}\ntoken: {access.token}", flush=True)
        print(_("Press Ctrl-C to stop."), flush=True)
        supervisor.supervise(children, on_exit=report_exit)
    except supervisor.Stopped:
        say(_("Stopping."))
        return 0
    finally:
        supervisor.stop(children, seconds=STOP_SECONDS)
        say(_("Stopped."))


def _free_udp_port() -> int:
    with socket(AF_INET, SOCK_DGRAM) as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def _start_simulator(simulator: Child, arguments: Namespace, port: int) -> None:
    numbers = (arguments.olts, arguments.onus, port, split_bind(settings.FACHO_TRAPS_BIND)[1])
    simulator.arguments = [str(number) for number in numbers]
    simulator.start()


def _read_olts(simulator: Child, arguments: Namespace) -> list[str]:
    """Return what the simulated OLTs announce; they get their ports again after a crash."""
    for _try in range(TRIES):
        lines = [simulator.stdout.readline() for _number in range(arguments.olts)]
        if all(lines):
            return lines
        _start_simulator(simulator, arguments, secrets.choice(PORTS))
    raise OperatorError(_("The simulated OLTs could not be started."))

"""`facho run`, a parent of web and engines; `scheduler`, `web`, `traps` of the distributed mode; `facho simulate`."""

import os
import sys
import time
import urllib.request
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from gettext import gettext as _
from socket import socket as Socket
from typing import IO

from django.conf import settings
from django.db import Error, transaction

from facho.core.data_folder import DataFolder, EngineRuns, engine_lock
from facho.core.env import Mode, read_environment
from facho.core.processes import supervisor
from facho.core.processes.supervisor import Child
from facho.core.product import (
    BAD_CONFIGURATION,
    OperatorError,
    bring_up_to_date,
    open_distributed,
    open_existing,
    open_product,
    print_warnings,
    refuse_newer,
    say,
)
from facho.polling.domain.lease import Shard, all_shards
from facho.polling.vendors.loader import load_definitions, use_own_definitions
from facho.polling.vendors.schema import DefinitionError
from facho.simulator.server import ConfigError, SimulatorConfig, run_simulator

READY_SECONDS = 60.0
READY_LOOK_SECONDS = 0.1


def run_product(arguments: Namespace) -> int:
    if sys.stderr.isatty():
        # Loading takes seconds on a small server, with no other output until then.
        say(_("Starting Facho."))
    if arguments.pollers:
        os.environ["FACHO_POLLERS"] = str(arguments.pollers)
    open_product()
    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        raise OperatorError(
            _("`facho run` is the embedded product: unset FACHO_MODE, or set it to embedded."), status=BAD_CONFIGURATION
        )
    with alone_on_folder() as lock:
        return _run(arguments, lock)


def _run(arguments: Namespace, lock: IO[str]) -> int:
    print_warnings()
    socket = listen(arguments.bind)
    children = product_children(socket, lock)
    say(_("The data is in %s; bringing the database up to date.") % settings.DATA_FOLDER.path)
    bring_up_to_date(holds_lock=True)
    try:
        supervisor.raise_on_signals()
        say(_("Starting web and engine."))
        start(children)
        say(f"url: {supervisor.url_of(socket)}", sys.stdout)
        # It needs the models, so it is loaded after Django.
        from facho.dashboard.account.views import make_setup_path

        if path := make_setup_path():
            say(_("Open this link once to create the first administrator (valid for 24 hours):"), sys.stdout)
            say(f"setup: {supervisor.url_of(socket)}{path}", sys.stdout)
        if wait_until_ready(supervisor.url_of(socket), children[0]):
            say(_("Ready. Press Ctrl-C to stop."))
        # Also when a slow machine needs longer: systemd would end what never says that it is ready.
        supervisor.notify_ready()
        supervisor.supervise(children, on_exit=report_exit, check=refuse_newer)
    except supervisor.Stopped:
        say(_("Stopping; reads in progress finish first, for up to 15 s."))
        return 0
    finally:
        supervisor.stop(children)
        say(_("Stopped."))


def wait_until_ready(url: str, web: Child) -> bool:
    """Return whether the web answers; False when it ended, or the time is over."""
    give_up_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up_at and web.exit_status is None:
        try:
            with urllib.request.urlopen(f"{url}/livez", timeout=5):  # noqa: S310 our own address
                return True
        except OSError:
            time.sleep(READY_LOOK_SECONDS)
    return False


def product_children(socket: Socket, lock: IO[str]) -> list[Child]:
    """Describe the processes of the product: the web on its socket, and the engines under the lock of the folder."""
    shards = all_shards(settings.FACHO_ENGINES)
    # Counted once, here: a child might be allowed other cores.
    environment = {"FACHO_ENGINES": str(len(shards))}
    web = Child("facho.core.processes.web", [str(socket.fileno())], environment, inherited=[socket])
    return [web, *(_engine(shard, lock, environment) for shard in shards), _receiver()]


def _engine(shard: Shard, lock: IO[str], environment: Mapping[str, str]) -> Child:
    module, arguments = "facho.core.processes.engine", [str(shard.number), str(shard.count), str(lock.fileno())]
    name = module if shard.is_whole else f"{module} {shard}"
    return Child(module, arguments, environment, inherited=[lock], name=name)


def _receiver() -> Child:
    """Describe the receiver of traps, which runs while they are switched on."""

    def is_wanted() -> bool:
        from facho.traps.store import is_switched_on

        with suppress(Error):
            return is_switched_on()
        return False

    return Child("facho.core.processes.traps", is_wanted=is_wanted)


def listen(bind: str | None) -> Socket:
    try:
        return supervisor.listen(bind or settings.FACHO_BIND)
    except supervisor.CannotListen as error:
        raise OperatorError(_("Cannot listen on %s. Choose another address with --bind HOST:PORT.") % error) from error


def start(children: list[Child]) -> None:
    """Start the children that always run; the others start on demand."""
    for child in children:
        if child.is_wanted is None:
            child.start()


def report_exit(child: Child, status: int) -> None:
    """Report that a process died and is restarted."""
    ended = {"name": child.name or child.module, "status": status}
    say("facho: " + _("%(name)s ended with status %(status)s; starting it again") % ended)


@contextmanager
def alone_on_folder() -> Iterator[IO[str]]:
    """Hold the lock for the engines to come; stop here when another `facho run` works on the same data folder."""
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(engine_lock(settings.DATA_FOLDER))
        except EngineRuns as error:
            raise OperatorError(_("Facho already runs on this data folder.")) from error
        yield lock


def run_scheduler(arguments: Namespace) -> None:
    open_distributed()
    print_warnings()
    from facho.core.processes.scheduler import main

    main()


def run_web(arguments: Namespace) -> None:
    open_distributed()
    print_warnings()
    from facho.core.processes.web import serve

    socket = listen(arguments.bind)
    say(f"url: {supervisor.url_of(socket)}", sys.stdout)
    serve(socket)


LOOK_SECONDS = 0.5


def traps(arguments: Namespace) -> int:
    if arguments.what == "run":
        return _hear()
    open_existing()
    bring_up_to_date()
    return _watch() if arguments.what == "watch" else _switch(is_on=arguments.what == "on")


def _hear() -> int:
    open_distributed()
    print_warnings()
    from facho.core.processes.traps import main

    main()
    return 0


def _switch(*, is_on: bool) -> int:
    # They need the models, so they are loaded after Django.
    from facho.core.cli.output import write_down
    from facho.traps.models import TrapSwitch
    from facho.traps.store import switch

    with transaction.atomic():
        switch(is_on=is_on)
        write_down("CHANGED", TrapSwitch.objects.all(), _("switched on") if is_on else _("switched off"))
    words = _("Listening for traps on %s.") if is_on else _("Traps are no longer received (%s).")
    print(words % settings.FACHO_TRAPS_BIND)
    return 0


def _watch() -> int:
    """Print what is heard from now on, until Ctrl-C."""
    from facho.core.cli.output import cell
    from facho.hosts.store import OLT_SECRETS
    from facho.traps.models import Trap, TrapSender

    last = Trap.objects.order_by("-id").values_list("id", flat=True).first() or 0
    counts = dict(TrapSender.objects.values_list("id", "count"))
    while True:
        heard = Trap.objects.filter(id__gt=last).select_related("olt").defer(*OLT_SECRETS)
        for trap in heard.order_by("id")[:500]:
            last = trap.id
            words = [trap.heard_at, trap.olt.name, trap.get_meaning_display(), trap.place, trap.name, trap.serial]
            print("  ".join(cell(word) for word in words), flush=True)
        for sender in TrapSender.objects.order_by("id"):
            if sender.count > counts.get(sender.id, 0):
                found = {"count": sender.count - counts.get(sender.id, 0), "address": sender.address}
                print(
                    _("%(count)s from %(address)s not accepted") % found + f": {sender.get_reason_display()}",
                    flush=True,
                )
            counts[sender.id] = sender.count
        time.sleep(LOOK_SECONDS)


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

"""`facho run`, a parent that supervises web and engines; `facho scheduler` and `facho web` of the distributed mode."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from gettext import gettext as _
from socket import socket as Socket
from typing import IO

from django.conf import settings
from django.db import Error

from facho.core.data_folder import EngineRuns, engine_lock
from facho.core.env import Mode
from facho.core.processes import supervisor
from facho.core.processes.supervisor import Child
from facho.core.product import OperatorError, bring_up_to_date, open_distributed, open_product, tell_warnings
from facho.polling.domain.shard import Shard, all_shards


def run_product(arguments: Namespace) -> int:
    """Run until SIGINT or SIGTERM."""
    if arguments.pollers:
        os.environ["FACHO_POLLERS"] = str(arguments.pollers)
    open_product()
    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        raise OperatorError(_("`facho run` is the embedded product: unset FACHO_MODE, or set it to embedded."))
    with alone_on_folder() as lock:
        return _run(arguments, lock)


def _run(arguments: Namespace, lock: IO[str]) -> int:
    tell_warnings()
    socket = listen(arguments.bind)
    children = product_children(socket, lock)
    bring_up_to_date()
    try:
        supervisor.raise_on_signals()
        start(children)
        print(f"url: {supervisor.url_of(socket)}", flush=True)
        # It needs the models, so it is loaded after Django.
        from facho.dashboard.account.views import make_setup_path

        if path := make_setup_path():
            print(_("Open this link once to make the first administrator (valid for 24 hours):"))
            print(f"setup: {supervisor.url_of(socket)}{path}", flush=True)
        supervisor.supervise(children, tell=tell_end)
    except supervisor.Stopped:
        return 0
    finally:
        supervisor.stop(children)


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
    """Bind the web's address, by default the setting's."""
    try:
        return supervisor.listen(bind or settings.FACHO_BIND)
    except supervisor.CannotListen as error:
        raise OperatorError(_("Cannot listen on %s. Choose another address with --bind HOST:PORT.") % error) from error


def start(children: list[Child]) -> None:
    """Start all that run anyway; the others follow when they are wanted."""
    for child in children:
        if child.is_wanted is None:
            child.start()


def tell_end(child: Child, status: int) -> None:
    """Say that a process died and comes back."""
    ended = {"name": child.name or child.module, "status": status}
    print("facho: " + _("%(name)s ended with status %(status)s; starting it again") % ended, file=sys.stderr)


@contextmanager
def alone_on_folder() -> Iterator[IO[str]]:
    """Hold the lock for the engines to come; stop here when another `facho run` works on the same data folder."""
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(engine_lock(settings.DATA_FOLDER))
        except EngineRuns as error:
            raise OperatorError(_("Facho already runs on this data folder.")) from error
        yield lock


def run_scheduler(arguments: Namespace) -> int:
    """Schedule until SIGINT or SIGTERM."""
    open_distributed()
    tell_warnings()
    from facho.core.processes.scheduler import main

    main()
    return 0


def run_web(arguments: Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    open_distributed()
    tell_warnings()
    from facho.core.processes.web import serve

    socket = listen(arguments.bind)
    print(f"url: {supervisor.url_of(socket)}", flush=True)
    serve(socket)
    return 0

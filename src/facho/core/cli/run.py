"""`facho run`: the embedded product, a parent that supervises web and engine."""

import os
import sys
from argparse import Namespace
from gettext import gettext as _
from socket import socket as Socket

from facho.core.cli.arguments import Subparsers, add_command, bind_address, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.product import bring_up_to_date, open_product, tell_warnings
from facho.core.processes import listening, supervisor
from facho.core.processes.supervisor import Child


def register(subparsers: Subparsers) -> None:
    """Add `run`."""
    run = add_command(subparsers, "run", _("run the product: web, scheduler and pollers"), run_product)
    run.add_argument("--bind", metavar="H:P", type=bind_address, help=_("address of the web (default: FACHO_BIND)"))
    run.add_argument("--pollers", type=whole_number, metavar="N", help=_("pollers (default: FACHO_POLLERS)"))


def run_product(arguments: Namespace) -> int:
    """Run until SIGINT or SIGTERM."""
    if arguments.pollers:
        os.environ["FACHO_POLLERS"] = str(arguments.pollers)
    open_product()
    _refuse_distributed()
    refuse_second_engine()
    tell_warnings()
    children = product_children(arguments.bind)
    bring_up_to_date()
    try:
        supervisor.raise_on_signals()
        start(children)
        print(f"url: {listening.url_of(children[0].inherited[0])}", flush=True)
        _print_setup_link(children[0])
        supervisor.supervise(children, tell=tell_end)
    except supervisor.Stopped:
        return 0
    finally:
        supervisor.stop(children)


def product_children(bind: str | None) -> list[Child]:
    """Bind the web's socket and describe the two processes of the product, the web first."""
    socket = listen(bind)
    web = Child("facho.core.processes.web", [str(socket.fileno())], inherited=[socket])
    return [web, Child("facho.core.processes.engine")]


def listen(bind: str | None) -> Socket:
    """Bind the web's address, by default the setting's."""
    from django.conf import settings

    try:
        return listening.listen(bind or settings.FACHO_BIND)
    except listening.CannotListen as error:
        raise CliError(_("Cannot listen on %s. Choose another address with --bind HOST:PORT.") % error) from error


def start(children: list[Child]) -> None:
    """Start all of them."""
    for child in children:
        child.start()


def tell_end(child: Child, status: int) -> None:
    """Say that a process died and comes back."""
    print(
        "facho: "
        + _("%(name)s ended with status %(status)s; starting it again") % {"name": child.module, "status": status},
        file=sys.stderr,
    )


def refuse_second_engine() -> None:
    """Stop here when another `facho run` works on the same data folder."""
    from facho.core.processes.engine import EngineRuns, engine_lock

    try:
        with engine_lock():
            pass
    except EngineRuns as error:
        raise CliError(_("Facho already runs on this data folder.")) from error


def _refuse_distributed() -> None:
    from django.conf import settings

    from facho.core.env import Mode

    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        raise CliError(_("`facho run` is the embedded product: unset FACHO_MODE, or set it to embedded."))


def _print_setup_link(web: Child) -> None:
    from facho.core.first_admin import make_setup_path

    path = make_setup_path()
    if path:
        print(_("Open this link once to make the first administrator (valid for 24 hours):"))
        print(f"setup: {listening.url_of(web.inherited[0])}{path}", flush=True)

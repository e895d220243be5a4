"""`facho scheduler`, `facho web`: the distributed product's own processes; the workers are Celery's."""

from argparse import Namespace
from gettext import gettext as _

from facho.core.cli.arguments import Subparsers, add_command, bind_address
from facho.core.cli.failure import CliError
from facho.core.cli.product import bring_up_to_date, open_product, tell_warnings
from facho.core.cli.run import listen

REDIS_SECONDS = 3.0


def register(subparsers: Subparsers) -> None:
    """Add `scheduler` and `web`."""
    add_command(subparsers, "scheduler", _("distributed mode: decide what runs; two or more, one leads"), run_scheduler)
    web = add_command(subparsers, "web", _("distributed mode: serve pages and API; any number"), run_web)
    web.add_argument("--bind", metavar="H:P", type=bind_address, help=_("address of the web (default: FACHO_BIND)"))


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
    from facho.core.processes import listening
    from facho.core.processes.web import serve

    socket = listen(arguments.bind)
    print(f"url: {listening.url_of(socket)}", flush=True)
    serve(socket)
    return 0


def open_distributed() -> None:
    """Refuse to start without what the distributed mode needs: there is no fallback."""
    open_product()
    from django.conf import settings

    from facho.core.env import Mode
    from facho.core.redis_ping import RedisFailure, ping

    if settings.FACHO_MODE is not Mode.DISTRIBUTED:
        raise CliError(_("This is part of the distributed product: set FACHO_MODE to distributed, or use `facho run`."))
    bring_up_to_date()
    try:
        ping(settings.REDIS_URL, timeout_seconds=REDIS_SECONDS)
    except RedisFailure as error:
        raise CliError(_("Redis does not answer: %s. Start it, or correct REDIS_URL.") % error) from error

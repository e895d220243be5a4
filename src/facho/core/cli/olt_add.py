"""`facho olt add`: one OLT, its secrets from standard input or a prompt."""

from argparse import Namespace
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli import secret_input
from facho.core.cli.arguments import Subparsers, add_command, port_number
from facho.core.cli.failure import CliError
from facho.core.cli.olt_jobs import add_jobs_flag, give_jobs
from facho.core.cli.output import cell
from facho.core.cli.product import database_command
from facho.core.cli.written import write_down
from facho.polling.snmp.target import AuthProtocol, PrivProtocol

if TYPE_CHECKING:
    from facho.hosts.models import Olt
    from facho.hosts.olt_entry import OltEntry


def register(olts: Subparsers) -> None:
    """Add `olt add`."""
    command = add_command(olts, "add", _("add an OLT; its secrets are asked for, never arguments"), add)
    command.add_argument("name", metavar=_("NAME"))
    command.add_argument("host", metavar=_("HOST"), help=_("name or address"))
    command.add_argument("--port", type=port_number, default=161, help=_("UDP port (default: 161)"))
    command.add_argument("--vendor", default="auto", help=_("vendor definition (default: recognise it)"))
    command.add_argument("--version", choices=("1", "2c", "3"), default="2c", help=_("SNMP version (default: 2c)"))
    command.add_argument("--community-stdin", action="store_true", help=_("read the community from standard input"))
    command.add_argument("--v3-user", default="", help=_("SNMPv3 user"))
    command.add_argument("--auth-protocol", choices=tuple(map(str, AuthProtocol)), default="", type=str.upper)
    command.add_argument("--priv-protocol", choices=tuple(map(str, PrivProtocol)), default="", type=str.upper)
    command.add_argument(
        "--keys-stdin",
        action="store_true",
        help=_("read the SNMPv3 authentication key and, on the next line, the privacy key from standard input"),
    )
    command.add_argument("--poller-group", default="", help=_("the site whose workers reach it (distributed mode)"))
    add_jobs_flag(command)


@database_command
def add(arguments: Namespace) -> int:
    """Add one OLT."""
    from facho.hosts.inventory import InventoryError, add_olt

    def after_save(olt: "Olt") -> None:
        give_jobs(arguments)(olt)
        write_down("ADDED", [olt])

    try:
        olt = add_olt(_entry(arguments), after_save=after_save)
    except InventoryError as error:
        raise CliError(*(_sentence(problem.reason) for problem in error.problems)) from None
    place = {"name": olt.name, "address": olt.address, "port": olt.port}
    print(_("OLT %(name)s added: %(address)s port %(port)s") % place)
    return 0


def _entry(arguments: Namespace) -> "OltEntry":
    from facho.hosts.olt_entry import OltEntry
    from facho.hosts.secrets import Secret

    is_v3 = arguments.version == "3"
    auth_key, priv_key = _read_keys(arguments) if is_v3 else ("", "")
    return OltEntry(
        name=arguments.name,
        host=arguments.host,
        port=str(arguments.port),
        vendor=arguments.vendor,
        version=arguments.version,
        community=Secret("" if is_v3 else _read_community(arguments)),
        v3_user=arguments.v3_user,
        v3_auth_protocol=arguments.auth_protocol,
        v3_auth_key=Secret(auth_key),
        v3_priv_protocol=arguments.priv_protocol,
        v3_priv_key=Secret(priv_key),
        poller_group=arguments.poller_group,
    )


def _read_community(arguments: Namespace) -> str:
    if arguments.community_stdin:
        return secret_input.read_line()
    if secret_input.is_interactive():
        return secret_input.ask(_("Community"))
    raise CliError(_("The community is needed: give it with --community-stdin, or run this in a terminal."))


def _read_keys(arguments: Namespace) -> tuple[str, str]:
    wanted = (arguments.auth_protocol, arguments.priv_protocol)
    prompts = (_("Authentication key"), _("Privacy key"))
    if arguments.keys_stdin:
        auth, priv = (secret_input.read_line() if protocol else "" for protocol in wanted)
    elif not any(wanted):
        auth = priv = ""
    elif secret_input.is_interactive():
        auth, priv = (
            secret_input.ask(prompt) if protocol else "" for protocol, prompt in zip(wanted, prompts, strict=True)
        )
    else:
        raise CliError(_("The SNMPv3 keys are needed: give them with --keys-stdin, or run this in a terminal."))
    return auth, priv


def _sentence(reason: str) -> str:
    return cell(reason[:1].upper() + reason[1:]) + "."

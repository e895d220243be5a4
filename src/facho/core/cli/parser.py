"""The arguments of every command, as `facho --help` shows them; loads no Django, and no command's own module."""

from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from gettext import gettext as _
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

from facho.core.env import MAX_PORT, split_bind
from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.domain.planning import MAX_PRIORITY
from facho.polling.domain.schedule import MAX_INTERVAL_SECONDS, parse_interval
from facho.polling.snmp.target import AuthProtocol, PrivProtocol

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[ArgumentParser]
else:
    Subparsers = Action

WRONG_USE = 2
MAX_WHOLE_NUMBER = 1_000_000
MAX_ROW_NUMBER = 2**63 - 1
DEFAULT_OLTS, DEFAULT_ONUS = 6, 160
STDOUT = "-"
DEFAULT_METRIC = "rx_power"
EVENT_DAYS = 30
DEFAULT_LIMIT = 50
STATES = (*map(str, RunState), "absent")
# No optics see light outside of this, by far.
MAX_DBM = 100
MAX_NOTE = 200
MAX_PLACE_FIELDS = 4
SHELLS = ("bash", "zsh", "fish")
ROLES = ("viewer", "operator", "admin")
# As the page of one's account has it; its room needs Django, which no --help should load.
DEFAULT_DAYS = 365
MOST_DAYS = 3650
MAX_NAME = 80


LANGUAGES = ("es", "en", "pt-br")
REPORT_TABLES = ("olts", "ports", "zones", "downtime", "interruptions", "light", "repairs")
# As `plant/files.py` has them, which needs Django.
PLANT_KINDS = ("csv", "geojson", "kml")


class Needs(Enum):
    # It changes the environment first, or needs neither folder nor database.
    NOTHING = auto()
    # It looks at an installation that may be broken.
    DJANGO = auto()
    DATABASE = auto()


# By module or by handler; all others work with an installation.
NEEDS = {
    **dict.fromkeys(("demo", "run", "shell"), Needs.NOTHING),
    **dict.fromkeys(("backup", "doctor", "vendor.check"), Needs.DJANGO),
}


class CommandParser(ArgumentParser):
    """The parser of `facho` and of each of its commands, which argparse makes of the same class."""

    def error(self, message: str) -> NoReturn:
        """End with 2, and name the fault and where the usage stands."""
        text = f"{message} ({_('usage: ')}{self.prog} --help)"
        self.exit(WRONG_USE, _("%(prog)s: error: %(message)s\n") % {"prog": self.prog, "message": text})


class ShowVersion(Action):
    """Print the version, as the metadata of the installed package has it."""

    def __call__(self, parser: ArgumentParser, *_about: object) -> NoReturn:
        print(f"facho {version('facho')}")
        parser.exit()


def build_parser() -> ArgumentParser:
    """Put the commands together, in the order of the help; imports no Django and reads no file."""
    parser: ArgumentParser = CommandParser(
        prog="facho",
        description=_("Polls GPON OLTs over SNMP, never two operations on one OLT at once."),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help=_("show the version and exit"))
    subparsers = parser.add_subparsers(metavar=_("COMMAND"), required=True)
    for add in (
        add_demo,
        add_run,
        add_distributed,
        add_migrate,
        add_traps,
        add_simulate,
        add_olt,
        add_onu,
        add_plant,
        add_node,
        add_execution,
        add_pause,
        add_report,
        add_webhook,
        add_snmp,
        add_record,
        add_vendor,
        add_user,
        add_token,
        add_netbox,
        add_doctor,
        add_backup,
        add_keys,
        add_shell,
    ):
        add(subparsers)
    return parser


def add_group(subparsers: Subparsers, name: str, summary: str) -> Subparsers:
    """Add a word that needs another one after it, such as `olt`."""
    parser = subparsers.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    return parser.add_subparsers(metavar=_("COMMAND"), required=True)


def add_command(
    subparsers: Subparsers,
    name: str,
    summary: str,
    handler: str,
    *,
    check: Callable[[Namespace], None] | None = None,
) -> ArgumentParser:
    """Add a command that `module.function` of this package carries out; `check` refuses arguments first."""
    parser = subparsers.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    needs = NEEDS.get(handler) or NEEDS.get(handler.partition(".")[0], Needs.DATABASE)
    parser.set_defaults(handler=handler, needs=needs, check=check, usage_error=parser.error)
    return parser


def add_demo(subparsers: Subparsers) -> None:
    demo = add_command(subparsers, "demo", _("try the product on simulated OLTs"), "demo.run_demo")
    demo.add_argument("--olts", type=whole_number, default=DEFAULT_OLTS, metavar="N", help=_("simulated OLTs"))
    demo.add_argument("--onus", type=whole_number, default=DEFAULT_ONUS, metavar="N", help=_("ONUs on each of them"))
    demo.add_argument("--bind", metavar="H:P", type=bind_address, help=_("address of the web (default: FACHO_BIND)"))


def add_run(subparsers: Subparsers) -> None:
    run = add_command(subparsers, "run", _("run the product: web, scheduler and pollers"), "run.run_product")
    run.add_argument("--bind", metavar="H:P", type=bind_address, help=_("address of the web (default: FACHO_BIND)"))
    run.add_argument("--pollers", type=whole_number, metavar="N", help=_("pollers (default: FACHO_POLLERS)"))


def add_shell(subparsers: Subparsers) -> None:
    add_command(subparsers, "man", _("print the manual page"), "shell.show_manual")
    completion = add_command(
        subparsers, "completion", _("print what lets a shell complete these commands"), "shell.show_completion"
    )
    completion.add_argument("shell", choices=SHELLS, help=_("the shell"))


def add_migrate(subparsers: Subparsers) -> None:
    add_command(subparsers, "migrate", _("bring the database up to date with this version"), "backup.bring_database_up")


def add_distributed(subparsers: Subparsers) -> None:
    add_command(
        subparsers, "scheduler", _("distributed mode: decide what runs; two or more, one leads"), "run.run_scheduler"
    )
    web = add_command(subparsers, "web", _("distributed mode: serve pages and API; any number"), "run.run_web")
    web.add_argument("--bind", metavar="H:P", type=bind_address, help=_("address of the web (default: FACHO_BIND)"))


def add_traps(subparsers: Subparsers) -> None:
    command = add_command(
        subparsers,
        "traps",
        _("receive the traps of OLTs (distributed mode), switch them on or off, or watch them"),
        "run.traps",
    )
    command.add_argument(
        "what", nargs="?", choices=("run", "on", "off", "watch"), default="run", help=_("what to do (default: run)")
    )


def add_simulate(subparsers: Subparsers) -> None:
    command = add_command(
        subparsers,
        "simulate",
        _("play OLTs over SNMP; prints name, host, port, vendor and community of each"),
        "run.simulate",
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
    command.add_argument(
        "--hostile",
        default="",
        metavar="KIND",
        help=_("OLTs that harm the client: endless, bloated, huge, deep, crowded, overflowing, forger, flood or all"),
    )
    command.add_argument("--community", default="public", help=_("what the OLTs listen to (default: public)"))
    command.add_argument(
        "--traps",
        type=host_and_port,
        metavar="H:P",
        help=_("send SNMP notifications to this address of the machine (default: none are sent)"),
    )


def add_olt(subparsers: Subparsers) -> None:
    olts = add_group(subparsers, "olt", _("the inventory of OLTs"))
    command = add_command(olts, "add", _("add an OLT; its secrets are asked for, never arguments"), "olt.add")
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
    command = add_command(olts, "import", _("add and update OLTs from a CSV file, all or nothing"), "olt.import_file")
    command.add_argument("file", metavar=_("FILE"), type=Path)
    command.add_argument("--dry-run", action="store_true", help=_("print what would change, and write nothing"))
    add_json_flag(command)
    add_jobs_flag(command)
    command = add_command(olts, "export", _("write the inventory as CSV, without secrets"), "olt.export")
    command.add_argument("file", metavar=_("FILE"), nargs="?", default=STDOUT, help=_("default: standard output"))
    add_json_flag(add_command(olts, "list", _("list the OLTs"), "olt.list_olts"))
    command = add_command(olts, "probe", _("identify an OLT"), "olt.probe")
    command.add_argument("name", metavar=_("NAME"))
    add_json_flag(command)


def add_plant(subparsers: Subparsers) -> None:
    plant = add_group(subparsers, "plant", _("zones, boxes and the ONUs on them"))
    command = add_command(plant, "import", _("import a plant from CSV, GeoJSON or KML"), "plant.import_file")
    command.add_argument("file", metavar=_("FILE"), type=Path)
    command.add_argument("--dry-run", action="store_true", help=_("show what would be written, and write nothing"))
    command = add_command(plant, "export", _("write the plant to standard output"), "plant.export_file")
    command.add_argument("kind", choices=PLANT_KINDS, help=_("kind of the file"))


def add_onu(subparsers: Subparsers) -> None:
    onus = add_group(subparsers, "onu", _("ONUs and their customers"))
    command = add_command(onus, "list", _("list ONUs, narrowed and sorted"), "onu.list_onus")
    command.add_argument("--olt", metavar=_("NAME"), help=_("of this OLT"))
    command.add_argument("--port", metavar="F/S/P", type=port_place, help=_("of this PON port, such as 0/1/3"))
    command.add_argument("--state", choices=STATES, help=_("only those in this state now"))
    command.add_argument("--cause", choices=tuple(map(str, DownCause)), help=_("that went down last for this cause"))
    command.add_argument("--power-below", metavar="DBM", type=dbm, help=_("that receive less light, such as -27"))
    command.add_argument("--search", metavar=_("TEXT"), help=_("with this part in any text, at least 3 characters"))
    command.add_argument("--sort", metavar=_("ORDER"), default="place", help=_("default: place; a minus reverses it"))
    command.add_argument(
        "--limit", metavar="N", type=whole_number, default=DEFAULT_LIMIT, help=_("maximum number (default: 50)")
    )
    add_json_flag(command)
    command = add_command(onus, "show", _("show everything known about an ONU"), "onu.show")
    command.add_argument("onu", metavar=_("SERIAL|ID"), help=_("serial of the ONU, or its number in lists"))
    add_json_flag(command)
    command = add_command(
        onus,
        "import",
        _("write customers from a CSV file: serial, and any of label, address, phone, notes, tags"),
        "onu.import_file",
    )
    command.add_argument("file", metavar=_("FILE"), type=Path)
    command.add_argument("--dry-run", action="store_true", help=_("show what would be written, and write nothing"))
    command = add_command(onus, "history", _("show how a value of an ONU changed"), "onu.show_history")
    command.add_argument("onu", metavar=_("SERIAL|ID"), help=_("serial of the ONU, or its number in lists"))
    command.add_argument("--metric", metavar=_("NAME"), default=DEFAULT_METRIC, help=_("default: %s") % DEFAULT_METRIC)
    command.add_argument("--days", metavar="N", type=whole_number, default=1, help=_("default: %s") % 1)
    add_json_flag(command)
    command = add_command(onus, "events", _("show what happened to an ONU, the latest first"), "onu.show_events")
    command.add_argument("onu", metavar=_("SERIAL|ID"), help=_("serial of the ONU, or its number in lists"))
    command.add_argument(
        "--days", metavar="N", type=whole_number, default=EVENT_DAYS, help=_("default: %s") % EVENT_DAYS
    )
    add_json_flag(command)


def add_node(subparsers: Subparsers) -> None:
    nodes = add_group(subparsers, "node", _("nodes: one job on one OLT, with its schedule"))
    command = add_command(nodes, "list", _("list the nodes"), "node.list_nodes")
    command.add_argument("--olt", metavar=_("NAME"), help=_("only those of this OLT"))
    add_json_flag(command)
    command = add_command(nodes, "run", _("run nodes as soon as their OLT is free"), "node.run_nodes", check=check_run)
    command.add_argument("nodes", metavar=_("NODE"), nargs="*", type=whole_number, help=_("number of the node"))
    command.add_argument("--olt", metavar=_("NAME"), help=_("all nodes of this OLT"))
    command.add_argument("--all", action="store_true", dest="every", help=_("all nodes of all OLTs"))
    command = add_command(nodes, "explain", _("show why a node waits and when it runs"), "node.explain")
    command.add_argument("node", metavar=_("NODE"), type=whole_number, help=_("number of the node"))
    add_json_flag(command)
    command = add_command(
        nodes, "change", _("change how often nodes run, and whether they do"), "node.change", check=check_change
    )
    command.add_argument("nodes", metavar=_("NODE"), nargs="+", type=whole_number, help=_("number of the node"))
    command.add_argument("--interval", metavar=_("TIME"), type=_interval, help=_("seconds, or 90s, 5m, 1h, 1d"))
    command.add_argument("--priority", metavar="N", type=_priority, help=_("0 to 100, larger first"))
    switch = command.add_mutually_exclusive_group()
    switch.add_argument("--enable", action="store_true", dest="enabled", default=None, help=_("enable them"))
    switch.add_argument("--disable", action="store_false", dest="enabled", default=None, help=_("disable them"))
    command = add_command(
        nodes, "resume", _("return suspended nodes to their schedule"), "node.resume", check=check_resume
    )
    command.add_argument("nodes", metavar=_("NODE"), nargs="*", type=whole_number, help=_("number of the node"))
    command.add_argument("--olt", metavar=_("NAME"), help=_("all suspended nodes of this OLT"))


def check_run(arguments: Namespace) -> None:
    if [bool(arguments.nodes), bool(arguments.olt), arguments.every].count(True) != 1:
        arguments.usage_error(_("name the nodes, or give --olt NAME, or --all"))


def check_change(arguments: Namespace) -> None:
    if (arguments.interval, arguments.priority, arguments.enabled) == (None, None, None):
        arguments.usage_error(_("give what to change: --interval, --priority, --enable or --disable"))


def check_resume(arguments: Namespace) -> None:
    if bool(arguments.nodes) == bool(arguments.olt):
        arguments.usage_error(_("name the nodes, or give --olt NAME"))


def add_execution(subparsers: Subparsers) -> None:
    executions = add_group(subparsers, "execution", _("executions: the runs of nodes"))
    add_json_flag(add_command(executions, "list", _("list running and waiting executions"), "node.list_executions"))
    command = add_command(executions, "cancel", _("end a run before its next packet"), "node.cancel_execution")
    command.add_argument("execution", metavar=_("NUMBER"), type=row_number, help=_("number of the execution"))


def add_report(subparsers: Subparsers) -> None:
    reports = add_group(subparsers, "report", _("reports of months: availability, light, repairs"))
    command = add_command(reports, "show", _("print one table of a report"), "plant.show")
    _add_month(command)
    command.add_argument("--olt", metavar=_("NAME"), help=_("only this OLT"))
    command.add_argument("--by", choices=REPORT_TABLES, default=REPORT_TABLES[0], help=_("which table (default: olts)"))
    add_json_flag(command)
    command = add_command(reports, "pdf", _("write a report as PDF"), "plant.save_pdf")
    command.add_argument("file", type=Path, metavar=_("FILE"), help=_("the file to write"))
    _add_month(command)
    command.add_argument("--olt", metavar=_("NAME"), help=_("only this OLT"))
    command.add_argument("--language", choices=LANGUAGES, help=_("its language (default: that of the installation)"))
    command = add_command(reports, "compute", _("compute a month now; the engine does it by itself"), "plant.compute")
    _add_month(command)


def _add_month(command: ArgumentParser) -> None:
    command.add_argument("--month", metavar="YYYY-MM", help=_("which month (default: the last one)"))


def add_webhook(subparsers: Subparsers) -> None:
    hooks = add_group(subparsers, "webhook", _("programs that get events as they come"))
    add_json_flag(add_command(hooks, "list", _("list webhooks and their progress"), "neighbours.list_webhooks"))
    command = add_command(hooks, "replay", _("send again what happened since a time"), "neighbours.replay")
    command.add_argument("name", metavar=_("NAME"), help=_("the webhook"))
    command.add_argument(
        "--since",
        required=True,
        metavar="YYYY-MM-DDTHH:MM",
        help=_("since when, in FACHO_TIME_ZONE unless it has an offset"),
    )


def add_pause(subparsers: Subparsers) -> None:
    pauses = add_group(subparsers, "pause", _("maintenance: start nothing for a while"))
    command = add_command(pauses, "add", _("start nothing new; running executions finish"), "olt.add_pause")
    _add_place(command)
    command.add_argument("--minutes", type=whole_number, required=True, metavar="N", help=_("how long"))
    command.add_argument("--note", type=_note, default="", metavar=_("TEXT"), help=_("reason of the pause"))
    add_json_flag(add_command(pauses, "list", _("list current and future pauses"), "olt.list_pauses"))
    command = add_command(pauses, "end", _("end the pauses of an OLT, or those of everything, now"), "olt.end_pause")
    _add_place(command)


def _add_place(command: ArgumentParser) -> None:
    """Have the whole network named on purpose, never by leaving something out."""
    place = command.add_mutually_exclusive_group(required=True)
    place.add_argument("--olt", metavar=_("NAME"), help=_("only this OLT"))
    place.add_argument("--all", action="store_true", dest="every", help=_("everything"))


def add_snmp(subparsers: Subparsers) -> None:
    snmp = add_group(subparsers, "snmp", _("query an OLT by hand, one gentle operation at a time"))
    command = _add_question(snmp, "get", _("read single values"), nargs="+", metavar=_("OID|COLUMN"))
    command.add_argument("--at", type=_place, metavar="F/S/P/ONU", help=_("the ONU or port to read a column of"))
    _add_question(snmp, "walk", _("read everything below an OID, or a column"), nargs=1, metavar=_("OID|COLUMN"))
    _add_question(snmp, "table", _("read columns side by side"), nargs="+", metavar=_("TABLE|COLUMN"))


def _add_question(snmp: Subparsers, way: str, summary: str, *, nargs: Literal["+", 1], metavar: str) -> ArgumentParser:
    command = add_command(snmp, way, summary, "snmp.read")
    command.set_defaults(way=way, at=None)
    command.add_argument("name", metavar=_("NAME"), help=_("name of the OLT"))
    command.add_argument("subjects", nargs=nargs, metavar=metavar)
    command.add_argument("--rows", type=whole_number, default=200, metavar="N", help=_("rows at most (default: 200)"))
    _add_patience(command, seconds=30)
    add_json_flag(command)
    return command


def add_record(subparsers: Subparsers) -> None:
    summary = _("record a device without its serials, names and addresses")
    command = add_command(subparsers, "record", summary, "vendor.record")
    command.add_argument("name", metavar=_("NAME"))
    command.add_argument("--output", metavar=_("FILE"), type=Path, help=_("a .snmprec file (default: standard output)"))
    command.add_argument(
        "--no-live", action="store_false", dest="with_live", help=_("leave out what the OLT must query from its ONUs")
    )


def add_vendor(subparsers: Subparsers) -> None:
    vendors = add_group(subparsers, "vendor", _("vendor definitions that are being written"))
    command = add_command(vendors, "check", _("list the faults of a definition and what it leaves out"), "vendor.check")
    command.add_argument("file", metavar=_("FILE"), type=Path, help=_("a .yaml file named after its key"))
    add_json_flag(command)
    command = add_command(
        vendors, "try", _("read an OLT with a definition, and show what is suspicious"), "vendor.try_"
    )
    command.add_argument("file", metavar=_("FILE"), type=Path, help=_("a .yaml file named after its key"))
    device = command.add_mutually_exclusive_group(required=True)
    device.add_argument("--olt", metavar=_("NAME"), help=_("name of the OLT"))
    device.add_argument(
        "--recording", metavar=_("FILE"), type=Path, help=_("what `facho record` wrote, instead of a device")
    )
    command.add_argument(
        "--rows", type=whole_number, default=100, metavar="N", help=_("rows of each column at most (default: 100)")
    )
    command.add_argument(
        "--live", type=whole_number, default=8, metavar="N", help=_("ONUs to ask for live columns (default: 8)")
    )
    _add_patience(command, seconds=120)
    add_json_flag(command)


def _add_patience(command: ArgumentParser, *, seconds: int) -> None:
    command.add_argument(
        "--seconds",
        type=whole_number,
        default=seconds,
        metavar="N",
        help=_("hold the OLT for at most (default: %(default)s)"),
    )
    command.add_argument(
        "--wait", type=whole_number, default=60, metavar="N", help=_("seconds to wait for the OLT (default: 60)")
    )


def add_user(subparsers: Subparsers) -> None:
    users = add_group(subparsers, "user", _("users that can log in"))
    create = add_command(users, "create", _("add a person"), "user.create_user")
    create.add_argument("name", metavar=_("NAME"), help=_("login name"))
    create.add_argument("--role", choices=ROLES, required=True, help=_("what the person may do"))
    add_groups_flag(create)
    _add_password_flag(create)
    add_json_flag(add_command(users, "list", _("show users and their roles"), "user.list_users"))
    role = _add_for_one(users, "role", _("give a person another role"), "user.change_role")
    role.add_argument("role", choices=ROLES, help=_("what the person may do"))
    _add_password_flag(
        _add_for_one(
            users, "password", _("set a new password and lift the wait after failed attempts"), "user.change_password"
        )
    )
    _add_for_one(
        users, "disable", _("accept no login, session or token of a person until they are enabled"), "user.disable_user"
    )
    _add_for_one(users, "reset-factors", _("remove the second factor of a person who lost it"), "user.reset_factors")
    add_json_flag(_add_for_one(users, "sessions", _("show where a person is logged in"), "user.list_sessions"))
    _add_for_one(users, "end-sessions", _("log a person out everywhere"), "user.end_sessions")
    _add_for_one(users, "enable", _("allow a person to log in again"), "user.enable_user")


def _add_for_one(users: Subparsers, name: str, summary: str, handler: str) -> ArgumentParser:
    command = add_command(users, name, summary, handler)
    command.add_argument("name", metavar=_("NAME"), help=_("login name"))
    return command


def _add_password_flag(command: ArgumentParser) -> None:
    command.add_argument(
        "--password-stdin", action="store_true", help=_("read the password from standard input instead of asking")
    )


def add_token(subparsers: Subparsers) -> None:
    tokens = add_group(subparsers, "token", _("API tokens"))
    create = add_command(tokens, "create", _("make a token; its text is printed once"), "user.create_token")
    create.add_argument("user", metavar=_("USER"), help=_("login name of its owner"))
    create.add_argument("--role", choices=ROLES, help=_("what the token may do (default: what its owner may)"))
    create.add_argument(
        "--days", type=_days, default=DEFAULT_DAYS, metavar="N", help=_("days until it expires (default: %(default)s)")
    )
    create.add_argument("--name", type=_name, default="", metavar=_("TEXT"), help=_("what it is for"))
    add_groups_flag(create)
    add_json_flag(add_command(tokens, "list", _("show the tokens, and when they were last used"), "user.list_tokens"))
    revoke = add_command(tokens, "revoke", _("end a token now"), "user.revoke_token")
    revoke.add_argument("id", type=row_number, metavar=_("ID"), help=_("number of the token in `facho token list`"))


def add_groups_flag(command: ArgumentParser) -> None:
    command.add_argument(
        "--group",
        action="append",
        default=[],
        metavar=_("NAME"),
        help=_("only the OLTs of this group; may be repeated"),
    )


def add_netbox(subparsers: Subparsers) -> None:
    netbox = add_group(subparsers, "netbox", _("OLTs by NetBox, the inventory of the network"))
    command = add_command(netbox, "sync", _("add and move OLTs as NetBox has them, and write back"), "neighbours.sync")
    command.add_argument("--dry-run", action="store_true", help=_("print what would change, and write nothing"))
    command.add_argument(
        "--disable", action="store_true", help=_("disable OLTs whose device has the status decommissioning")
    )
    add_json_flag(command)


def add_doctor(subparsers: Subparsers) -> None:
    add_json_flag(
        add_command(subparsers, "doctor", _("check the installation and say what to do"), "doctor.show_findings")
    )


def add_backup(subparsers: Subparsers) -> None:
    command = add_command(
        subparsers,
        "backup",
        _("write database and keys into one file, of PostgreSQL the database alone, also while Facho runs"),
        "backup.back_up",
    )
    command.add_argument("file", metavar=_("FILE"), type=Path, help=_("a file that does not exist yet"))
    command.add_argument("--to", metavar="s3://BUCKET/NAME", help=_("copy it to S3-compatible storage too"))
    command = add_command(subparsers, "restore", _("put a backup into an empty data folder"), "backup.restore")
    command.add_argument("file", metavar=_("FILE"), type=Path)


def add_keys(subparsers: Subparsers) -> None:
    keys = add_group(subparsers, "keys", _("the encryption keys of the stored secrets"))
    summary = _("encrypt all secrets with a new key and retire the old one, also while Facho runs")
    command = add_command(keys, "rotate", summary, "keys.rotate")
    command.add_argument(
        "--finish",
        action="store_true",
        help=_("the second step of the distributed mode, when every machine has the new file"),
    )


def add_json_flag(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", dest="as_json", help=_("print JSON instead of a table"))


def add_jobs_flag(parser: ArgumentParser) -> None:
    parser.add_argument("--no-jobs", action="store_true", help=_("leave out the vendor's ready-made jobs"))


def _number_up_to(limit: int, text: str) -> int:
    # isdecimal alone accepts the digits of every script.
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(limit)) else 0
    if not 1 <= number <= limit:
        raise ArgumentTypeError(
            _("%(text)s is not a whole number from 1 to %(limit)s") % {"text": repr(text), "limit": limit}
        )
    return number


whole_number = partial(_number_up_to, MAX_WHOLE_NUMBER)
# Of a row in a table that grows.
row_number = partial(_number_up_to, MAX_ROW_NUMBER)
port_number = partial(_number_up_to, MAX_PORT)


def bind_address(text: str) -> str:
    """Read HOST:PORT, port 0 for any free one; wrong use otherwise."""
    host_and_port(text)
    return text


def host_and_port(text: str) -> tuple[str, int]:
    try:
        return split_bind(text)
    except ValueError as error:
        raise ArgumentTypeError(
            _("%(text)s is not HOST:PORT with a port of at most %(limit)s") % {"text": repr(text), "limit": MAX_PORT}
        ) from error


def port_place(text: str) -> tuple[int, int, int]:
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) <= 5 for part in parts):
        raise ArgumentTypeError(_("%s is not FRAME/SLOT/PORT") % repr(text))
    frame, slot, port = map(int, parts)
    return frame, slot, port


def _place(text: str) -> tuple[int, ...]:
    numbers = text.split("/")
    if len(numbers) > MAX_PLACE_FIELDS or not all(n.isascii() and n.isdecimal() and len(n) <= 9 for n in numbers):
        raise ArgumentTypeError(_("%s is not FRAME/SLOT/PORT/ONU") % repr(text))
    return tuple(map(int, numbers))


def dbm(text: str) -> float:
    try:
        power = float(text)
    except ValueError:
        power = float("nan")
    # Also not true of NaN.
    if not abs(power) <= MAX_DBM:
        raise ArgumentTypeError(_("%s is not a power in dBm") % repr(text))
    return power


def _interval(text: str) -> int:
    try:
        seconds = parse_interval(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= MAX_INTERVAL_SECONDS:
        raise ArgumentTypeError(_("%s is not a duration such as 90s, 5m, 1h or 1d, at most one year") % repr(text))
    return seconds


def _priority(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 3 and int(text) <= MAX_PRIORITY):
        raise ArgumentTypeError(_("%s is not a whole number from 0 to 100") % repr(text))
    return int(text)


def _note(text: str) -> str:
    if len(text) > MAX_NOTE or not text.isprintable():
        raise ArgumentTypeError(_("a note is one line of at most %s characters") % MAX_NOTE)
    return text


def _days(text: str) -> int:
    number = whole_number(text)
    if number > MOST_DAYS:
        raise ArgumentTypeError(_("a token is valid for at most %s days") % MOST_DAYS)
    return number


def _name(text: str) -> str:
    if len(text) > MAX_NAME or not text.isprintable():
        raise ArgumentTypeError(_("a name is one line of at most %s characters") % MAX_NAME)
    return text

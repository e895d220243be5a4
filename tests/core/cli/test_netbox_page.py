"""What docs/neighbours.md says of NetBox: its examples run, and its words are those of the product."""

import json
from configparser import ConfigParser
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runner import Command
from pytest_django import Settings

from docs.docs_pages import ROOT, blocks
from docs.docs_pages import rows as table_rows
from facho.core.checks import check_netbox, check_secrecy
from facho.core.cli.main import build_parser
from facho.core.env import NETBOX_VALUES, read_environment
from facho.hosts.models import Olt, Reachability
from facho.neighbours.netbox_sync import KEPT_STATUSES, SyncVerdict
from servers.netbox import TOKEN, NetBox

pytestmark = pytest.mark.django_db

ANSWERED_AT = datetime(2026, 10, 1, 12, 30, 5, tzinfo=UTC)
PAGE = ROOT / "docs/neighbours.md"
NETBOX_PART = PAGE.read_text().partition("\n## NetBox\n")[2].partition("\n## ")[0]


def lines_of(language: str, part: str) -> list[str]:
    """Return the lines of the blocks of NetBox's part of the page that have something in them."""
    return [
        line
        for block in blocks(PAGE, language)
        if block in NETBOX_PART and part in block
        for line in block.splitlines()
        if line
    ]


def test_the_example_of_the_page_runs(facho: Command, netbox: NetBox, settings: Settings, tmp_path: Path) -> None:
    named = dict(line.split("=", 1) for line in lines_of("text", "FACHO_NETBOX"))
    environment = read_environment(named)
    types = {cells[0].strip("`"): cells[1] for cells in table_rows(PAGE, heading="### Write back")}
    settings.FACHO_NETBOX_ROLES = environment["FACHO_NETBOX_ROLES"]
    settings.FACHO_NETBOX_FIELDS = environment["FACHO_NETBOX_FIELDS"]
    settings.FACHO_PUBLIC_URL = "https://facho.example.net"
    (tmp_path / "credentials.csv").write_text("\n".join(lines_of("csv", "network")))
    kinds = {"Date & time": "datetime"}
    netbox.custom_fields = {
        field: kinds.get(types[value], types[value].lower()) for value, field in settings.FACHO_NETBOX_FIELDS
    }
    netbox.add(1, "north", "10.20.0.1")
    netbox.add(2, "south", "10.30.0.1")
    prefix = "sudo -u facho facho "
    commands = [line.removeprefix(prefix).split() for line in lines_of("sh", prefix)]

    dry, done = (facho(*command) for command in commands)
    Olt.objects.update(last_answer_at=ANSWERED_AT, reachability=Reachability.UP, sys_descr="x")
    facho(*commands[-1])

    assert environment.problems == ()
    assert (dry.status, done.status, dry.out) == (0, 0, done.out)
    assert set(types) == set(NETBOX_VALUES) == {value for value, _field in settings.FACHO_NETBOX_FIELDS}
    assert [batch[0]["id"] for batch in netbox.changed] == [1]
    assert list(Olt.objects.values_list("name", "snmp_version")) == [("north", "2c"), ("south", "3")]


def test_the_units_of_the_page_start_what_exists() -> None:
    service, timer = (ConfigParser(interpolation=None) for _unit in range(2))
    service.read_string("\n".join(lines_of("ini", "oneshot")))
    timer.read_string("\n".join(lines_of("ini", "OnCalendar")))
    program, *arguments = service["Service"]["ExecStart"].split()

    assert (program, service["Service"]["User"]) == ("facho", "facho")
    assert build_parser().parse_args(arguments).handler == "neighbours.sync"
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_what_the_page_says_of_words_and_statuses_is_so() -> None:
    message = {cells[0].strip("`") for cells in table_rows(PAGE, heading="## NetBox")}
    statuses = {cells[0]: cells[2] for cells in table_rows(PAGE, heading="| `written to NetBox`")}

    assert message == {str(verdict.label) for verdict in SyncVerdict}
    assert {word for row, what in statuses.items() if "stays" in what for word in row.split(", ")} == set(KEPT_STATUSES)


def test_the_doctor_asks_netbox(facho: Command, netbox: NetBox) -> None:
    netbox.add(1, "north", "10.20.0.1")

    found = {
        row["verdict"]: row["text"] for row in json.loads(facho("doctor", "--json").out) if row["name"] == "netbox"
    }
    netbox.devices.clear()
    empty = [row for row in json.loads(facho("doctor", "--json").out) if row["name"] == "netbox"]
    netbox.fault = "forbidden"
    refused = [row for row in json.loads(facho("doctor", "--json").out) if row["name"] == "netbox"]

    assert found == {"ok": f"{netbox.url}: 1 devices"}
    assert [row["verdict"] for row in (*empty, *refused)] == ["warning", "warning"]
    assert "shows no device" in empty[0]["text"]
    assert "refuses the token" in refused[0]["text"]


def test_half_a_setting_and_an_open_file_are_found_at_the_start(settings: Settings, tmp_path: Path) -> None:
    settings.FACHO_NETBOX_URL, settings.FACHO_NETBOX_TOKEN_FILE = "https://netbox.example.net", None
    settings.FACHO_NETBOX_CREDENTIALS_FILE = tmp_path / "missing"
    half = {message.id for message in check_netbox()}
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o644)
    settings.FACHO_NETBOX_TOKEN_FILE = settings.FACHO_NETBOX_CREDENTIALS_FILE = tmp_path / "token"

    assert half == {"facho.E013", "facho.E012"}
    assert check_netbox() == []
    assert {message.id for message in check_secrecy()} >= {"facho.W002"}

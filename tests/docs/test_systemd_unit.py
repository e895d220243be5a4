"""The systemd unit starts what exists, with settings that exist, and stops it more slowly than we do ourselves."""

import shlex
from configparser import ConfigParser
from typing import Any

from docs_pages import ROOT

from facho.core.cli.main import build_parser
from facho.core.env import SETTINGS
from facho.core.processes.supervisor import STOP_SECONDS

UNIT = ROOT / "deploy/systemd/facho.service"
HARDENING = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
}


def service() -> Any:
    """Read the unit; a name that appears twice is an error."""
    parser = ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    assert parser.sections() == ["Unit", "Service", "Install"]
    return parser["Service"]


def test_the_unit_starts_a_command_that_exists() -> None:
    program, *arguments = shlex.split(service()["ExecStart"])

    assert program == "/opt/facho/bin/facho"
    assert build_parser().parse_args(arguments).handler


def test_the_unit_keeps_its_data_where_it_may_write() -> None:
    name, _equals, folder = service()["Environment"].partition("=")

    assert name in {setting.name for setting in SETTINGS}
    assert folder == f"/var/lib/{service()['StateDirectory']}" == service()["WorkingDirectory"]
    assert service()["StateDirectoryMode"] == "0700"


def test_the_unit_runs_as_a_user_of_its_own_without_privileges() -> None:
    assert service()["User"] == service()["Group"] == "facho"
    assert {name: service()[name] for name in HARDENING} == HARDENING


def test_systemd_waits_longer_than_the_parent_does() -> None:
    """The parent stops its children in order; a signal to all of them, or an early kill, would be in its way."""
    assert service()["KillMode"] == "mixed"
    assert float(service()["TimeoutStopSec"]) > STOP_SECONDS
    assert service()["Restart"] == "on-failure"

"""What stands in `deploy/`: the commands that its files start, and the settings that they give."""

import re
import shlex
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = DEPLOY / "systemd"
COMMON = UNITS / "facho-.service.d/common.conf"
PARTS = ("web", "scheduler", "traps", "worker", "beat", "beat-worker")
PROGRAMS = "/opt/facho/bin/"


def read_ini(path: Path) -> ConfigParser:
    """Read a unit or a supervisor file; a name that appears twice in a section is an error."""
    parser = ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return parser


def unit_command(name: str) -> list[str]:
    """Return what a unit starts, as systemd would hand it over."""
    return shlex.split(read_ini(UNITS / f"{name}.service")["Service"]["ExecStart"].replace("%%", "%"))


def supervisor_command(part: str) -> list[str]:
    """Return what the script that a supervisor's entry starts turns into in the end."""
    script, *words = shlex.split(read_supervisor()[f"program:facho-{part}"]["command"].replace("%%", "%"))
    assert script == "facho"
    return [f"{PROGRAMS}{words[0]}", *words[1:]] if words[0] == "celery" else [f"{PROGRAMS}facho", *words]


def read_supervisor() -> ConfigParser:
    """Read the supervisor's file."""
    return read_ini(DEPLOY / "supervisor/facho.conf")


def read_compose() -> dict[str, Any]:
    """Read the compose file, with what it refers to by `<<` in place."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def compose_command(part: str) -> list[str]:
    """Return what a container starts."""
    command: list[str] = read_compose()["services"][part]["command"]
    return command


def filled_in(text: str, values: dict[str, str]) -> str:
    """Replace `${NAME:-default}` and `${NAME:?message}` as compose does."""

    def value(match: re.Match[str]) -> str:
        name, operator, rest = match.groups()
        return values.get(name) or (rest if operator == ":-" else "")

    return re.sub(r"\$\{(\w+)(:[-?])([^}]*)\}", value, text)


def example_values() -> dict[str, str]:
    """Return what an operator would write into the example, the passwords made up."""
    text = (DEPLOY / "compose.env.example").read_text()
    empty = dict.fromkeys(re.findall(r"^(\w+)=$", text, re.MULTILINE), "a1b2c3")
    return {**dict(re.findall(r"^#(\w+)=(.+)$", text, re.MULTILINE)), **empty}

"""The documents are true: each setting, each check and each requirement stands where a reader looks for it."""

import re
import subprocess
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from tools import requirements

from facho.core.env import SETTINGS, read_environment

ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
CHECK_ID = re.compile(r"facho\.[EW]\d{3}")
REQUIREMENT_ROWS = requirements.ROW.findall(requirements.PAGE.read_text())
GROUP_SIZES = {"S0": 44, "S1": 33, "S2": 17, "S3": 32, "S4": 20}
DECISIONS = 23
CAPABILITIES = {
    "An SNMP engine that is gentle, adaptive and resumable",
    "The scheduler and the pollers, proven",
    "The execution coordinator",
    "ONU truth",
    "The distributed mode",
    "The web",
    "Alerts, accounts, API",
}


def settings_table() -> list[tuple[str, str, str]]:
    """Read (name, default, example) from the page."""
    rows = re.findall(r"^\| `([A-Z0-9_]+)` \|(.*?)\|.*\| `(.+)` \|$", CONFIGURATION, re.MULTILINE)
    return [(name, default.strip("` "), example) for name, default, example in rows]


def test_every_setting_is_documented_with_its_default() -> None:
    documented = [(name, default) for name, default, _example in settings_table()]

    assert documented == [(setting.name, setting.default) for setting in SETTINGS]


@pytest.mark.parametrize(("name", "example"), [(name, example) for name, _default, example in settings_table()])
def test_every_documented_example_can_be_used(name: str, example: str) -> None:
    assert read_environment({name: example}).problems == ()


def test_the_documented_commands_make_usable_keys(tmp_path: Path) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", CONFIGURATION, re.DOTALL)

    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True)

    Fernet((tmp_path / "encryption-keys").read_text().strip())
    assert (tmp_path / "encryption-keys").stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "secret-key").read_text()) > 50


def test_every_check_id_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("checks.py"))

    assert set(CHECK_ID.findall(CONFIGURATION)) == set(CHECK_ID.findall(sources))


def test_every_requirement_of_the_specification_has_its_row() -> None:
    decisions = [f"D{number}" for number in range(1, DECISIONS + 1)]
    lines = [f"{group}-{number:02}" for group, size in GROUP_SIZES.items() for number in range(1, size + 1)]

    assert [row[0] for row in REQUIREMENT_ROWS] == decisions + lines


def test_every_requirement_is_brought_by_a_known_capability() -> None:
    assert {row[3] for row in REQUIREMENT_ROWS} <= CAPABILITIES


def test_a_requirement_is_either_named_by_a_test_or_open() -> None:
    named = requirements.ids_named_by_tests()
    shown = {identifier for identifier, mark, _text, _capability in REQUIREMENT_ROWS if mark == "x"}
    still_open = {row[0] for row in REQUIREMENT_ROWS} - shown

    assert sorted(named - shown - still_open) == [], "tests name ids that no requirement has"
    assert sorted(named & still_open) == [], "named by a test: `make requirements` turns their o into an x"
    assert sorted(shown - named) == [], "marked x, yet no test names them"

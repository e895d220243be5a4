"""The units of the distributed product, as systemd itself judges them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from deploy_files import COMMON, PARTS, PROGRAMS, UNITS, read_ini

from facho.core.processes.supervisor import STOP_SECONDS
from facho.core.product import BAD_CONFIGURATION

# Out of 10, where a unit without any protection has 9.6.
MOST_EXPOSED = 2.0
INSTANCE = "facho-worker@norte.service"
NAMES = ["facho.service", *(f"facho-{part}.service" for part in PARTS), INSTANCE]


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with programs that this machine has."""
    folder = tmp_path / "units"
    shutil.copytree(UNITS, folder)
    for unit in folder.glob("*.service"):
        text = (
            unit.read_text().replace(f"={PROGRAMS}facho ", "=/bin/true ").replace(f"={PROGRAMS}celery ", "=/bin/true ")
        )
        unit.write_text(text)
    shutil.copy(folder / "facho-worker@.service", folder / INSTANCE)
    return folder


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_systemd_finds_nothing_wrong_with_the_units(units: Path) -> None:
    found = analyze("verify", "--man=no", *(units / name for name in NAMES))

    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_every_unit_is_as_closed_as_the_embedded_one(units: Path, name: str) -> None:
    judged = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}", units / name)

    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("file", [UNITS / "facho.service", COMMON])
def test_a_unit_counts_as_started_when_it_is_ready_and_is_not_tried_in_vain(file: Path) -> None:
    service = read_ini(file)["Service"]

    assert service["Type"] == "notify"
    # 2 is wrong use.
    assert service["RestartPreventExitStatus"].split() == ["2", str(BAD_CONFIGURATION)]


def test_the_parts_share_user_settings_and_patience() -> None:
    service = read_ini(COMMON)["Service"]
    embedded = read_ini(UNITS / "facho.service")["Service"]

    assert {name: service[name] for name in ("User", "StateDirectory", "StateDirectoryMode", "UMask")} == {
        name: embedded[name] for name in ("User", "StateDirectory", "StateDirectoryMode", "UMask")
    }
    assert service["EnvironmentFile"] == embedded["EnvironmentFile"].removeprefix("-")
    assert float(service["TimeoutStopSec"]) > STOP_SECONDS

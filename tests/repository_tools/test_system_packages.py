"""What the tests need is installed without starting a service, or named with the one command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools import system_packages
from tools.system_packages import Need, how_to_install, packages_for, services_left_alone

ABSENT = Need("no-such-program", ("one", "two"))


def test_a_program_is_found_on_the_path_or_off_it(tmp_path: Path) -> None:
    (tmp_path / "15").mkdir()
    pattern = str(tmp_path.relative_to("/") / "*")

    assert Need("sh", ()).is_met
    assert Need("no-such-program", (), pattern=pattern).is_met
    assert not ABSENT.is_met


def test_each_package_is_named_once() -> None:
    assert packages_for([ABSENT, Need("other", ("two", "three"))]) == ["one", "two", "three"]


def test_the_command_to_run_fits_on_one_line() -> None:
    assert how_to_install(["one", "two"]).splitlines()[-1].strip() == (
        "sudo apt-get install --no-install-recommends one two"
    )


def test_nothing_missing_means_nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_packages, "NEEDS", (Need("sh", ("dash",)),))

    assert system_packages.main() == 0


def test_what_boots_a_debian_is_for_the_rest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_packages, "NEEDS", ())
    monkeypatch.setattr(system_packages, "NEEDS_OF_REST", (ABSENT,))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert (system_packages.main(), system_packages.main("rest")) == (0, 1)


def test_who_is_not_root_is_reported_and_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system_packages, "NEEDS", (ABSENT,))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert system_packages.main() == 1
    assert "apt-get install --no-install-recommends one two" in capsys.readouterr().err


def test_services_may_not_start_meanwhile(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"

    with services_left_alone(policy):
        assert subprocess.run([policy], check=False).returncode == 101

    assert not policy.exists()


def test_the_machines_own_policy_survives(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("mine")

    with services_left_alone(policy):
        pass

    assert policy.read_text() == "mine"


def test_the_policy_is_removed_when_the_install_fails(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"

    with pytest.raises(OSError, match="full"), services_left_alone(policy):
        raise OSError("disk full")

    assert not policy.exists()


def test_a_python_without_packages_can_run_it() -> None:
    source = Path(system_packages.__file__)

    subprocess.run([sys.executable, "-I", "-S", "-c", f"import runpy; runpy.run_path({str(source)!r})"], check=True)

"""The scripts of the Debian package alone, with systemd's own program on a folder instead of the machine."""

import shutil
import subprocess
from pathlib import Path

import pytest
from deploy_files import DEPLOY, UNITS

SCRIPTS = DEPLOY / "debian"
# It stops nothing, and enables and disables below the folder.
SYSTEMCTL = """\
#!/bin/sh
echo "$*" >>{folder}/asked
case $1 in
list-units) printf '%s loaded active running\\n' facho-web.service facho-worker@norte.service ;;
list-unit-files | disable) exec {systemctl} --root={folder}/root "$@" ;;
esac
"""
ENABLED = ("facho.service", "facho-beat.service", "facho-worker@norte.service")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the units of the package, some of them enabled, and a place for what is noted."""
    systemctl = shutil.which("systemctl") or "systemctl"
    for folder in ("root/usr/lib/systemd", "root/etc/systemd/system", "run/systemd/system", "opt", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copytree(UNITS, tmp_path / "root/usr/lib/systemd/system")
    enable = [systemctl, f"--root={tmp_path}/root", "enable", "--quiet", *ENABLED]
    subprocess.run(enable, check=True, capture_output=True)
    (tmp_path / "bin/systemctl").write_text(SYSTEMCTL.format(folder=tmp_path, systemctl=systemctl))
    (tmp_path / "bin/systemctl").chmod(0o755)
    return tmp_path


def run(script: str, machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    text = (SCRIPTS / script).read_text().replace("/run/", f"{machine}/run/").replace("/opt/", f"{machine}/opt/")
    environ = {"PATH": f"{machine}/bin:/usr/bin:/bin"}
    return subprocess.run(
        ["sh", "-s", *arguments], input=text, env=environ, capture_output=True, text=True, check=False
    )


def links(machine: Path) -> list[str]:
    return sorted(link.name for link in (machine / "root/etc").rglob("*") if link.is_symlink())


def test_an_upgrade_stops_what_runs_or_is_about_to_and_keeps_it_for_the_start(machine: Path) -> None:
    done = run("prerm", machine, "upgrade", "2")

    asked = (machine / "asked").read_text().splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert "--state=active,activating" in asked[0]
    assert asked[1:] == ["stop facho-web.service facho-worker@norte.service"]
    assert (machine / "run/facho-upgrade").read_text().split() == ["facho-web.service", "facho-worker@norte.service"]
    assert links(machine) == sorted(ENABLED)


def test_a_removal_leaves_no_link_of_units_that_do_not_run(machine: Path) -> None:
    done = run("prerm", machine, "remove")

    assert (done.returncode, done.stderr) == (0, "")
    assert links(machine) == []
    assert not (machine / "run/facho-upgrade").exists()


@pytest.mark.parametrize("action", ["install", "upgrade"])
def test_the_package_goes_through_no_link_of_an_installation_by_hand(machine: Path, action: str) -> None:
    (machine / "opt/facho").symlink_to("facho-1")

    refused = run("preinst", machine, action)
    (machine / "opt/facho").unlink()

    assert (refused.returncode, "docs/operations.md" in refused.stderr) == (1, True)
    assert run("preinst", machine, action).returncode == 0


def test_the_package_and_the_role_stop_the_same() -> None:
    stops = "--state=active,activating 'facho.service' 'facho-*.service'"

    assert stops in (SCRIPTS / "prerm").read_text()
    assert stops in (DEPLOY / "ansible/roles/facho/tasks/main.yml").read_text()

"""docs/operations.md on a bare Debian that boots: its lines as they stand, nothing beside them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from bare_debian import PAGE, ROOT, Machine, blocks_of

pytestmark = [pytest.mark.thorough("sqlite"), pytest.mark.slow, pytest.mark.any_database]

# Before versions had folders of their own; its page says how it was installed.
PREVIOUS = "36ae6cc"
PASSWORD = "correct-horse-battery-7\n" * 2
OLTS = "name,host,port,vendor,version,community\ncentro-1,192.0.2.10,161,huawei,2c,secret-1\n"


def settings_of(block: str) -> bool:
    return all("=" in line and " " not in line for line in block.splitlines())


def install(machine: Machine, page: str = PAGE) -> None:
    for block in blocks_of("Install", page):
        if settings_of(block):
            machine.run(f"cat > /etc/facho/facho.env <<'END'\n{block}END")
        elif not block.startswith("#!"):
            machine.run(block)


def add_olts(machine: Machine) -> None:
    (machine.root / "tmp/olts.csv").write_text(OLTS)
    machine.run("cat > /srv/olts.csv", stdin=OLTS)
    machine.run("chmod 644 /srv/olts.csv && sudo -u facho facho olt import /srv/olts.csv")


def test_one_machine_from_install_to_removal(machine: Machine) -> None:
    install(machine)
    assert '"ready"' in machine.ready()
    link, create, token = blocks_of("First administrator")
    assert "setup: http://127.0.0.1:8000/" in machine.run(link)
    machine.run(create, stdin=PASSWORD)
    machine.run(token)
    add_olts(machine)
    machine.run("systemctl restart facho")
    assert '"ready"' in machine.ready()

    save, restore = blocks_of("Backup and restore")
    machine.run(save)
    machine.run(restore)
    assert "centro-1" in machine.run("sudo -u facho facho olt list")
    (rotate, *_others) = blocks_of("Rotate the encryption key")
    machine.run(rotate)

    # The next version: one commit more.
    machine.run(
        "git -c user.name=t -c user.email=t@example.net commit --quiet --allow-empty -m Next && git branch next"
        " && git reset --quiet --hard HEAD~ && git config remote.origin.url /srv/facho/.git"
        " && git config branch.$(git branch --show-current).merge refs/heads/next"
    )
    before = machine.run("facho --version")
    (upgrade, _back) = blocks_of("Upgrade")
    machine.run(upgrade)
    assert machine.run("facho --version") != before
    assert '"ready"' in machine.ready()
    assert "centro-1" in machine.run("sudo -u facho facho olt list")

    (remove,) = blocks_of("Remove")
    machine.run(remove)
    left = machine.run("ls -d /opt/facho* /etc/facho /var/lib/facho 2>/dev/null || true; getent passwd facho || true")
    assert left == ""


def test_the_previous_release_is_upgraded_with_its_data_and_comes_back(machine: Machine) -> None:
    """An upgrade and a rollback, rehearsed with the release before folders were versioned."""
    page = subprocess.run(
        ["git", "show", f"{PREVIOUS}:docs/operations.md"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    machine.run(f"git checkout --quiet {PREVIOUS}")
    machine.run("install -d -m 755 /etc/facho")
    install(machine, page)
    script = next(block for block in blocks_of("Install", page) if block.startswith("#!"))
    machine.run(f"cat > /usr/local/bin/facho <<'END'\n{script}END\nchmod 755 /usr/local/bin/facho")
    assert '"ready"' in machine.ready()
    add_olts(machine)
    machine.run("install -d -m 700 -o facho -g facho /var/backups/facho")

    machine.run(
        "git checkout --quiet - && git config branch.$(git branch --show-current).merge refs/heads/none || true"
    )
    (upgrade, back) = blocks_of("Upgrade")
    machine.run("sudo systemctl stop facho && sudo mv /opt/facho /opt/facho-old && ln -s /opt/facho-old /opt/facho")
    machine.run("install -m 755 deploy/facho /usr/local/bin/facho")
    machine.run(upgrade.replace("git pull\n", ""))
    assert '"ready"' in machine.ready()
    assert "centro-1" in machine.run("sudo -u facho facho olt list")

    refused = machine.try_to("sudo -u facho FACHO_DATA_DIR=/var/lib/facho /opt/facho-old/bin/facho olt list")
    assert refused.returncode != 0
    machine.run(back.replace("PREVIOUS", "old"))
    assert '"ready"' in machine.ready()
    assert "centro-1" in machine.run("sudo -u facho facho olt list")


def test_several_parts_with_their_servers(machine: Machine) -> None:
    (servers, keys, settings, start) = blocks_of("With systemd")
    for block in blocks_of("Install")[:2]:
        machine.run(block)
    machine.run(servers, stdin="abc123\n" * 2)
    configuration = (ROOT / "docs/configuration.md").read_text()
    machine.run(blocks_of("The two keys", configuration)[0])
    filled = settings.replace("PASSWORD@db.example.net", "abc123@127.0.0.1")
    filled = filled.replace(":PASSWORD@redis.example.net", "127.0.0.1")
    machine.run("cat > facho.env", stdin=filled)
    machine.run("systemctl start postgresql redis-server")
    machine.run(keys)
    # The address is made for programs on this machine alone here.
    machine.run(start.replace("sudo -u facho facho doctor", "sleep 20"), stdin=PASSWORD)
    assert '"ready"' in machine.ready()
    assert "error" not in machine.run("sudo -u facho facho doctor")

    machine.run("systemctl stop facho-beat facho-beat-worker facho-scheduler facho-worker facho-traps facho-web")
    assert "The database fits" in machine.run("sudo -u facho FACHO_LANGUAGE=en facho migrate")
    active = machine.run("systemctl list-units --plain --no-legend --state=active 'facho-*.service'")
    assert active == ""


def test_the_package_is_installed_upgraded_with_data_removed_and_purged(
    machine: Machine, packages: tuple[Path, Path]
) -> None:
    for name, package in zip(("first", "second"), packages, strict=True):
        shutil.copy(package, machine.root / f"srv/{name}.deb")

    machine.run("dpkg -i /srv/first.deb && systemctl enable --now facho")
    assert '"ready"' in machine.ready()
    add_olts(machine)
    machine.run("dpkg -i /srv/second.deb")
    assert '"ready"' in machine.ready()
    assert "centro-1" in machine.run("sudo -u facho facho olt list")

    machine.run("dpkg -r facho && systemctl daemon-reload")
    assert machine.run("ls /var/lib/facho/facho.sqlite3; ls -d /opt/facho 2>/dev/null || true").split() == [
        "/var/lib/facho/facho.sqlite3"
    ]
    machine.run("dpkg -P facho")
    left = machine.run("ls -d /var/lib/facho /etc/facho 2>/dev/null || true; getent passwd facho || true")
    assert (left, machine.try_to("dpkg -s facho").returncode) == ("", 1)

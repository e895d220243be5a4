"""docs/operations.md on a bare Debian that boots: its lines as they stand, nothing beside them."""

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from bare_debian import OLTS, PAGE, Machine, add_olts, blocks_of, commit_next

from servers.previous_release import PREVIOUS, ROWS, lost, show

pytestmark = [pytest.mark.thorough("sqlite"), pytest.mark.slow, pytest.mark.any_database]

# Tables that nobody writes while nothing is polled.
KEPT = ("onus_onu", "onu_customers", "onu_events", "auth_user", "accounts_profile", "api_apitoken")
PASSWORD = "correct-horse-battery-7\n" * 2


def settings_of(block: str) -> bool:
    return all("=" in line and " " not in line for line in block.splitlines())


def install(machine: Machine, page: str = PAGE) -> None:
    for block in blocks_of("Install", page):
        if settings_of(block):
            machine.run(f"cat > /etc/facho/facho.env <<'END'\n{block}END")
        elif not block.startswith("#!"):
            machine.run(block)


def test_one_machine_from_install_to_removal(machine: Machine) -> None:
    install(machine)
    assert '"ready"' in machine.ready()
    link, create, token = blocks_of("First administrator")
    assert "setup: http://127.0.0.1:8000/" in machine.run(link)
    machine.run(create, stdin=PASSWORD)
    machine.run(token)
    # The unit counts as started when the web answers, not before.
    assert "Type=notify" in machine.run("systemctl show facho --property=Type")
    ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/livez', timeout=5).status)"
    assert machine.run(f'systemctl restart facho && python3 -c "{ask}"').strip() == "200"
    play_a_day(machine)

    save, restore = blocks_of("Backup and restore")
    machine.run(save)
    machine.run(restore)
    assert "centro-1" in machine.run("sudo -u facho facho olt list")
    (rotate, *_others) = blocks_of("Rotate the encryption key")
    machine.run(rotate)

    commit_next(machine)
    before = machine.run("facho --version")
    (upgrade, *_the_way_back) = blocks_of("Upgrade")
    machine.run(upgrade)
    assert machine.run("facho --version") != before
    assert '"ready"' in machine.ready()
    assert "centro-1" in machine.run("sudo -u facho facho olt list")

    (remove,) = blocks_of("Remove")
    machine.run(remove)
    left = machine.run("ls -d /opt/facho* /etc/facho /var/lib/facho 2>/dev/null || true; getent passwd facho || true")
    assert left == ""


def test_the_previous_release_is_upgraded_with_its_data_and_comes_back(machine: Machine) -> None:
    """An upgrade and a rollback, rehearsed with the release before versions had folders of their own."""
    page = show("docs/operations.md")
    machine.run(f"git checkout --quiet --detach {PREVIOUS} && install -d -m 755 /etc/facho")
    install(machine, page)
    script = next(block for block in blocks_of("Install", page) if block.startswith("#!"))
    machine.run(f"cat > /usr/local/bin/facho <<'END'\n{script}END\nchmod 755 /usr/local/bin/facho")
    assert '"ready"' in machine.ready()
    add_olts(machine)
    machine.run("cat > /srv/rows.py; chmod 644 /srv/rows.py", stdin=ROWS.read_text())
    machine.run("sudo -u facho FACHO_DATA_DIR=/var/lib/facho /opt/facho/bin/python /srv/rows.py fill")
    machine.run("install -d -m 700 -o facho -g facho /var/backups/facho")
    before = rows_of(machine)

    (upgrade, back, move, renew) = blocks_of("Upgrade")
    machine.run(move)
    # What git pull brings: this checkout.
    machine.run("git branch next @{-1} && git checkout --quiet -b now && git config remote.origin.url $PWD/.git")
    machine.run("git config branch.now.remote origin && git config branch.now.merge refs/heads/next")
    machine.run(upgrade)
    assert '"ready"' in machine.ready()
    assert lost(before["tables"], rows_of(machine)["tables"], KEPT) == []
    assert rows_of(machine)["understood"] == before["understood"]

    machine.run("systemctl stop facho && readlink /opt/facho > /srv/newer && ln -sfn /opt/facho-old /opt/facho")
    refused = machine.try_to("sudo -u facho FACHO_LANGUAGE=en facho olt list")
    assert (refused.returncode != 0, "newer version" in refused.stderr) == (True, True)
    machine.run(back.replace("PREVIOUS", "old"))
    assert '"ready"' in machine.ready()
    assert rows_of(machine)["understood"] == before["understood"]
    assert lost(before["tables"], rows_of(machine)["tables"], KEPT) == []

    machine.run("systemctl stop facho && ln -sfn $(cat /srv/newer) /opt/facho && systemctl start facho")
    machine.run(renew)
    assert '"ready"' in machine.ready()


def rows_of(machine: Machine) -> dict[str, Any]:
    """Return what the version of the link reads in the database."""
    printed = machine.run("sudo -u facho FACHO_DATA_DIR=/var/lib/facho /opt/facho/bin/python /srv/rows.py print")
    found: dict[str, Any] = json.loads(printed)
    return found


def test_the_package_is_installed_upgraded_with_data_removed_and_purged(
    machine: Machine, packages: tuple[Path, Path]
) -> None:
    build, remove, purge, *_of_parts = blocks_of("As a Debian package")
    need, make, install_it, enable = build.splitlines()
    machine.run(f"{need}\n{make}")
    (place,) = (machine.root / "srv/facho/dist").glob("facho_*.deb")
    machine.run(f"{install_it} --yes\n{enable}")
    assert '"ready"' in machine.ready()
    assert_manual_and_completions_are_found(machine)
    add_olts(machine)
    shutil.copy(packages[1], place)
    machine.run(f"{install_it} --yes")
    assert '"ready"' in machine.ready()
    assert "centro-1" in machine.run("sudo -u facho facho olt list")
    with sqlite3.connect(f"file:{machine.root}/var/lib/facho/facho.sqlite3?mode=ro", uri=True) as database:
        assert database.execute("SELECT count(*) FROM later").fetchone() == (0,)

    machine.run(f"{remove.strip()} --yes && systemctl daemon-reload")
    assert machine.run("ls /var/lib/facho/facho.sqlite3; ls -d /opt/facho 2>/dev/null || true").split() == [
        "/var/lib/facho/facho.sqlite3"
    ]
    machine.run(f"{purge.strip()} --yes")
    left = machine.run("ls -d /var/lib/facho /etc/facho 2>/dev/null || true; getent passwd facho || true")
    assert (left, machine.try_to("dpkg -s facho").returncode) == ("", 1)


def assert_manual_and_completions_are_found(machine: Machine) -> None:
    assert "facho olt" in machine.run("man --warnings facho")
    assert "_facho" in machine.run(". /usr/share/bash-completion/completions/facho && complete -p facho")
    assert machine.run("zsh -c 'autoload -Uz compinit; compinit -u; echo $_comps[facho]'").strip() == "_facho"
    assert machine.run("fish -c 'complete -C \"facho olt imp\"'").startswith("import\t")


def test_the_package_of_the_parts_is_upgraded_by_the_lines_of_the_page(
    machine: Machine, packages: tuple[Path, Path]
) -> None:
    """The distributed product on one machine: nothing starts on a database that lacks the migration."""
    stop, install_it, migrate, start = blocks_of("As a Debian package")[3:]
    (machine.root / "srv/facho/dist").mkdir()
    place = machine.root / "srv/facho/dist/facho_1_amd64.deb"
    shutil.copy(packages[0], place)
    machine.run(f"{install_it.strip()} --yes")
    machine.run(f"systemctl start postgresql redis-server\n{SERVERS_OF_ITS_OWN}\n{migrate}\n{start}")
    assert '"ready"' in machine.ready()
    add_olts(machine)

    machine.run(stop)
    shutil.copy(packages[1], place)
    machine.run(f"{install_it.strip()} --yes")
    refused = machine.try_to("sudo -u facho FACHO_LANGUAGE=en facho olt list")
    assert (refused.returncode, "run `facho migrate`" in refused.stderr) == (1, True)
    machine.run(f"{migrate}\n{start}")
    assert '"ready"' in machine.ready()
    assert "centro-1" in machine.run("sudo -u facho facho olt list")
    assert machine.run("sudo -u postgres psql -Atc 'select count(*) from later' facho", folder="/").strip() == "0"


# Both servers and the settings for them, as the test of several machines sets them up by the page.
SERVERS_OF_ITS_OWN = """\
cd /
sudo -u postgres psql -c "create role facho login password 'abc123'"
sudo -u postgres createdb --owner=facho facho
printf '%s\\n' FACHO_MODE=distributed FACHO_SECRET_KEY_FILE=/etc/facho/secret-key \
  FACHO_ENCRYPTION_KEYS_FILE=/etc/facho/encryption-keys DATABASE_URL=postgresql://facho:abc123@127.0.0.1/facho \
  REDIS_URL=redis://127.0.0.1:6379/0 | install -m 640 -g facho /dev/stdin /etc/facho/facho.env
openssl rand -hex 30 | install -m 600 -o facho /dev/stdin /etc/facho/secret-key
openssl rand 32 | base64 | tr +/ -_ | install -m 600 -o facho /dev/stdin /etc/facho/encryption-keys
cd /srv/facho"""


def play_a_day(machine: Machine) -> None:
    """Run what the page has for OLTs and their runs: one OLT is the simulator's, the other is silent."""
    machine.give_addresses("192.0.2.10", "192.0.2.11")
    machine.run(
        "systemd-run --quiet /opt/facho/bin/facho simulate --vendor huawei_smartax --onus 256 --bind 192.0.2.10:161"
    )
    machine.run("cat > /tmp/olts.csv", stdin=OLTS.format("norte-1", "192.0.2.11"))
    (olts,) = blocks_of("OLTs")
    machine.run("cat > /srv/lines", stdin=olts)
    # The community is asked at a terminal, which forgets what was typed before it asked.
    typed = "(while sleep 1; do echo public; done)"
    assert "centro-1" in machine.run(f"{typed} | script --quiet --return --command 'bash -ex /srv/lines' /dev/null")
    nodes = json.loads(machine.run("sudo -u facho facho node list --json"))
    ids = {node["olt"]: node["id"] for node in reversed(nodes) if not node["master"]}

    # The silent one waits for its next try, and so can be cancelled.
    machine.run(f"sudo -u facho facho node run {ids['norte-1']}")
    unfinished = "sudo -u facho facho execution list --json"
    machine.run(f"for i in $(seq 120); do {unfinished} | grep -q WAITING && exit; sleep 1; done; exit 1")
    waiting = next(run["id"] for run in json.loads(machine.run(unfinished)) if run["status"] == "WAITING")
    (between,) = blocks_of("Between two runs")
    for line in re.sub(r"\b12\b", str(ids["centro-1"]), between).replace("4711", str(waiting)).splitlines():
        done = machine.try_to(line)
        # No node of this OLT is suspended, and it says so.
        assert done.returncode == (1 if "resume" in line else 0), done.stderr

    (questions,) = blocks_of("Questions by hand")
    place = machine.run("sudo -u facho facho snmp table centro-1 onu.run_state").splitlines()[-1].split()[0]
    assert "dBm" in machine.run(questions.replace("0/1/3/7", place))

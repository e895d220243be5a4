"""The role of deploy/ansible in a bare Debian that boots: it installs, then changes nothing, and upgrades with data."""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from bare_debian import ROOT, Machine, blocks_of

pytestmark = [pytest.mark.thorough("sqlite"), pytest.mark.slow, pytest.mark.any_database]

EXAMPLE = ROOT / "deploy/ansible/hosts.yml.example"


def play(machine: Machine, **variables: object) -> int:
    """Run the playbook of deploy/ansible on this machine itself, and return how many of its steps changed something."""
    inventory = {"facho": {"hosts": {"localhost": {"ansible_connection": "local"}}, "vars": variables}}
    (machine.root / "srv/hosts.yml").write_text(yaml.safe_dump(inventory))
    reported = machine.run(
        "LC_ALL=C.UTF-8 ansible-playbook -i /srv/hosts.yml site.yml", folder="/srv/facho/deploy/ansible"
    )
    counts = re.search(r"ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", reported)
    assert counts is not None, reported
    return int(counts[1])


def test_the_role_installs_once_and_upgrades_with_data(machine: Machine, packages: tuple[Path, Path]) -> None:
    for name, package in zip(("first", "second"), packages, strict=True):
        shutil.copy(package, machine.root / f"srv/{name}.deb")
    wanted = {"facho_package": "/srv/first.deb", "facho_settings": {"FACHO_TIME_ZONE": "America/Bogota"}}

    assert play(machine, **wanted) > 3
    assert '"ready"' in machine.ready()
    assert play(machine, **wanted) == 0

    machine.run("sudo -u facho facho user create ana --role admin", stdin="correct-horse-battery-7\n" * 2, folder="/")
    assert machine.run("stat -c '%U:%G %a' /etc/facho/facho.env").strip() == "root:facho 640"
    wanted["facho_settings"] = {"FACHO_TIME_ZONE": "UTC", "FACHO_LANGUAGE": "en"}
    # The settings, and the restart.
    assert play(machine, **wanted) == 2
    assert "ok       settings" in machine.run("sudo -u facho facho doctor", folder="/")

    wanted["facho_package"] = "/srv/second.deb"
    assert play(machine, **wanted) > 1
    assert '"ready"' in machine.ready()
    assert "ana" in machine.run("sudo -u facho facho user list", folder="/")
    assert machine.run("dpkg-query -W -f '${Version}' facho").endswith(".1")
    assert play(machine, **wanted) == 0


def test_the_role_brings_up_the_parts_on_postgresql_and_redis(machine: Machine, packages: tuple[Path, Path]) -> None:
    shutil.copy(packages[0], machine.root / "srv/first.deb")
    machine.run("systemctl start postgresql redis-server")
    machine.run("sudo -u postgres psql -c \"create role facho login password 'abc123'\"", folder="/")
    machine.run("sudo -u postgres createdb --owner=facho facho", folder="/")
    # The example of several machines, with what it leaves to the reader.
    several = EXAMPLE.read_text().split("# Secrets belong into a vault.\n#\n")[1]
    example = yaml.safe_load(re.sub("^# ?", "", several, flags=re.MULTILINE))["facho"]
    wanted = dict(example["vars"])
    wanted["facho_settings"] |= {
        "DATABASE_URL": "postgresql://facho:abc123@127.0.0.1:5432/facho",
        "REDIS_URL": "redis://127.0.0.1:6379/0",
    }
    # The keys are looked up where the page has them made, next to the playbook.
    machine.run(
        blocks_of("The two keys", (ROOT / "docs/configuration.md").read_text())[0],
        folder="/srv/facho/deploy/ansible",
    )
    parts = [*example["hosts"]["one.example.net"]["facho_parts"], "facho-traps"]

    assert play(machine, **{**wanted, "facho_package": "/srv/first.deb", "facho_parts": parts}) > 5
    assert '"ready"' in machine.ready()
    assert play(machine, **{**wanted, "facho_package": "/srv/first.deb", "facho_parts": parts}) == 0
    assert machine.run("cmp /etc/facho/secret-key /srv/facho/deploy/ansible/secret-key") == ""
    active = machine.run("systemctl is-active " + " ".join(parts)).split()
    assert active == ["active"] * len(parts)


def test_the_role_refuses_what_would_not_work(machine: Machine) -> None:
    for variables in (
        {"facho_package": ""},
        {"facho_package": "x.deb", "facho_parts": ["facho-web"]},
        {
            "facho_package": "x.deb",
            "facho_parts": ["facho", "facho-web"],
            "facho_settings": {"FACHO_MODE": "distributed"},
        },
        {"facho_package": "x.deb", "facho_settings": {"FACHO_LANGUAGE": "it's"}},
    ):
        with pytest.raises(AssertionError, match="Set facho_package to the package"):
            play(machine, **variables)

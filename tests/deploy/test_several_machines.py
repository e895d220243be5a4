"""The distributed product of docs/operations.md on two machines and a network of their own: its lines as they stand."""

import pytest
from bare_debian import ROOT, Machine, add_olts, blocks_of, commit_next, count_rows

from facho.core.product import BAD_CONFIGURATION

pytestmark = [pytest.mark.thorough("sqlite"), pytest.mark.slow, pytest.mark.any_database]

SERVERS, REACH, KEYS, SETTINGS, MIGRATE, PARTS, BEAT, PEOPLE = blocks_of("With systemd")
SAVE, STOP, RESTORE = blocks_of("Back up and restore the servers")
(ROTATE, FINISH) = blocks_of("Rotate the encryption key")[1:]
# Traps are off, so their port is free.
HEAR = 'import socket as s; u = s.socket(s.AF_INET, s.SOCK_DGRAM); u.bind(("", 1162)); print(u.recv(9), flush=True)'
SEND = 'import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b"trap", ("192.0.2.1", 162))'
PASSWORD = "correct-horse-battery-7\n" * 2


def on_all(machines: list[Machine], *blocks: str) -> None:
    for block in blocks:
        for machine in machines:
            machine.run(block)


def hand_over(machines: list[Machine], path: str, text: str) -> None:
    for machine in machines:
        machine.run(f"cat > {path}", stdin=text)


def assert_well(machines: list[Machine]) -> None:
    for machine in machines:
        assert '"ready"' in machine.ready()
        assert "error" not in machine.run("sudo -u facho facho doctor")


def install(machines: list[Machine]) -> None:
    first, second = machines
    on_all(machines, *blocks_of("Install")[:2], "echo '192.0.2.1 db.example.net redis.example.net' >> /etc/hosts")
    first.run(SERVERS, stdin="abc123\n" * 2)
    first.run(REACH.replace("PASSWORD", "def456"))
    first.run(blocks_of("The two keys", (ROOT / "docs/configuration.md").read_text())[0])
    for name in ("secret-key", "encryption-keys"):
        hand_over([second], name, first.run(f"cat {name}"))
    filled = SETTINGS.replace(":PASSWORD@db", ":abc123@db").replace(":PASSWORD@redis", ":def456@redis")
    hand_over(machines, "facho.env", filled)
    on_all(machines, KEYS)
    first.run(MIGRATE)
    on_all(machines, PARTS)
    second.run(BEAT)
    first.run(PEOPLE, stdin=PASSWORD)


def test_two_machines_from_install_to_upgrade(machines: list[Machine]) -> None:
    first, second = machines
    install(machines)
    assert_well(machines)
    add_olts(second)
    # The servers let nobody in without TLS or without a password.
    plain = "psql 'postgresql://facho:abc123@192.0.2.1/facho?sslmode=disable' --command 'select 1'"
    assert "no encryption" in second.try_to(plain).stderr
    assert "NOAUTH" in second.run("redis-cli -h 192.0.2.1 ping 2>&1")

    # What an OLT sends to port 162 arrives where Facho hears it.
    first.run(blocks_of("Traps")[0])
    first.run(
        f"systemd-run --quiet --unit=hear --remain-after-exit -p StandardOutput=file:/srv/heard python3 -c '{HEAR}'"
    )
    second.run(f"for i in $(seq 30); do python3 -c '{SEND}'; sleep 1; done &>/dev/null &")
    first.run("for i in $(seq 30); do grep -q trap /srv/heard && exit; sleep 1; done; exit 1")

    # Either scheduler takes over from the other.
    for machine in machines:
        machine.run("systemctl stop facho-scheduler")
        assert_well(machines)
        machine.run("systemctl start facho-scheduler")

    for block in (ROTATE, FINISH):
        first.run(block)
        hand_over([second], "/etc/facho/encryption-keys", first.run("cat /etc/facho/encryption-keys"))
    assert "ok       credentials" in second.run("sudo -u facho FACHO_LANGUAGE=en facho doctor")

    first.run(SAVE)
    assert first.run("stat -c %a /var/backups/facho/2025-06-01.dump").strip() == "600"
    on_all(machines, STOP)
    first.run("sudo -u postgres dropdb facho")
    first.run(RESTORE, stdin="abc123\n")
    on_all(machines, PARTS)
    second.run(BEAT)
    wait_for_leader(first)
    assert_well(machines)
    assert "centro-1" in second.run("sudo -u facho facho olt list")

    first.run(f"rm /var/backups/facho/2025-06-01.dump\n{SAVE}")
    before, rows = second.run("facho --version"), rows_of(first)
    previous = first.run("readlink /opt/facho").strip().removeprefix("/opt/facho-")
    prepare, stop, link, migrate, start, back, move = blocks_of("Upgrade them")
    for machine in machines:
        commit_next(machine)
    on_all(machines, prepare)
    # What is prepared changes nothing under the running parts.
    assert all('"ready"' in machine.ready() for machine in machines)
    on_all(machines, stop, link)
    assert first.run("systemctl list-units --plain --no-legend --state=active 'facho-*.service'") == ""
    first.run(migrate)
    on_all(machines, start)
    assert_well(machines)
    assert second.run("facho --version") != before
    assert rows_of(first, "later") == {"later": 0} | rows

    on_all(machines, stop, back.replace("PREVIOUS", previous))
    refused = second.try_to("sudo -u facho FACHO_LANGUAGE=en facho olt list")
    assert (refused.returncode, "newer version" in refused.stderr) == (BAD_CONFIGURATION, True)
    first.run(move)
    first.run(RESTORE, stdin="abc123\n")
    on_all(machines, PARTS)
    wait_for_leader(first)
    assert_well(machines)
    assert (second.run("facho --version"), rows_of(first)) == (before, rows)


def wait_for_leader(server: Machine) -> None:
    """A dump has the lease of its leader in it; another scheduler leads when that was not renewed for its length."""
    query = "select count(*) from zabbix_pollers_leaderlease where renewed_at > now() - interval '6 s'"
    ask = f'sudo -u postgres psql --dbname=facho -At --command "{query}"'
    server.run(f"for i in $(seq 120); do {ask} | grep -q 1 && exit; sleep 1; done; exit 1", folder="/")


def rows_of(server: Machine, *others: str) -> dict[str, int]:
    psql = "sudo -u postgres psql --dbname=facho -At --command"
    return count_rows(lambda query: server.run(f"{psql} '{query}'", folder="/"), "hosts_olt", *others)

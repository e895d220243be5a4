"""The simulator as a process: what it prints, and how it stops."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from facho.polling.snmp.ber import Pdu, PduKind, SnmpMessage, Tag, decode_message, encode_message
from facho.polling.snmp.oid import SYS_NAME
from facho.simulator.server import SimulatorConfig, run_simulator

START = (
    "import sys; from facho.simulator.server import SimulatorConfig; from facho.simulator.server import run_simulator;"
    "sys.exit(run_simulator(SimulatorConfig(vendor='huawei', olts=2, onus=5)))"
)


@contextmanager
def running() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", START], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask_name(host: str, port: int, community: str) -> object:
    request = SnmpMessage(1, community.encode(), Pdu(PduKind.GET, 1, 0, 0, [(SYS_NAME, Tag.NULL, None)]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as manager:
        manager.settimeout(5)
        manager.sendto(encode_message(request), (host, port))
        return decode_message(manager.recv(2_000)).pdu.varbinds[0][2]


def test_the_process_announces_serves_counts_and_stops() -> None:
    with running() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline().split() for _ in range(2)]
        name, host, port, vendor, community = lines[0]
        assert (name, host, vendor, community) == ("olt-001", "127.0.0.1", "huawei_smartax", "public")
        assert ask_name(host, int(port), community) == b"olt-001"

        process.send_signal(signal.SIGUSR1)
        on_signal = json.loads(process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        at_exit = json.loads(process.stderr.readline())

        assert process.wait(timeout=10) == 0
    assert on_signal == at_exit
    assert (at_exit["olt-001"]["requests"], at_exit["olt-002"]["requests"]) == (1, 0)
    assert at_exit["olt-001"]["max_in_flight"] == 1


def test_a_taken_port_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        status = run_simulator(SimulatorConfig(vendor="huawei", port=port))

    assert status == 1
    assert f"port {port}" in capsys.readouterr().err


def test_an_unknown_family_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_simulator(SimulatorConfig(vendor="nobody")) == 2
    assert "'nobody' is not one of" in capsys.readouterr().err

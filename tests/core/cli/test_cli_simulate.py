"""`facho simulate` and `facho olt probe`: two processes that talk real SNMP over UDP."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from cli_runner import CANARY, Command

COMMUNITY = "right-community"


@pytest.fixture
def simulated_olt(product_environ: dict[str, str]) -> Iterator[list[str]]:
    """A simulated OLT in a process of its own: the words of the line that it printed."""
    command = [sys.executable, "-m", "facho.core.cli.main", "simulate", "--vendor", "huawei", "--onus", "8"]
    with subprocess.Popen(
        [*command, "--community", COMMUNITY],
        env=product_environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def test_a_simulation_prints_a_line_for_each_olt_and_makes_no_folder(
    simulated_olt: list[str], product_environ: dict[str, str]
) -> None:
    _name, host, port, vendor, community = simulated_olt

    assert (host, vendor, community) == ("127.0.0.1", "huawei_smartax", COMMUNITY)
    assert 0 < int(port) < 65_536
    assert not Path(product_environ["FACHO_DATA_DIR"]).exists()


@pytest.mark.usefixtures("made_database")
def test_a_probe_tells_who_the_olt_is(simulated_olt: list[str], facho_process: Command) -> None:
    _name, host, port, *_ = simulated_olt
    facho_process("olt", "add", "centro", host, "--port", port, "--community-stdin", stdin=COMMUNITY.encode())

    done = facho_process("olt", "probe", "centro", "--json")

    report = json.loads(done.out)
    assert (done.status, done.err) == (0, "")
    assert (report["olt"], report["answered"], report["vendor"]) == ("centro", True, "huawei_smartax")


@pytest.mark.usefixtures("made_database")
def test_an_olt_without_jobs_stays_without_when_it_is_recognised(
    simulated_olt: list[str], facho_process: Command
) -> None:
    _name, host, port, *_ = simulated_olt
    add = ("olt", "add", "centro", host, "--port", port, "--community-stdin", "--no-jobs")
    facho_process(*add, stdin=COMMUNITY.encode())

    assert facho_process("olt", "probe", "centro").status == 0
    assert json.loads(facho_process("node", "list", "--json").out) == []


@pytest.mark.usefixtures("made_database")
def test_a_wrong_community_is_reported_without_showing_it(simulated_olt: list[str], facho_process: Command) -> None:
    _name, host, port, *_ = simulated_olt
    facho_process("olt", "add", "centro", host, "--port", port, "--community-stdin", stdin=CANARY.encode())

    done = facho_process("olt", "probe", "centro")

    assert done.status == 1
    assert "answered: no" in done.out
    assert done.err.startswith(f"facho: OLT centro: No answer. 127.0.0.1 did not answer on UDP port {port}.")
    assert "facho: - Type the community again" in done.err
    assert CANARY not in done.out + done.err


@pytest.mark.django_db
def test_an_unknown_olt_cannot_be_probed(facho: Command) -> None:
    done = facho("olt", "probe", "nobody")

    assert (done.status, done.err) == (1, 'facho: There is no OLT "nobody"; `facho olt list` shows them.\n')


@pytest.mark.parametrize(
    "option",
    [
        ("--bind", "here"),
        ("--bind", "h:99999"),
        ("--loss", "2"),
        ("--loss", "x"),
        ("--olts", "0"),
        ("--latency-ms", "-1"),
    ],
)
def test_a_simulation_that_cannot_be_is_wrong_use(facho: Command, option: tuple[str, str]) -> None:
    assert facho("simulate", *option).status == 2


def test_a_simulation_of_an_unknown_vendor_is_wrong_use(facho: Command) -> None:
    done = facho("simulate", "--vendor", "acme")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("facho: 'acme' is not one of")


def test_a_simulation_on_a_busy_port_is_refused(facho: Command) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])

        done = facho("simulate", "--vendor", "huawei", "--bind", f"127.0.0.1:{port}")

    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert port in done.err


def test_a_definition_of_the_data_folder_can_be_played(product_environ: dict[str, str]) -> None:
    folder = Path(product_environ["FACHO_DATA_DIR"]) / "definitions"
    folder.mkdir(parents=True)
    built_in = files("facho.polling.vendors") / "definitions/bdcom_gpon.yaml"
    (folder / "acme.yaml").write_text(built_in.read_text().replace("key: bdcom_gpon", "key: acme"))
    command = [sys.executable, "-m", "facho.core.cli.main", "simulate", "--vendor", "acme", "--onus", "8"]

    with subprocess.Popen(command, env=product_environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reported = process.stdout.readline().split()
        process.send_signal(signal.SIGTERM)

    assert reported[3] == "acme"


def test_a_definition_that_cannot_be_used_is_named(product_environ: dict[str, str], facho_process: Command) -> None:
    folder = Path(product_environ["FACHO_DATA_DIR"]) / "definitions"
    folder.mkdir(parents=True)
    (folder / "acme.yaml").write_text("key: acme\n")

    done = facho_process("simulate")

    assert (done.status, done.err) == (1, "facho: acme.yaml: confidence: is missing\n")

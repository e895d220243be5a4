"""The product as processes: it starts, it stops, and nothing is left behind, whatever was killed."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FACHO = [sys.executable, "-m", "facho.core.cli.main"]
# Ten times what a start or a stop takes on a quiet machine.
PATIENCE_SECONDS = 90

pytestmark = pytest.mark.slow


class Product:
    """A running `facho demo` or `facho run`, and what it printed so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: dict[str, str] = {}

    def read_until(self, key: str) -> str:
        assert self.process.stdout is not None
        while key not in self.lines:
            line = self.process.stdout.readline()
            assert line, f"ended before it printed {key}"
            name, _, value = line.partition(": ")
            self.lines[name] = value.strip()
        return self.lines[key]

    def children(self) -> set[int]:
        tasks = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(pid) for pid in tasks.read_text().split()}

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self.lines["url"] + path)  # noqa: S310 our own product
        if "token" in self.lines:
            request.add_header("Authorization", f"Bearer {self.lines['token']}")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 our own product
            return json.load(answer)


@contextmanager
def product(environ: Mapping[str, str], *arguments: str) -> Iterator[Product]:
    process = subprocess.Popen(
        [*FACHO, *arguments], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    running = Product(process)
    try:
        yield running
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < give_up_at, f"not in time: {what}"
        # Both cores belong to the product.
        select.select([], [], [], 0.05)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def small_demo(environ: Mapping[str, str]) -> Any:
    return product(environ, "demo", "--olts", "2", "--onus", "8", "--bind", "127.0.0.1:0")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**kept, "FACHO_DATA_DIR": str(tmp_path / "data"), "FACHO_LANGUAGE": "en"}


def test_the_demo_polls_stops_at_ctrl_c_and_finds_its_data_again(environ: dict[str, str]) -> None:
    with small_demo(environ) as demo:
        token = demo.read_until("token")
        wait_until(lambda: demo.get("/api/v1/onus/")["count"] == 16, "16 ONUs")
        children = demo.children()
        assert len(children) == 3
        demo.process.send_signal(signal.SIGINT)
        assert demo.process.wait(PATIENCE_SECONDS) == 0
        assert all(is_gone(pid) for pid in children)

    with small_demo(environ) as demo:
        assert demo.read_until("token") == token
        assert demo.get("/api/v1/onus/")["count"] == 16


def test_a_parent_killed_outright_takes_its_children_along(environ: dict[str, str]) -> None:
    with small_demo(environ) as demo:
        demo.read_until("token")
        children = demo.children()

        demo.process.kill()

        wait_until(lambda: all(is_gone(pid) for pid in children), "no process left")


def test_a_killed_engine_comes_back_and_goes_on(environ: dict[str, str]) -> None:
    with small_demo(environ) as demo:
        demo.read_until("token")
        wait_until(lambda: demo.get("/api/v1/onus/")["count"] == 16, "16 ONUs")
        before = demo.get("/api/v1/executions/")["count"]
        engine = next(pid for pid in demo.children() if "processes.engine" in Path(f"/proc/{pid}/cmdline").read_text())

        os.kill(engine, signal.SIGKILL)

        wait_until(lambda: demo.get("/api/v1/executions/")["count"] > before + 4, "more executions")


def test_a_killed_simulator_comes_back_where_its_olts_are_known(environ: dict[str, str]) -> None:
    with small_demo(environ) as demo:
        demo.read_until("token")
        wait_until(lambda: demo.get("/api/v1/onus/")["count"] == 16, "16 ONUs")
        ports = {olt["port"] for olt in demo.get("/api/v1/olts/")["results"]}
        simulator = next(p for p in demo.children() if "processes.simulator" in Path(f"/proc/{p}/cmdline").read_text())

        os.kill(simulator, signal.SIGKILL)

        wait_until(lambda: set(listening_udp_ports()) >= ports, "the same ports")


def listening_udp_ports() -> Iterator[int]:
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        yield int(line.split()[1].rpartition(":")[2], 16)


def test_a_second_start_of_the_demo_leaves_a_visitors_own_olt(environ: dict[str, str]) -> None:
    with small_demo(environ) as demo:
        demo.read_until("token")
    subprocess.run(
        [*FACHO, "olt", "add", "mine", "127.0.0.1", "--port", "9", "--no-jobs", "--community-stdin"],
        env=environ,
        check=True,
        capture_output=True,
        input="public\n",
        text=True,
    )

    with small_demo(environ) as demo:
        demo.read_until("token")
        assert "mine" in {olt["name"] for olt in demo.get("/api/v1/olts/")["results"]}


@pytest.mark.parametrize("bind", ["127.0.0.1:80000", "8000", "127.0.0.1:x"])
def test_an_address_that_is_none_is_wrong_use(environ: dict[str, str], bind: str) -> None:
    ended = subprocess.run([*FACHO, "run", "--bind", bind], env=environ, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 2
    assert "HOST:PORT" in ended.stderr


def test_a_first_run_prints_the_link_for_the_first_administrator(environ: dict[str, str]) -> None:
    with product(environ, "run", "--bind", "127.0.0.1:0") as run:
        link = run.read_until("setup")

        with urllib.request.urlopen(link, timeout=30) as page:  # noqa: S310 our own product
            assert page.status == 200
            assert b"password" in page.read()


def refusal(environ: Mapping[str, str], *arguments: str) -> str:
    ended = subprocess.run([*FACHO, *arguments], env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    return ended.stderr


def test_a_taken_port_is_named_with_the_way_out(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"

        assert f"Cannot listen on {bind}" in refusal(environ, "demo", "--bind", bind)


def test_a_data_folder_that_is_a_file_is_said_to_be_no_folder(environ: dict[str, str]) -> None:
    Path(environ["FACHO_DATA_DIR"]).write_text("")

    assert "data: Not a directory. Set FACHO_DATA_DIR" in refusal(environ, "run", "--bind", "127.0.0.1:0")


def test_a_second_product_on_one_folder_is_refused(environ: dict[str, str]) -> None:
    with product(environ, "run", "--bind", "127.0.0.1:0") as run:
        run.read_until("setup")
        lock = Path(environ["FACHO_DATA_DIR"]) / "engine.lock"
        wait_until(lock.exists, "the engine's lock")

        wait_until(lambda: "already runs" in refusal(environ, "run", "--bind", "127.0.0.1:0"), "a refusal")


def test_the_demo_leaves_a_folder_with_real_data_alone(environ: dict[str, str]) -> None:
    subprocess.run([*FACHO, "olt", "list"], env=environ, check=True, capture_output=True)

    assert "holds real data" in refusal(environ, "demo", "--bind", "127.0.0.1:0")


def test_the_embedded_product_is_refused_in_distributed_mode(environ: dict[str, str]) -> None:
    environ["FACHO_MODE"] = "distributed"

    ended = subprocess.run([*FACHO, "run"], env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS)

    assert ended.returncode == 1
    assert "DATABASE_URL" in ended.stderr
    assert "Traceback" not in ended.stderr

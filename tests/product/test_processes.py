"""The product as processes: it starts, it stops, and nothing is left behind, whatever was killed."""

import json
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from facho.core.product import BAD_CONFIGURATION
from facho.polling.domain.lease import all_shards
from facho.zabbix_pollers.store import lease_name
from servers.product_folder import give_database, give_demo

FACHO = [sys.executable, "-m", "facho.core.cli.main"]
# Ten times what a start or a stop takes on a quiet machine.
PATIENCE_SECONDS = 90
# Those that answer requests; one more watches the leader.
WEB_THREADS = 8
ARENA_BYTES = 64 << 20

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

    def child(self, name: str) -> int:
        cmdlines = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in self.children()}
        return next(pid for pid, cmdline in cmdlines.items() if f"processes.{name}" in cmdline)

    def engines(self) -> dict[int, int]:
        """The processes of the engines, by their numbers."""
        cmdlines = {pid: Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in self.children()}
        module = "facho.core.processes.engine"
        return {int(line[line.index(module) + 1]): pid for pid, line in cmdlines.items() if module in line}

    def is_ready(self) -> bool:
        try:
            return bool(self.get("/readyz")["status"] == "ready")
        except AssertionError:
            return False

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self.lines["url"] + path)  # noqa: S310 our own product
        if "token" in self.lines:
            request.add_header("Authorization", f"Bearer {self.lines['token']}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 our own product
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise AssertionError(f"{path}: {refusal.code} {refusal.read().decode()}") from None


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


def load_column(environ: Mapping[str, str], statement: str, *values: object) -> set[str]:
    """Ask the product's PostgreSQL database for one column."""
    with psycopg.connect(environ["DATABASE_URL"]) as connection:
        return {text for (text,) in connection.execute(statement.encode(), values)}


def leaders(environ: Mapping[str, str], engine: str) -> set[str]:
    """Return the process that holds the lease of an engine."""
    owners = load_column(environ, "SELECT owner FROM zabbix_pollers_leaderlease WHERE name = %s", f"scheduler {engine}")
    return {owner.split("/")[2] for owner in owners}


def leases(environ: Mapping[str, str]) -> set[str]:
    return load_column(environ, "SELECT name FROM zabbix_pollers_leaderlease")


def owners_of_unfinished(environ: Mapping[str, str]) -> set[str]:
    """Return the processes that hold an OLT."""
    statement = "SELECT owner FROM snmp_executions WHERE finished_at IS NULL AND status IN ('PENDING', 'RUNNING')"
    return {owner.split("/")[2] for owner in load_column(environ, statement)}


def names_of(count: int) -> set[str]:
    return {lease_name(shard) for shard in all_shards(count)}


def small_demo(environ: Mapping[str, str]) -> Any:
    return product(environ, "demo", "--olts", "2", "--onus", "8", "--bind", "127.0.0.1:0")


def embedded_environ(data: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**kept, "FACHO_DATA_DIR": str(data), "FACHO_LANGUAGE": "en"}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return embedded_environ(tmp_path / "data")


@pytest.fixture
def demo_environ(environ: dict[str, str]) -> dict[str, str]:
    """Of a demo that was started before."""
    give_demo(Path(environ["FACHO_DATA_DIR"]))
    return environ


@pytest.fixture(scope="module")
def polled_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One demo for all tests after which it goes on; its ONUs are known."""
    data = tmp_path_factory.mktemp("demo") / "data"
    give_demo(data)
    with small_demo(embedded_environ(data)) as demo:
        demo.read_until("token")
        wait_until(lambda: demo.get("/api/v1/onus/")["count"] == 16, "16 ONUs")
        yield demo


@pytest.fixture(scope="module")
def service_manager() -> Iterator[socket.socket]:
    """What systemd is to a unit of the type notify."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.settimeout(PATIENCE_SECONDS)
        heard.bind(f"\0facho-{os.urandom(8).hex()}")
        yield heard


@pytest.fixture(scope="module")
def first_run(
    tmp_path_factory: pytest.TempPathFactory, service_manager: socket.socket
) -> Iterator[tuple[Product, dict[str, str]]]:
    """One product in an empty folder, for all tests that look at it."""
    environ = embedded_environ(tmp_path_factory.mktemp("run") / "data")
    environ["NOTIFY_SOCKET"] = service_manager.getsockname().decode().replace("\0", "@")
    with product(environ, "run", "--bind", "127.0.0.1:0") as run:
        run.read_until("setup")
        yield run, environ


def test_the_demo_polls_stops_at_ctrl_c_and_finds_its_data_and_a_visitors_olt_again(environ: dict[str, str]) -> None:
    with small_demo(environ) as demo:
        token = demo.read_until("token")
        wait_until(lambda: demo.get("/api/v1/onus/")["count"] == 16, "16 ONUs")
        children = demo.children()
        assert len(children) == 4
        demo.process.send_signal(signal.SIGINT)
        assert demo.process.wait(PATIENCE_SECONDS) == 0
        assert all(is_gone(pid) for pid in children)
    subprocess.run(
        [*FACHO, "olt", "add", "mine", "127.0.0.1", "--port", "9", "--no-jobs", "--community-stdin"],
        env=environ,
        check=True,
        capture_output=True,
        input="public\n",
        text=True,
    )

    with small_demo(environ) as demo:
        assert demo.read_until("token") == token
        assert demo.get("/api/v1/onus/")["count"] == 16
        assert "mine" in {olt["name"] for olt in demo.get("/api/v1/olts/")["results"]}


@pytest.mark.postgresql
def test_three_engines_share_the_olts_and_one_that_dies_comes_back_to_its_own(product_environ: dict[str, str]) -> None:
    """Each OLT is asked by one of them; the dead one is named, and takes its lease and its runs up again at once."""
    environ = {**product_environ, "FACHO_ENGINES": "3", "FACHO_LEASE_SECONDS": "600"}
    with product(environ, "demo", "--olts", "4", "--onus", "8", "--bind", "127.0.0.1:0") as demo:
        demo.read_until("token")
        wait_until(lambda: demo.get("/api/v1/onus/")["count"] == 32, "32 ONUs")
        wait_until(demo.is_ready, "ready")
        engines = demo.engines()
        assert len(engines) == 3

        os.kill(engines[2], signal.SIGKILL)

        wait_until(lambda: demo.engines().get(2, engines[2]) != engines[2], "engine 2 again")
        assert {number: pid for number, pid in demo.engines().items() if number != 2} == {
            number: pid for number, pid in engines.items() if number != 2
        }
        # Had the lease to run out first, it would take ten minutes.
        wait_until(lambda: leaders(environ, "2/3") == {str(demo.engines()[2])}, "engine 2 leads again")
        asked_by = "SELECT DISTINCT concat(olt_id %% 3 + 1, ' ', split_part(owner, '/', 3)) FROM snmp_executions"
        former_and_present = {*engines.items(), *demo.engines().items()}
        assert load_column(environ, asked_by) <= {f"{number} {pid}" for number, pid in former_and_present}


@pytest.mark.postgresql
@pytest.mark.parametrize(("before", "after"), [("3", "2"), pytest.param("1", "3", marks=pytest.mark.thorough)])
def test_another_number_of_engines_after_a_kill_takes_everything_over(
    before: str, after: str, product_environ: dict[str, str]
) -> None:
    """The leases of engines that are no more confuse nobody, and their claims are free at once."""
    environ = {**product_environ, "FACHO_LEASE_SECONDS": "600"}
    with small_demo({**environ, "FACHO_ENGINES": before}) as demo:
        demo.read_until("token")
        wait_until(lambda: demo.get("/api/v1/onus/")["count"] == 16, "16 ONUs")
        left = demo.children()
        for pid in (demo.process.pid, *left):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: all(is_gone(pid) for pid in left), "no process left")

    with small_demo({**environ, "FACHO_ENGINES": after}) as demo:
        demo.read_until("token")
        wait_until(demo.is_ready, "ready")
        wait_until(lambda: leases(environ) == names_of(int(after)), "the leases of the new engines alone")
        engines = set(map(str, demo.engines().values()))
        wait_until(lambda: owners_of_unfinished(environ) <= engines, "no claim of a dead engine")


def test_a_parent_killed_outright_takes_its_children_along(demo_environ: dict[str, str]) -> None:
    with small_demo(demo_environ) as demo:
        demo.read_until("token")
        children = demo.children()

        demo.process.kill()

        wait_until(lambda: all(is_gone(pid) for pid in children), "no process left")


def test_the_threads_of_the_engine_share_their_memory(polled_demo: Product) -> None:
    engine = polled_demo.child("engine")

    assert len(list(Path(f"/proc/{engine}/task").iterdir())) > 4
    assert thread_arenas(engine) <= 1


@pytest.mark.parametrize("rounds", [2, pytest.param(8, marks=pytest.mark.thorough)])
def test_a_thousand_requests_leave_the_web_as_large_as_hundreds(polled_demo: Product, rounds: int) -> None:
    web = polled_demo.child("web")
    ask(polled_demo, 500)
    warm = resident_kb(web)

    opened = []
    for _ in range(rounds):
        ask(polled_demo, 100)
        opened.append(open_databases(web))

    assert max(opened) <= 2 * (WEB_THREADS + 1)
    assert resident_kb(web) < warm * 1.05


def test_a_killed_simulator_comes_back_where_its_olts_are_known(polled_demo: Product) -> None:
    ports = {olt["port"] for olt in polled_demo.get("/api/v1/olts/")["results"]}
    killed = polled_demo.child("simulator")

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: is_gone(killed) and set(listening_udp_ports()) >= ports, "the same ports")


def test_a_killed_engine_comes_back_and_goes_on(polled_demo: Product) -> None:
    before = polled_demo.get("/api/v1/executions/")["count"]

    os.kill(polled_demo.child("engine"), signal.SIGKILL)

    wait_until(lambda: polled_demo.get("/api/v1/executions/")["count"] > before + 4, "more executions")


def ask(demo: Product, requests: int) -> None:
    """Ask over as many connections, so many at a time that every thread has its part."""
    paths = ("/api/v1/olts/", "/api/v1/onus/", "/api/v1/executions/")
    with ThreadPoolExecutor(2 * WEB_THREADS) as clients:
        list(clients.map(lambda number: demo.get(paths[number % len(paths)]), range(requests)))


def open_databases(pid: int) -> int:
    files = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
    return sum(file.endswith((".sqlite3", ".sqlite3-wal")) for file in files)


def resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def thread_arenas(pid: int) -> int:
    """Count what malloc keeps for threads beside its main heap: 64 MB of addresses each, in use and reserved."""
    spans = [line.split()[0].split("-") for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    ends = [(int(start, 16), int(end, 16)) for start, end in spans]
    pairs = ((used[0], reserved[1]) for used, reserved in pairwise(ends) if used[1] == reserved[0])
    return sum(start % ARENA_BYTES == 0 and end - start == ARENA_BYTES for start, end in pairs)


def listening_udp_ports() -> Iterator[int]:
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        yield int(line.split()[1].rpartition(":")[2], 16)


@pytest.mark.parametrize("bind", ["127.0.0.1:80000", "8000", "127.0.0.1:x"])
def test_an_address_that_is_none_is_wrong_use(environ: dict[str, str], bind: str) -> None:
    ended = subprocess.run([*FACHO, "run", "--bind", bind], env=environ, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 2
    assert "HOST:PORT" in ended.stderr


def test_a_first_run_prints_the_link_for_the_first_administrator(first_run: tuple[Product, dict[str, str]]) -> None:
    link = first_run[0].read_until("setup")

    with urllib.request.urlopen(link, timeout=30) as page:  # noqa: S310 our own product
        assert page.status == 200
        assert b"password" in page.read()


def test_systemd_hears_once_that_the_product_is_ready(
    first_run: tuple[Product, dict[str, str]], service_manager: socket.socket
) -> None:
    assert service_manager.recv(64) == b"READY=1"
    with urllib.request.urlopen(f"{first_run[0].lines['url']}/livez", timeout=30) as page:  # noqa: S310 our own product
        assert page.status == 200
    # Web and engine inherit the address, and speak for nobody.
    service_manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        service_manager.recv(64)


def test_the_product_ends_once_the_database_is_newer_and_does_not_start_again(environ: dict[str, str]) -> None:
    data = Path(environ["FACHO_DATA_DIR"])
    give_database(data)
    with product(environ, "run", "--bind", "127.0.0.1:0") as run:
        run.read_until("url")
        children = run.children()
        with closing(sqlite3.connect(data / "facho.sqlite3", timeout=30)) as database, database:
            database.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('hosts', '0999_later', 'now')")

        assert run.process.wait(PATIENCE_SECONDS) == BAD_CONFIGURATION
        assert run.process.stderr is not None
        ended = run.process.stderr.read()

    again = subprocess.run([*FACHO, "run"], env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (again.returncode, all(map(is_gone, children))) == (BAD_CONFIGURATION, True)
    for said in (ended, again.stderr):
        assert "made by a newer version of Facho (hosts.0999_later)" in said
        assert "Traceback" not in said


def refusal(environ: Mapping[str, str], *arguments: str, status: int = 1) -> str:
    ended = subprocess.run([*FACHO, *arguments], env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    return ended.stderr


def test_a_taken_port_is_named_with_the_way_out(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"

        assert f"Cannot listen on {bind}" in refusal(environ, "demo", "--bind", bind)


def test_a_data_folder_that_is_a_file_is_said_to_be_no_folder(environ: dict[str, str]) -> None:
    Path(environ["FACHO_DATA_DIR"]).write_text("")

    message = refusal(environ, "run", "--bind", "127.0.0.1:0", status=BAD_CONFIGURATION)

    assert "data: Not a directory. Set FACHO_DATA_DIR" in message


def test_a_second_product_on_one_folder_is_refused(first_run: tuple[Product, dict[str, str]]) -> None:
    environ = first_run[1]
    lock = Path(environ["FACHO_DATA_DIR"]) / "engine.lock"
    wait_until(lock.exists, "the engine's lock")

    wait_until(lambda: "already runs" in refusal(environ, "run", "--bind", "127.0.0.1:0"), "a refusal")


def test_the_demo_leaves_a_folder_with_real_data_alone(environ: dict[str, str]) -> None:
    give_database(Path(environ["FACHO_DATA_DIR"]))

    assert "contains real data" in refusal(environ, "demo", "--bind", "127.0.0.1:0")


def test_the_embedded_product_is_refused_in_distributed_mode(environ: dict[str, str]) -> None:
    environ["FACHO_MODE"] = "distributed"

    ended = subprocess.run([*FACHO, "run"], env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS)

    assert ended.returncode == BAD_CONFIGURATION
    assert "DATABASE_URL" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_every_line_that_the_product_prints_is_json_where_its_log_is(environ: dict[str, str], tmp_path: Path) -> None:
    give_database(Path(environ["FACHO_DATA_DIR"]))
    printed = tmp_path / "printed"
    environ |= {"FACHO_LOG_FORMAT": "json", "FACHO_ALLOWED_HOSTS": "*"}
    with printed.open("wb") as log:
        process = subprocess.Popen([*FACHO, "run", "--bind", "127.0.0.1:0"], env=environ, stdout=log, stderr=log)
        wait_until(lambda: process.poll() is not None or "Ready." in printed.read_text(), "ready")
        process.terminate()

        assert process.wait(PATIENCE_SECONDS) == 0

    messages = [json.loads(line)["message"] for line in printed.read_text().splitlines()]
    assert [message for message in messages if message.startswith(("url: ", "setup: ", "Stopped."))]
    assert any("engine.started" in message for message in messages)

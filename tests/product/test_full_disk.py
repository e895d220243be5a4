"""A real product on a real small disk: full, damaged, and well again."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from servers.cluster import wait_until
from servers.product_folder import give_demo

FACHO = [sys.executable, "-m", "facho.core.cli.main"]
DEMO = ["demo", "--olts", "2", "--onus", "8", "--bind", "127.0.0.1:0"]
# In a namespace of its own: a mount that ends with its process, and needs no root where users may have namespaces.
NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
EXECUTE = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 60, isolation_level=None).execute(sys.argv[2]).fetchall()"
DISK_MEGABYTES = 96
# Ten times what these things take on a quiet machine.
PATIENCE_SECONDS = 120

pytestmark = [pytest.mark.slow, pytest.mark.any_database]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: str

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Product:
    """A running product whose data folder is on a disk of its own."""

    process: subprocess.Popen[str]
    disk: Path
    log: Path
    lines: dict[str, str]

    def read_until(self, key: str) -> str:
        assert self.process.stdout is not None
        while key not in self.lines:
            line = self.process.stdout.readline()
            assert line, self.log.read_text()
            name, _, value = line.partition(": ")
            self.lines[name] = value.strip()
        return self.lines[key]

    def ask(self, path: str, body: object = None) -> Answer:
        request = urllib.request.Request(self.lines["url"] + path)  # noqa: S310 our own product
        request.add_header("Authorization", f"Bearer {self.lines.get('token', '')}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 our own product
                return Answer(answer.status, dict(answer.headers), answer.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read().decode())

    def readiness(self) -> str:
        """Return `ready`, or the code of what hinders it."""
        answer = self.ask("/readyz")
        return "ready" if answer.status == 200 else str(answer.json()["code"])

    def count(self, what: str) -> int:
        answer = self.ask(f"/api/v1/{what}/")
        return int(answer.json()["count"]) if answer.status == 200 else 0

    @property
    def inside(self) -> Path:
        """The disk as the product sees it."""
        return Path(f"/proc/{self.process.pid}/root{self.disk}")

    def execute(self, statement: str) -> None:
        """Change the database where it lies: SQLite would look for the path of `inside` on our own disk."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        command = ["nsenter", "--target", str(self.process.pid), *user, "--mount", sys.executable, "-c", EXECUTE]
        done = [*command, str(self.disk / "data" / "facho.sqlite3"), statement]
        subprocess.run(done, check=True, timeout=PATIENCE_SECONDS)

    def fill_disk(self) -> None:
        """Leave nothing, not even half a page."""
        with (self.inside / "filler").open("ab", buffering=0) as filler:
            for size in (1024**2, 512):
                while _fits(filler.write, bytes(size)):
                    pass

    def free_disk(self) -> None:
        (self.inside / "filler").unlink()


def _fits(write: Callable[[bytes], object], content: bytes) -> bool:
    try:
        return write(content) == len(content)
    except OSError:
        return False


@contextmanager
def polled_demo(folder: Path) -> Iterator[Product]:
    """Run the demo on a small disk, which is gone in the end."""
    disk, log = folder / "disk", folder / "log"
    disk.mkdir()
    give_demo(folder / "made")
    mount = f'mount -t tmpfs -o size={DISK_MEGABYTES}m,mode=0700 tmpfs "{disk}"'
    script = f'{mount} && cp -a "{folder}/made" "{disk}/data" && exec "$@"'
    with started([*NAMESPACE, "sh", "-c", script, "sh", *FACHO, *DEMO], disk / "data", log) as process:
        yield Product(process, disk, log, {})


@contextmanager
def started(command: Sequence[str], data: Path, log: Path) -> Iterator["subprocess.Popen[str]"]:
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environ = {**kept, "FACHO_DATA_DIR": str(data), "FACHO_LANGUAGE": "en", "FACHO_LOG_LEVEL": "WARNING"}
    with log.open("ab") as errors:
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)


def wait_for(is_true: Callable[[], bool], what: str) -> float:
    began_at = time.monotonic()
    wait_until(is_true, what, seconds=PATIENCE_SECONDS)
    return time.monotonic() - began_at


def refused_rows(demo: Product) -> list[Answer]:
    answers = [demo.ask(f"/api/v1/{name}/") for name in ("executions", "onus")]
    return [answer for answer in answers if answer.status == 503]


def begin(demo: Product) -> None:
    demo.read_until("token")
    wait_for(lambda: demo.count("onus") == 16, "16 ONUs")
    wait_for(lambda: demo.readiness() == "ready", "ready")


def test_a_full_disk_is_said_everywhere_and_polling_goes_on_by_itself(tmp_path: Path) -> None:
    with polled_demo(tmp_path) as demo:
        begin(demo)
        demo.execute("UPDATE alerts_alertrule SET hold_minutes = 0 WHERE kind = 'no_leader'")

        demo.fill_disk()
        seconds = wait_for(lambda: demo.readiness() == "disk_full", "not ready")

        assert seconds < 30
        assert demo.ask("/livez").status == 200
        assert "The disk of the database is full. Free some space" in demo.ask("/readyz").body
        assert "Nothing is polled." in demo.ask("/login/").body
        # The reserve lets it be written down and reported.
        wait_for(lambda: "Nothing is polled. The disk of the database is full" in alerts(demo), "an alert")
        before = demo.count("executions")

        demo.free_disk()

        wait_for(lambda: demo.readiness() == "ready", "ready again")
        wait_for(lambda: demo.count("executions") > before + 2, "polls again")
        wait_for(lambda: '"state":"resolved"' in alerts(demo), "the end of the alert")
        assert "Nothing is polled." not in demo.ask("/login/").body
    assert "Traceback" not in demo.log.read_text()


def alerts(demo: Product) -> str:
    return demo.ask("/api/v1/alerts/").body


def test_without_any_room_at_all_changes_are_refused_and_the_log_stays_short(tmp_path: Path) -> None:
    with polled_demo(tmp_path) as demo:
        begin(demo)
        # A log that is as long as ever would still take writes into itself.
        demo.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        lines = demo.log.read_text().count("\n")
        demo.fill_disk()
        wait_for(lambda: not (demo.inside / "data" / "disk-reserve").exists(), "the reserve released")
        demo.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        demo.fill_disk()

        refused = refuse_change(demo)
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.json()["type"] == "urn:facho:problem:disk-full"
        assert demo.readiness() == "disk_full"
        hold_for(15)
        assert demo.readiness() == "disk_full"
        assert demo.log.read_text().count("\n") - lines <= 10

        demo.free_disk()
        wait_for(lambda: demo.readiness() == "ready", "ready again")
        before = demo.count("executions")
        wait_for(lambda: demo.count("executions") > before + 2, "polls again")
    assert "Traceback" not in demo.log.read_text()


def hold_for(seconds: float) -> None:
    """Let everything that repeats itself meet the full disk."""
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > until, "time passes", seconds=seconds + PATIENCE_SECONDS)


def refuse_change(demo: Product) -> Answer:
    """Change things until there is no room for one more."""
    for number in range(1, 250):
        olt = {"name": f"new-{number}", "host": f"127.1.0.{number}", "community": "canary"}
        answer = demo.ask("/api/v1/olts/", body=olt)
        if answer.status not in (200, 201):
            assert answer.status == 503, answer
            return answer
    raise AssertionError("there was room for everything")


@pytest.fixture
def well_filled(tmp_path: Path) -> Path:
    """A data folder that was polled into, with a table in the middle of its file, and a backup."""
    data = tmp_path / "data"
    give_demo(data)
    with started([*FACHO, *DEMO], data, tmp_path / "log") as process:
        demo = Product(process, data, tmp_path / "log", {})
        begin(demo)
    with closing(sqlite3.connect(data / "facho.sqlite3")) as database:
        database.execute("CREATE TABLE ballast (x)")
        database.executemany("INSERT INTO ballast VALUES (randomblob(3000))", [()] * 3000)
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert command(data, "backup", str(tmp_path / "monday.backup"))[0] == 0
    return data


def spoil(database: Path) -> None:
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(os.urandom(200_000))


def command(data: Path, *arguments: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environ = {**kept, "FACHO_DATA_DIR": str(data), "FACHO_LANGUAGE": "en"}
    done = subprocess.run(
        [*FACHO, *arguments], env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_garbage_in_the_middle_of_the_database_is_named_and_leads_to_the_backup(
    well_filled: Path, tmp_path: Path
) -> None:
    assert "no damage found" in command(well_filled, "doctor")[1]
    spoil(well_filled / "facho.sqlite3")

    status, reported = command(well_filled, "doctor")
    assert status == 1
    assert f"facho restore {tmp_path / 'monday.backup'}" in reported

    with started([*FACHO, *DEMO], well_filled, tmp_path / "log") as process:
        demo = Product(process, well_filled, tmp_path / "log", {})
        demo.read_until("token")
        wait_for(lambda: demo.readiness() == "damaged", "not ready")
        assert "facho restore FILE" in demo.ask("/readyz").body
        assert "The database is damaged." in demo.ask("/login/").body
    assert "database.damaged file=" in (tmp_path / "log").read_text()

    well_filled.rename(tmp_path / "spoiled")
    assert command(well_filled, "restore", str(tmp_path / "monday.backup"))[0] == 0
    assert "no damage found" in command(well_filled, "doctor")[1]


def test_damage_that_happens_while_it_runs_ends_polling_and_is_said(tmp_path: Path) -> None:
    data = tmp_path / "data"
    give_demo(data)
    with started([*FACHO, *DEMO], data, tmp_path / "log") as process:
        demo = Product(process, data, tmp_path / "log", {})
        begin(demo)
        with closing(sqlite3.connect(data / "facho.sqlite3", timeout=60)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            query = "SELECT rootpage FROM sqlite_master WHERE name LIKE 'snmp_executions%' OR name LIKE 'onus_onu%'"
            pages = [page for (page,) in database.execute(query)]
        with (data / "facho.sqlite3").open("r+b") as file:
            for page in pages:
                file.seek((page - 1) * 4096)
                file.write(os.urandom(4096))

        wait_for(lambda: demo.readiness() == "damaged", "not ready")
        # The engine may write a page again that it had read before: then what is on it can be read.
        refused: list[Answer] = []
        wait_for(lambda: bool(refused.extend(refused_rows(demo)) or refused), "the API says so")

        assert {answer.json()["type"] for answer in refused} == {"urn:facho:problem:damaged"}
    log = (tmp_path / "log").read_text()
    assert "storage.failed why=damaged" in log
    assert "Traceback" not in log

"""Commands as processes of their own, `facho demo` above all, and what a test asks of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

FACHO = str(Path(sys.executable).with_name("facho"))
ROWS = Path(__file__).with_name("demo_rows.py")
# Starting, polling, storing and refreshing take seconds; a busy machine takes longer.
PATIENCE_SECONDS = 240
PATIENCE_MS = PATIENCE_SECONDS * 1000
# As many as `facho demo` has when nobody says how many.
OLTS, ONUS = 6, 160


@dataclass(frozen=True, slots=True)
class Demo:
    """Where a running demo is, and how to get in."""

    url: str
    user: str
    password: str
    token: str
    environ: dict[str, str]

    def ask(self, path: str) -> list[dict[str, Any]]:
        """Read the first page of a list of the API."""
        request = Request(f"{self.url}/api/v1/{path}", headers={"Authorization": f"Bearer {self.token}"})  # noqa: S310
        with urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 our own address
            return list(json.load(answer)["results"])

    def run_everything(self) -> None:
        """Ask for a run of every master now: pictures show pollers at work."""
        for node in self.ask("nodes/?page_size=200&enabled=true"):
            if not node["is_chain_node"]:
                address = f"{self.url}/api/v1/pollers/nodes/{node['id']}/run/"
                head = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
                with urlopen(Request(address, b"{}", head, method="POST"), timeout=PATIENCE_SECONDS):  # noqa: S310
                    pass

    def put(self, path: str, body: dict[str, Any]) -> None:
        """Write something over the API."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = json.dumps(body).encode()
        request = Request(f"{self.url}/api/v1/{path}", content, headers, method="PUT")  # noqa: S310 our own address
        with urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 our own address
            answer.read()

    def name_jobs(self, language: str) -> None:
        """Call the jobs as an installation in that language does."""
        subprocess.run([sys.executable, ROWS, language], env=self.environ, check=True, timeout=PATIENCE_SECONDS)


@contextmanager
def running_demo(folder: Path) -> Iterator[Demo]:
    """Start the demo as a visitor does."""
    environ = embedded_environ(folder)
    with started(["demo", "--bind", "127.0.0.1:0"], environ) as process:
        url, login, token = (read_line(process, f"{name}: ") for name in ("url", "login", "token"))
        user, password = login.split()
        yield Demo(url, user, password, token, environ)


def embedded_environ(folder: Path) -> dict[str, str]:
    """Return the environment of a product that has this folder and nothing else."""
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**environ, "FACHO_DATA_DIR": str(folder)}


@contextmanager
def started(arguments: list[str], environ: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """Start a command, and end it as Ctrl-C does."""
    with subprocess.Popen([FACHO, *arguments], env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 0


def read_line(process: "subprocess.Popen[str]", begins: str) -> str:
    """Read until a line begins so, and return the rest of it."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(begins):
            return line.removeprefix(begins).strip()
    raise AssertionError(f"no line began with {begins!r}")

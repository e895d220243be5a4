"""The product as processes beside hostile and honest simulated OLTs, seen from outside."""

import csv
import os
import select
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.product_folder import give_database

FACHO = [sys.executable, "-m", "facho.core.cli.main"]
HEADER = ("name", "host", "port", "vendor", "version", "community")
LOOK_SECONDS = 0.25
COMMAND_SECONDS = 120


@dataclass(frozen=True, slots=True)
class OltLine:
    """An OLT as the simulator announces it."""

    name: str
    host: str
    port: str
    vendor: str
    community: str


@dataclass(frozen=True, slots=True)
class Product:
    """A running `facho run`."""

    process: subprocess.Popen[str]
    environ: Mapping[str, str]

    @property
    def engine_peak_mb(self) -> float:
        """The most memory that the engine ever held, as the kernel noted it."""
        return self.peak_mb("processes.engine")

    def peak_mb(self, module: str) -> float:
        """The most memory that a child ever held, by a part of its command line."""
        lines = Path(f"/proc/{self.child(module)}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM"))

    def child(self, module: str) -> int:
        """Return the process id of a child."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(pid) for pid in children if module in Path(f"/proc/{pid}/cmdline").read_text())

    def look(self) -> None:
        """Let a moment pass: the cores belong to the product and the OLTs."""
        select.select([], [], [], LOOK_SECONDS)

    def command(self, *arguments: str) -> None:
        """Run a command of the product."""
        subprocess.run(
            [*FACHO, *arguments], env=self.environ, stdout=subprocess.DEVNULL, timeout=COMMAND_SECONDS, check=True
        )

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask its database, without a change to it."""
        file = Path(self.environ["FACHO_DATA_DIR"]) / "facho.sqlite3"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=COMMAND_SECONDS)) as database:
            return database.execute(statement).fetchall()


@contextmanager
def simulated(olts: int, *arguments: str) -> Iterator[list[OltLine]]:
    """Play OLTs in a process of their own."""
    command = [*FACHO, "simulate", "--olts", str(olts), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield [OltLine(*process.stdout.readline().split()) for _ in range(olts)]
    finally:
        process.terminate()
        process.communicate(timeout=COMMAND_SECONDS)


@contextmanager
def running_product(folder: Path, olts: Mapping[str, OltLine], *, pollers: int) -> Iterator[Product]:
    """Run the embedded product with these OLTs in its inventory, each with its ready-made jobs."""
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environ = {**kept, "FACHO_DATA_DIR": str(folder / "data"), "FACHO_LANGUAGE": "en"}
    give_database(folder / "data")
    inventory = folder / "olts.csv"
    with inventory.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(HEADER)
        rows.writerows((name, olt.host, olt.port, olt.vendor, "2c", olt.community) for name, olt in olts.items())
    command = [*FACHO, "run", "--bind", "127.0.0.1:0", "--pollers", str(pollers)]
    with ExitStack() as ending:
        log = ending.enter_context((folder / "product.log").open("w"))
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=log, text=True)
        ending.callback(process.communicate, timeout=COMMAND_SECONDS)
        ending.callback(process.terminate)
        assert process.stdout is not None
        assert any(line.startswith("setup: ") for line in process.stdout), "the product did not start"
        product = Product(process, environ)
        product.command("olt", "import", str(inventory))
        yield product

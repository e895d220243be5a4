"""Starts the theatre for a test module and hands out its findings as they come."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from servers.product_folder import create_database, give_database

TESTS = Path(__file__).parents[1]
END_SECONDS = 60

Order = Mapping[str, Any]


class Theatre:
    """A running theatre; findings are read when someone asks for them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._findings: list[dict[str, Any]] = []

    def findings(self, **order: Any) -> dict[str, Any]:
        """Return what the scene of this order saw; waits until it has been played."""
        assert self._process.stdout is not None
        while not (found := [seen for seen in self._findings if order.items() <= seen.items()]):
            line = self._process.stdout.readline()
            assert line, f"the theatre closed before it played {order}"
            self._findings.append(json.loads(line))
        assert "trouble" not in found[0], found[0]["trouble"]
        return found[0]


@contextmanager
def commission(
    scene: str, orders: Sequence[Order], folder: Path, *, at_once: int = 1, **settings: str
) -> Iterator[Theatre]:
    """Have scenes played on the kind of database that the test run has."""
    environ = {
        **os.environ,
        **settings,
        "FACHO_DATA_DIR": str(folder / "data"),
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
    }
    if url := environ.get("DATABASE_URL"):
        environ["DATABASE_URL"] = create_database(url, f"scene_{os.urandom(6).hex()}")
    else:
        give_database(folder / "data")
    process = subprocess.Popen(
        [sys.executable, "-m", "crash.theatre"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    json.dump({"scene": scene, "orders": list(orders), "at_once": at_once}, process.stdin)
    process.stdin.close()
    try:
        yield Theatre(process)
    finally:
        process.terminate()
        process.wait(END_SECONDS)
        assert process.stdout is not None
        process.stdout.close()

"""Runs a measurement on SQLite and on a private PostgreSQL, each in a process: Django is set up once in a process."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.processes import own_module

TESTS = Path(__file__).parents[1] / "tests"


def measure_on_both(module: str, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return what the module prints as JSON, by the name of the database that DATABASE_URL led it to."""
    return {"SQLite": _figures(module, arguments, {}), "PostgreSQL": measure_on_postgresql(module, *arguments)}


def measure_on_postgresql(module: str, *arguments: str) -> dict[str, Any]:
    """Return what the module prints as JSON on a private PostgreSQL."""
    with private_server() as (url, _):
        return _figures(module, arguments, {"DATABASE_URL": url})


@contextmanager
def private_server() -> Iterator[tuple[str, int]]:
    """Run a private PostgreSQL; yield the URL of its empty database and the id of its process."""
    sys.path.insert(0, str(TESTS))
    from servers import postgresql

    with tempfile.TemporaryDirectory() as folder, postgresql.private_server(Path(folder)) as server:
        if server.process is None:
            raise RuntimeError("the server does not run")
        yield empty_database(server.url), server.process.pid


def empty_database(url: str) -> str:
    """Return the URL of the empty database that a private server comes with, from that of the one tests make."""
    return url.rpartition("/")[0] + "/postgres"


def _figures(module: str, arguments: tuple[str, ...], environment: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as told:
        ended = subprocess.run(
            own_module(module, *arguments),
            env={**os.environ, **environment},
            check=False,
            stdout=subprocess.PIPE,
            stderr=told,
        )
        if ended.returncode:
            told.seek(0)
            sys.exit(f"The measurement {module} failed:\n{told.read()[-2000:]}")
    return dict(json.loads(ended.stdout))

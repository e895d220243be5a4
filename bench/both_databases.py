"""Runs a measurement on SQLite and on a private PostgreSQL, each in a process: Django is set up once in a process."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.processes import own_module

TESTS = Path(__file__).parents[1] / "tests"


def measure_on_both(module: str, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return what the module prints as JSON, by the name of the database that DATABASE_URL led it to."""
    return {"SQLite": _figures(module, arguments, {}), "PostgreSQL": measure_on_postgresql(module, *arguments)}


def measure_on_postgresql(module: str, *arguments: str) -> dict[str, Any]:
    """Return what the module prints as JSON on a private PostgreSQL."""
    sys.path.insert(0, str(TESTS))
    from servers.postgresql import private_postgresql

    with tempfile.TemporaryDirectory() as folder, private_postgresql(Path(folder)) as url:
        # The server comes with an empty database of its own.
        return _figures(module, arguments, {"DATABASE_URL": url.rpartition("/")[0] + "/postgres"})


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

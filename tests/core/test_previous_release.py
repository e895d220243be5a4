"""A database of the previous release is brought up to date and loses nothing; one from between says what to do."""

import json
import subprocess
import sys
from pathlib import Path

from servers.previous_release import ROWS, lost, unpack
from servers.product_folder import MIGRATE

# Lists that Django and SQLite keep for themselves.
NOT_ROWS = ("django_", "auth_permission", "sqlite_")


def play(environ: dict[str, str], *command: str | Path) -> str:
    done = subprocess.run([sys.executable, *command], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_row_of_the_previous_release_is_there_after_the_upgrade(
    product_environ: dict[str, str], tmp_path: Path
) -> None:
    before_environ = {**product_environ, "PYTHONPATH": str(unpack(tmp_path / "previous"))}
    play(before_environ, "-c", MIGRATE)
    play(before_environ, ROWS, "fill")
    before = json.loads(play(before_environ, ROWS, "print"))

    message = play(product_environ, "-m", "facho.core.cli.main", "migrate")

    after = json.loads(play(product_environ, ROWS, "print"))
    assert (
        lost(before["tables"], after["tables"], [name for name in before["tables"] if not name.startswith(NOT_ROWS)])
        == []
    )
    assert before["understood"] == after["understood"]
    assert len(after["understood"]["light"]["HWTC00000003"]) == 120
    assert message

"""The last version that users may have: its code from git, with the packages of this checkout."""

import io
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PREVIOUS = "dcad5e6"
# A program that fills and prints the database; see there.
ROWS = Path(__file__).with_name("previous_rows.py")

Row = dict[str, str]
Tables = dict[str, list[Row]]


def is_in_checkout() -> bool:
    """Tell whether git has it: a shallow clone has the newest commits only."""
    return not subprocess.run(
        ["git", "cat-file", "-e", PREVIOUS], cwd=ROOT, check=False, capture_output=True
    ).returncode


def show(path: str) -> str:
    """Return a text file as it was."""
    shown = subprocess.run(["git", "show", f"{PREVIOUS}:{path}"], cwd=ROOT, check=True, capture_output=True, text=True)
    return shown.stdout


def unpack(folder: Path) -> Path:
    """Write its source into a folder, and return what belongs on the path of Python."""
    packed = subprocess.run(["git", "archive", PREVIOUS, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    # It had files of the API's pages in a package that is not needed any more.
    (folder / "src/drf_spectacular_sidecar").mkdir()
    (folder / "src/drf_spectacular_sidecar/__init__.py").touch()
    return folder / "src"


def lost(before: Tables, after: Tables, tables: Iterable[str]) -> list[tuple[str, Row]]:
    """Name every row of some tables that is gone, or has another value in a column of before."""
    gone = []
    for table in tables:
        rows = before[table]
        kept = [{name: row.get(name) for name in rows[0]} for row in after.get(table, [])] if rows else []
        gone += [(table, row) for row in rows if row not in kept]
    return gone

"""Runs all tests on SQLite and, beside them, those that touch a database once more on PostgreSQL.

Each run has servers, ports and folders of its own; together they take little longer than the longer one alone.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

PYTEST = [str(Path(sys.executable).with_name("pytest")), "--quiet"]


def main() -> int:
    """Return 0 when both runs did."""
    # Ctrl-C reaches both, since they share our terminal; each then stops what it started.
    with tempfile.TemporaryFile("w+") as report:
        beside = subprocess.Popen([*PYTEST, "--database", "postgresql"], stdout=report, stderr=subprocess.STDOUT)
        try:
            on_sqlite = subprocess.run(PYTEST, check=False).returncode
        finally:
            on_postgresql = beside.wait()
        print("-- the tests that touch a database, on PostgreSQL", flush=True)
        report.seek(0)
        print(report.read())
    return 1 if on_sqlite or on_postgresql else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs all tests: on SQLite those without a browser, beside them those with one, and once more what touches PostgreSQL.

Each run has servers, ports and folders of its own; together they take little longer than the longest one alone.
"""

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

PYTEST = [str(Path(sys.executable).with_name("pytest")), "--quiet"]
SHOWN = ["-m", "not browser"]
BESIDE = {
    "in the browser": ["-m", "browser"],
    "that touch a database, on PostgreSQL": ["--database", "postgresql"],
}


def main() -> int:
    """Return 0 when every run did."""
    with ExitStack() as stack:
        reports = {title: stack.enter_context(tempfile.TemporaryFile("w+")) for title in BESIDE}
        # Ctrl-C reaches all of them, since they share our terminal; each then stops what it started.
        others = {
            title: subprocess.Popen([*PYTEST, *arguments], stdout=reports[title], stderr=subprocess.STDOUT)
            for title, arguments in BESIDE.items()
        }
        try:
            codes = [subprocess.run([*PYTEST, *SHOWN], check=False).returncode]
        finally:
            ended = {title: process.wait() for title, process in others.items()}
        for title, report in reports.items():
            print(f"-- the tests {title}", flush=True)
            report.seek(0)
            print(report.read())
    return 1 if any([*codes, *ended.values()]) else 0


if __name__ == "__main__":
    sys.exit(main())

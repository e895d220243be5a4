"""A command run by a test, and what it left behind."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

CANARY = "canary-7f3a"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str


class Command(Protocol):
    """`facho ARGUMENTS`, with these bytes on standard input."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Outcome: ...


def run_process(environ: Mapping[str, str], *arguments: str, stdin: bytes = b"", folder: Path | None = None) -> Outcome:
    """Run the command line as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "facho.core.cli.main", *arguments],
        env=environ,
        cwd=folder,
        input=stdin,
        capture_output=True,
        check=False,
        timeout=300,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

"""Other processes of a measurement: what they cost, and that they end with it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
STOP_SECONDS = 20
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat behind the name: user and system time are the 12th and 13th of them.
_FIRST_TIME_FIELD = 11


@contextmanager
def running(command: list[str], **options: object) -> Iterator[subprocess.Popen[str]]:
    """Run a program until the block is left."""
    process: subprocess.Popen[str] = subprocess.Popen(command, cwd=ROOT, text=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def own_module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours with this interpreter."""
    return [sys.executable, "-m", name, *arguments]


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a living process, in steps of the kernel's clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_FIRST_TIME_FIELD : _FIRST_TIME_FIELD + 2])) / _TICKS_PER_SECOND


def peak_mb(pid: int) -> float:
    """Return the most memory that a living process ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024

"""Other processes of a measurement: what they cost, and that they end with it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STOP_SECONDS = 20
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat behind the name: user and system time are the 12th and 13th of them, then come those of
# children that have ended.
_FIRST_TIME_FIELD, _PARENT_FIELD = 11, 1


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
    """Return the command that runs one of our modules with this interpreter."""
    return [sys.executable, "-m", name, *arguments]


class Conversation:
    """One of our modules in a process, which does what it is asked and answers in JSON, a line each."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        self._process = process

    def ask(self, name: str, *arguments: object) -> Any:
        """Have a function called and return what it returned."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended before it answered to {name}")
        return json.loads(line)


@contextmanager
def conversation(module: str, *arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Conversation]:
    """Talk with one of our modules until the block is left."""
    command = own_module(module, *arguments)
    with running(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environ or {})}
    ) as process:
        try:
            yield Conversation(process)
        finally:
            _end_of_lines(process)


def _end_of_lines(process: subprocess.Popen[str]) -> None:
    """Let it end by itself, since it may have processes of its own to stop; a signal would leave them behind."""
    if process.stdin is not None:
        process.stdin.close()
        process.stdin = None
    with suppress(subprocess.TimeoutExpired):
        process.wait(3 * STOP_SECONDS)


def answer(line: str, functions: Mapping[str, Callable[..., object]]) -> None:
    """Be the other end of a conversation for one line."""
    name, *arguments = json.loads(line)
    sys.stdout.write(json.dumps(functions[name](*arguments)) + "\n")
    sys.stdout.flush()


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a living process, in steps of the kernel's clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_FIRST_TIME_FIELD : _FIRST_TIME_FIELD + 2])) / _TICKS_PER_SECOND


def tree_seconds(*roots: int) -> float:
    """Return the CPU time of processes with all their descendants, also of those that have ended."""
    stats = dict(_read_stats())
    return sum(
        sum(map(int, stats[pid][_FIRST_TIME_FIELD : _FIRST_TIME_FIELD + 4])) / _TICKS_PER_SECOND
        for pid in _descendants(roots, {pid: int(fields[_PARENT_FIELD]) for pid, fields in stats.items()})
    )


def tree_of(*roots: int) -> set[int]:
    """Return processes and all their descendants."""
    return _descendants(roots, {pid: int(fields[_PARENT_FIELD]) for pid, fields in _read_stats()})


def _descendants(roots: tuple[int, ...], parents: Mapping[int, int]) -> set[int]:
    found: set[int] = set()
    more = {pid for pid in roots if pid in parents}
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in more} - found
    return found


def _read_stats() -> Iterator[tuple[int, list[str]]]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended


def own_mb(pid: int) -> float:
    """Return the memory of a living process, shared pages divided among those who share them."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:"))) / 1024


def peak_mb(pid: int) -> float:
    """Return the most memory that a living process ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024

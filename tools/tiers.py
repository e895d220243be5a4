"""Runs a tier of the tests: `push` is what a push needs, `rest` is everything that it leaves out.

A tier is cut into lanes: each is a pytest of its own, with servers, ports and folders of its own, that reads only the
folders it runs. A few run at a time, so that one computes while another waits.
"""

import argparse
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
# What is skipped says why: a bare Debian or containers cannot be had everywhere.
PYTEST = [str(Path(sys.executable).with_name("pytest")), "--quiet", "-rs"]
PUSH, REST = "push", "rest"
# A lane stops its servers and products in a few seconds; one that does not end may not delay the verdict.
STOP_SECONDS = 120
# Of a lane whose tests all are in the other tier.
NOTHING_TO_RUN = 5

BROWSER = ("browser",)
# No test below these touches a database: lanes of PostgreSQL do not read them, and a run that finds one refuses it.
WITHOUT_DATABASE = ("architecture", "deploy", "polling", "repository_tools", "simulator")
# In the rest they boot machines and start containers, one after the other.
INSTALLATIONS = ("deploy",)
# They start engines, schedulers and workers, and wait for them more than they compute.
PROCESSES = ("crash", "distributed", "engine", "race", "truth")
# They start the whole product, and wait for it too.
PRODUCT = ("product",)
# Many of them start a command.
COMMANDS = ("core", "docs")
PAGES = ("accounts", "alerts", "api", "dashboard", "web")
# What a push needs on PostgreSQL too: SQL that differs by database, claims and locks between two writers, and what
# only the distributed mode has. All else that touches a database follows in the rest.
SQL = (
    *("crash", "distributed", "race"),
    *("execution_coordinator", "executions", "hosts", "onus", "zabbix_pollers"),
    *("snmp_get/test_hinted_states.py", "snmp_get/test_job_rows.py", "snmp_get/test_kept_values.py"),
    *("snmp_get/test_learned_rows.py", "snmp_get/test_run_round_trips.py"),
    *("snmp_jobs/test_safety.py", "snmp_jobs/test_schedule.py", "snmp_jobs/test_skipped_slots.py"),
    *("api/test_api_lists.py", "api/test_coordinator_lists.py", "api/test_idempotency.py", "api/test_metrics.py"),
    *("api/test_olt_inventory_api.py", "api/test_onu_list.py", "alerts/test_alert_engine.py"),
    *("core/test_checks.py", "core/test_coordination.py", "core/test_database.py", "core/test_database_version.py"),
    *("core/test_engine.py", "core/test_housekeeping.py", "core/test_read_now.py", "core/test_storage.py"),
    *("core/cli/test_cli_dump.py", "core/cli/test_cli_site.py"),
)


@dataclass(frozen=True, slots=True)
class Lane:
    title: str
    folders: Sequence[str]
    options: tuple[str, ...] = ()

    def command(self, tier: str, migrated: Path) -> list[str]:
        """Return what runs its part of a tier; lanes share what they have migrated."""
        options = [f"--tier={tier}", f"--migrated={migrated}", *self.options]
        return [*PYTEST, *options, *(str(TESTS / folder) for folder in self.folders)]


@dataclass(frozen=True, slots=True)
class Report:
    lane: Lane
    code: int
    seconds: float
    cpu_seconds: float
    text: str
    is_cut_short: bool = False

    @property
    def line(self) -> str:
        cases = re.findall(r"(\d+) (?:passed|failed|error)", self.text.rstrip().rpartition("\n")[2])
        verdict = "   FAILED" if self.code else "   NOT FINISHED" if self.is_cut_short else ""
        spent = f"{self.seconds / 60:6.1f} min{self.cpu_seconds / 60:6.1f} of CPU"
        return f"{self.lane.title:<48}{spent}{sum(map(int, cases)):7} cases{verdict}"


def tiers_of(
    place: str, database: str, *, thorough_on: Sequence[str] | None = None, is_property: bool = False
) -> set[str]:
    """Tell which tiers run a test, by its path below tests/; `thorough_on` has its mark's databases, () means any.

    A property is for both, since the rest has more examples for it, and other ones.
    """
    is_thorough = thorough_on is not None and (not thorough_on or database in thorough_on)
    is_sql = any(place == each or place.startswith(f"{each}/") for each in SQL)
    if is_thorough or (database == "postgresql" and not is_sql):
        return {REST}
    return {PUSH, REST} if is_property else {PUSH}


def folders_with_tests() -> list[str]:
    return sorted({path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")})


def lanes(tier: str) -> list[Lane]:
    """Cut a tier into lanes that together have every folder on every database that it is for; the longest first."""
    named = {*BROWSER, *WITHOUT_DATABASE, *PROCESSES, *PRODUCT, *COMMANDS, *PAGES}
    others = [folder for folder in folders_with_tests() if folder not in named]
    with_database = [folder for folder in folders_with_tests() if folder not in {*BROWSER, *WITHOUT_DATABASE}]
    on_postgresql = SQL if tier == PUSH else with_database
    postgresql = ("--database=postgresql",)
    # The rest plays properties again, with new examples.
    sqlite = ("--hypothesis-profile=explore",) if tier == REST else ()
    rules = [folder for folder in WITHOUT_DATABASE if folder not in INSTALLATIONS]
    return [
        Lane("installations", INSTALLATIONS, sqlite),
        Lane("browser", BROWSER),
        Lane("SQLite, product", PRODUCT, sqlite),
        Lane("PostgreSQL, stores and pages", [each for each in on_postgresql if each not in PROCESSES], postgresql),
        Lane("SQLite, commands", COMMANDS, sqlite),
        Lane("PostgreSQL, processes", [folder for folder in on_postgresql if folder in PROCESSES], postgresql),
        Lane("SQLite, processes", PROCESSES, sqlite),
        Lane("SQLite, stores", others, sqlite),
        Lane("SQLite, pages and API", PAGES, sqlite),
        Lane("rules, vendors, SNMP, simulator, repository", rules, sqlite),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tier", choices=[PUSH, REST])
    parser.add_argument("--at-once", type=int, default=(os.cpu_count() or 2) + 2, help="lanes that run at a time")
    parser.add_argument("--minutes", type=float, help="stop lanes that run for longer; only failed tests count then")
    chosen = parser.parse_args()
    # A shell's background job ignores Ctrl-C and hands that on; lanes have to obey: it is how they are stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    ends_at = began + chosen.minutes * 60 if chosen.minutes is not None else math.inf
    # Ctrl-C reaches the lanes too, since they share our terminal; each then stops what it started.
    with tempfile.TemporaryDirectory(prefix="facho-migrated-") as migrated, ThreadPoolExecutor(chosen.at_once) as pool:
        commands = [(lane, lane.command(chosen.tier, Path(migrated))) for lane in lanes(chosen.tier)]
        running = [pool.submit(run_lane, lane, command, ends_at) for lane, command in commands]
        try:
            reports = [each.result() for each in running]
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = f"{(time.monotonic() - began) / 60:.1f} min, {(used.ru_utime + used.ru_stime) / 60:.1f} min of CPU"
    print(f"-- {chosen.tier}: {spent}, {chosen.at_once} lanes at a time", flush=True)
    for report in reports:
        print(report.line)
    return 1 if any(report.code for report in reports) else 0


def run_lane(lane: Lane, command: Sequence[str], ends_at: float) -> Report:
    """Run a lane and print its output; it is not started, or stopped, when the monotonic clock says `ends_at`."""
    began = time.monotonic()
    # Hundreds of processes import the product: one of them compiles it for all.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if began >= ends_at:
        return Report(lane, 0, 0, 0, "", is_cut_short=True)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=output, stderr=subprocess.STDOUT)
        is_cut_short, cpu_seconds = _wait(ends_at, process)
        output.seek(0)
        text = output.read()
    code = _verdict(process.returncode, text, is_cut_short)
    report = Report(lane, code, time.monotonic() - began, cpu_seconds, text, is_cut_short)
    print(f"-- {report.line}\n{report.text}", flush=True)
    return report


def _wait(ends_at: float, process: subprocess.Popen[bytes]) -> tuple[bool, float]:
    """Wait for a lane, and interrupt it when its time is over: pytest then stops the servers that it started.

    One that does not end is killed. Returns whether it was interrupted, and the CPU that it and its children took.
    """
    seconds = max(ends_at - time.monotonic(), 0)
    interrupt = threading.Timer(seconds, os.kill, [process.pid, signal.SIGINT])
    kill = threading.Timer(seconds + STOP_SECONDS, os.kill, [process.pid, signal.SIGKILL])
    if ends_at < math.inf:
        interrupt.start()
        kill.start()
    # Popen.wait does not return the CPU, so its return code is set here.
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    is_cut_short = interrupt.finished.is_set()
    interrupt.cancel()
    kill.cancel()
    return is_cut_short, used.ru_utime + used.ru_stime


def _verdict(code: int, text: str, is_cut_short: bool) -> int:
    if is_cut_short:
        return 1 if re.search(r"\d+ (failed|error)", text.rstrip().rpartition("\n")[2]) else 0
    return 0 if code == NOTHING_TO_RUN else code


if __name__ == "__main__":
    sys.exit(main())

"""The tiers leave no test out: what a push does not run is in the rest, and every folder is in a lane."""

import subprocess
import sys
import time
from collections import Counter

import pytest
from tools import tiers

POSTGRESQL = "--database=postgresql"


def folders_of(tier: str, *, on_postgresql: bool) -> Counter[str]:
    chosen = [lane for lane in tiers.lanes(tier) if (POSTGRESQL in lane.options) is on_postgresql]
    return Counter(folder for lane in chosen for folder in lane.folders)


@pytest.mark.parametrize("tier", [tiers.PUSH, tiers.REST])
def test_every_folder_is_in_one_lane_on_sqlite(tier: str) -> None:
    assert folders_of(tier, on_postgresql=False) == Counter(tiers.folders_with_tests())


def test_the_rest_has_every_folder_with_a_database_in_one_lane_on_postgresql() -> None:
    without = {*tiers.WITHOUT_DATABASE, *tiers.BROWSER}

    assert folders_of(tiers.REST, on_postgresql=True) == Counter(set(tiers.folders_with_tests()) - without)
    assert folders_of(tiers.PUSH, on_postgresql=True) == Counter(tiers.SQL)


def test_every_test_is_below_a_folder() -> None:
    assert list(tiers.TESTS.glob("test_*.py")) == []


def test_what_tiers_name_is_there() -> None:
    lanes = (tiers.BROWSER, tiers.WITHOUT_DATABASE, tiers.PROCESSES, tiers.PRODUCT, tiers.COMMANDS, tiers.PAGES)
    named = {place for places in (*lanes, tiers.SQL) for place in places}

    assert [place for place in named if not (tiers.TESTS / place).exists()] == []


@pytest.mark.parametrize(
    ("place", "database", "thorough_on", "expected"),
    [
        ("dashboard/test_times.py", "sqlite", None, tiers.PUSH),
        ("dashboard/test_times.py", "postgresql", None, tiers.REST),
        ("executions/test_store.py", "postgresql", None, tiers.PUSH),
        ("executions_of_old/test_store.py", "postgresql", None, tiers.REST),
        ("executions/test_store.py", "sqlite", (), tiers.REST),
        ("executions/test_store.py", "postgresql", (), tiers.REST),
        ("executions/test_store.py", "sqlite", ("postgresql",), tiers.PUSH),
        ("executions/test_store.py", "postgresql", ("postgresql",), tiers.REST),
    ],
)
def test_a_test_is_in_one_tier(place: str, database: str, thorough_on: tuple[str, ...] | None, expected: str) -> None:
    assert tiers.tiers_of(place, database, thorough_on=thorough_on) == {expected}


def test_a_property_is_for_the_rest_too() -> None:
    assert tiers.tiers_of("polling/test_slots.py", "sqlite", is_property=True) == {tiers.PUSH, tiers.REST}
    assert tiers.tiers_of("hosts/test_slots.py", "postgresql", is_property=True) == {tiers.PUSH, tiers.REST}


def test_the_build_server_runs_both_tiers_within_an_hour() -> None:
    commands = (tiers.ROOT / ".ci/run").read_text().splitlines()
    makefile = (tiers.ROOT / "Makefile").read_text()

    assert commands[-2:] == ["make test", "make test-all MINUTES=$((55 - SECONDS / 60))"]
    assert [makefile.count(f"tools/tiers.py {tier}") for tier in (tiers.PUSH, tiers.REST)] == [1, 1]


SLOW_LANE = """
import signal, sys
print("began", flush=True)
try:
    signal.pause()
except KeyboardInterrupt:
    print(sys.argv[1])
    raise SystemExit(2)
"""


@pytest.mark.parametrize(("closing_line", "code"), [("3 passed in 2.1s", 0), ("1 failed, 2 passed in 2.1s", 1)])
def test_a_lane_that_is_stopped_fails_only_by_its_tests(closing_line: str, code: int) -> None:
    command = [sys.executable, "-c", SLOW_LANE, closing_line]

    report = tiers.run_lane(tiers.Lane("slow", ()), command, ends_at=time.monotonic() + 2)

    assert (report.code, report.is_cut_short) == (code, True)
    assert report.line.endswith("FAILED" if code else "NOT FINISHED")


def test_no_lane_starts_when_the_time_is_over() -> None:
    report = tiers.run_lane(tiers.Lane("late", ("nowhere",)), [], ends_at=0)

    assert (report.code, report.text, report.is_cut_short) == (0, "", True)


def test_lanes_end_in_time_in_the_background_of_a_shell() -> None:
    """Where Ctrl-C is ignored, what is started ignores it as well, and so would the lanes."""
    script = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
from tools import tiers

class Sleeper(tiers.Lane):
    def command(self, tier, migrated):
        return [sys.executable, "-c", "import time; time.sleep(600)"]

tiers.lanes = lambda tier: [Sleeper("sleeper", ())]
sys.argv = ["tiers", "rest", "--minutes", "0.02"]
sys.exit(tiers.main())
"""

    ended = subprocess.run([sys.executable, "-c", script], cwd=tiers.ROOT, capture_output=True, text=True, timeout=60)

    assert "NOT FINISHED" in ended.stdout
    assert ended.returncode == 0

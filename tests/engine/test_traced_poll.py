"""Who follows a poll from its due node to its stored rows opens few files, in the order that is documented."""

import json
import re
import subprocess
import sys

import pytest
from bench.processes import ROOT
from bench.trace_poll import JOBS, MAX_FILES

LONGEST_SECONDS = 300
SECTION = (ROOT / "docs/architecture.md").read_text().partition("## A run, from due to stored")[2].partition("\n#")[0]
# The function of each step and its file.
STEPS = re.findall(r"^\d+\. \*\*\w[\w ]*\.\*\* \[`([\w.]+)`\]\(\.\./src/facho/([\w/]+\.py)\)", SECTION, re.MULTILINE)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """File and name of each function that ran, by job, in the order of their first calls."""
    figures = tmp_path_factory.mktemp("trace") / "functions.json"
    traced = subprocess.run(
        [sys.executable, "-m", "bench.trace_poll", str(figures)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
    )
    assert figures.exists(), traced.stderr
    ran: dict[str, list[list[str]]] = json.loads(figures.read_text())
    return ran


@pytest.mark.parametrize("job", JOBS)
def test_a_poll_runs_code_of_sixty_files_at_most(functions: dict[str, list[list[str]]], job: str) -> None:
    assert len({path for path, _ in functions[job]}) <= MAX_FILES


@pytest.mark.parametrize("job", JOBS)
def test_a_poll_takes_the_documented_steps_in_their_order(functions: dict[str, list[list[str]]], job: str) -> None:
    assert len(STEPS) == len(re.findall(r"^\d+\. ", SECTION, re.MULTILINE))

    ran = [(name, path) for path, name in functions[job] if (name, path) in STEPS]

    assert ran == STEPS

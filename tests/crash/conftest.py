"""Shows after the run how long an OLT stayed closed in each cell of the crash matrix."""

import pytest

from crash.ambush import Fault, Point

free_after: pytest.StashKey[dict[tuple[Point, Fault], float]] = pytest.StashKey()


@pytest.fixture(scope="session")
def measured(pytestconfig: pytest.Config) -> dict[tuple[Point, Fault], float]:
    """Where each cell leaves its time."""
    return pytestconfig.stash.setdefault(free_after, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the measured times as a table."""
    times = config.stash.get(free_after, {})
    if not times:
        return
    terminalreporter.section("seconds from a fault until the OLT was free or in living hands")
    terminalreporter.write_line(f"{'':24}" + "".join(f"{fault:>16.14}" for fault in Fault))
    for point in Point:
        cells = (times.get((point, fault)) for fault in Fault)
        line = "".join(f"{'':>16}" if seconds is None else f"{seconds:16.2f}" for seconds in cells)
        terminalreporter.write_line(f"{point:24}{line}")

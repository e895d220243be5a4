"""Each fault at each point of a run, with real processes, databases and datagrams; counted at the device.

Two engines share a database, a lease of two seconds and one simulated OLT. The one that leads is hit; the other one
sees to it that the OLT is polled again. `crash/cell.py` plays a cell, `crash/ambush.py` knows the points.

"Database lost" means on PostgreSQL that the server ends the victim's connections. With a file there is no connection
to lose: another process keeps it locked for longer than the victim waits, and inside a transaction, where nobody
else can have the lock, SQLite refuses the next write.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from crash.ambush import Fault, Point
from crash.commission import Theatre, commission
from facho.zabbix_pollers.scheduler import LOOKS_PER_LEASE

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

LEASE_SECONDS = 2.0
PACKET_SECONDS = 0.5
# A counter is first seen up to a look after it was raised, and found still up to a look after it is too old.
LOOKS_SECONDS = 2 * LEASE_SECONDS / LOOKS_PER_LEASE
# Of a machine that has better to do: with it the bound is ten times what is normal, and less than a cell looks for.
NOISE_SECONDS = 25.0
FINAL = {"SUCCESS", "FAILED", "INTERRUPTED", "SKIPPED"}

# A push needs one cell of each point; going round, they have every fault.
FIRST = {point: list(Fault)[number % len(Fault)] for number, point in enumerate(Point)}
# For what is not stopped, the moment between check and send is like any other of the walk.
FIRST[Point.BETWEEN_CHECK_AND_SEND] = Fault.STOP
CELLS = [
    pytest.param(point, fault, marks=[] if fault is FIRST[point] else pytest.mark.thorough)
    for point in Point
    for fault in Fault
    if point is not Point.BETWEEN_CHECK_AND_SEND or fault is Fault.STOP
]

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def theatre(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    """Play the cells that were asked for, several at once; each test waits for its own."""
    chosen = [item.callspec.params for item in request.session.items if item.module is request.module]
    settings = {
        "FACHO_LEASE_SECONDS": str(LEASE_SECONDS),
        "FACHO_PACKET_TIMEOUT_SECONDS": str(PACKET_SECONDS),
        "FACHO_POLLERS": "2",
    }
    with commission("crash.cell", chosen, tmp_path_factory.mktemp("cells"), at_once=8, **settings) as theatre:
        yield theatre


@pytest.mark.parametrize(("point", "fault"), CELLS)
def test_a_fault_closes_an_olt_for_a_lease_at_most_and_nothing_is_doubled_or_lost(
    theatre: Theatre, measured: dict[tuple[Point, Fault], float], point: Point, fault: Fault
) -> None:
    """S0-02, S1-29, S3-13: whatever dies, wherever."""
    seen = theatre.findings(point=point, fault=fault)
    measured[point, fault] = seen["free_after"]

    assert is_free_in_time(seen), seen
    assert has_one_end_each(seen), seen
    assert is_on_the_grid(seen), seen
    assert seen["unaccounted"] == [], seen
    assert seen["is_served"], seen
    assert seen["stored_by_nobody"] == 0, seen
    assert seen["busy_pollers"] == 0, seen
    assert seen["overlaps"] == [], seen
    assert len(seen["strays"]) <= allowed_strays(point, fault), seen


def is_free_in_time(seen: Seen) -> bool:
    bound = LEASE_SECONDS + PACKET_SECONDS + LOOKS_SECONDS + NOISE_SECONDS
    return seen["free_after"] is not None and bool(seen["free_after"] <= bound)


def has_one_end_each(seen: Seen) -> bool:
    """Count every state that an execution ever had: the last one is final, and none before it was."""
    histories = [execution["states"] for execution in seen["executions"]]
    return all([state in FINAL for state in states] == [False] * (len(states) - 1) + [True] for states in histories)


def is_on_the_grid(seen: Seen) -> bool:
    """One start for a slot, at a slot; after the run that was hit the next slot that had not gone by."""
    starts = Counter(run["slot"] for run in seen["executions"] if run["position"] == 0)
    slots = sorted(slot / seen["interval"] for slot in starts)
    on_grid = all(slot == int(slot) for slot in [*slots, seen["next_slot"]])
    ended = max(run["ended"] for run in seen["executions"] if run["slot"] == 0)
    first_after = ended // seen["interval"] + 1
    return set(starts.values()) == {1} and on_grid and slots[:2] == [0, first_after]


def allowed_strays(point: Point, fault: Fault) -> int:
    """One datagram of a process that was stopped in the very moment between its check and its send; else none.

    No check can be nearer to the send than the statement before it, and the kernel may stop a process between any two.
    """
    return 1 if (point, fault) == (Point.BETWEEN_CHECK_AND_SEND, Fault.STOP) else 0

"""Whatever becomes of a run, its slot is started once: one real engine for each outcome, over four slots."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from crash.commission import Theatre, commission
from race.outcomes import OUTCOMES, SLOTS

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

DISCOVERY, WALK = 0, 1

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    """Play all outcomes at once, on a database each."""
    settings = {"FACHO_PACKET_TIMEOUT_SECONDS": "0.4", "FACHO_POLLERS": "2"}
    orders = [{"outcome": outcome} for outcome in OUTCOMES]
    folder = tmp_path_factory.mktemp("outcomes")
    with commission("race.outcomes", orders, folder, at_once=len(orders), **settings) as theatre:
        yield theatre


def starts(seen: Seen, node: int) -> list[float]:
    return sorted(run["slot"] for run in seen["runs"] if run["node"] == node)


@pytest.mark.parametrize("outcome", list(OUTCOMES))
def test_a_slot_is_started_at_most_once(theatre: Theatre, outcome: str) -> None:
    """D2, S4-13: on the grid, never twice, never two operations on the OLT."""
    seen = theatre.findings(outcome=outcome)

    slots = Counter((run["node"], run["slot"]) for run in seen["runs"] if run["slot"] is not None)
    assert slots, seen
    assert set(slots.values()) == {1}, seen
    assert all(slot == int(slot) for _, slot in slots), seen
    assert (seen["overlaps"], seen["strays"]) == ([], []), seen
    assert seen["unaccounted"] == [], seen


@pytest.mark.parametrize("outcome", ["success", "no onus"])
def test_what_works_is_started_in_every_slot(theatre: Theatre, outcome: str) -> None:
    """S4-14: an OLT without ONUs is no failure; a slot that a busy machine was late for is reported."""
    seen = theatre.findings(outcome=outcome)

    for node in (DISCOVERY, WALK):
        skipped = [slot for skipping, slot in seen["skipped"] if skipping == node]
        slots = sorted([*starts(seen, node), *skipped])
        assert slots[:SLOTS] == list(range(SLOTS)), seen
        assert len(skipped) < SLOTS, seen
    assert {run["states"][-1] for run in seen["runs"]} == {"SUCCESS"}, seen


@pytest.mark.parametrize("outcome", ["dead olt", "wrong community"])
def test_an_olt_that_does_not_answer_is_started_three_times_and_then_left_alone(theatre: Theatre, outcome: str) -> None:
    """D8, S3-18, S3-20: one node finds it out for both."""
    seen = theatre.findings(outcome=outcome)

    tried = [run for run in seen["runs"] if run["failure"]]
    assert len(tried) == 3, seen
    assert all(seen["suspended"]), seen


def test_tries_within_a_slot_are_one_start(theatre: Theatre) -> None:
    """D18, D21: the same execution, counted up."""
    seen = theatre.findings(outcome="dead olt, retried")

    assert sum(run["attempt"] for run in seen["runs"]) == 3, seen
    assert all(run["states"][:3] == ["PENDING", "RUNNING", "WAITING"] for run in seen["runs"] if run["attempt"] > 1)


def test_a_node_that_is_disabled_in_the_queue_never_starts(theatre: Theatre) -> None:
    seen = theatre.findings(outcome="node disabled while queued")

    assert starts(seen, WALK) == [], seen
    assert len(starts(seen, DISCOVERY)) > 1, seen


def test_an_olt_that_is_disabled_in_mid_run_is_left_alone_within_a_tick(theatre: Theatre) -> None:
    """D15: the run ends before its next packet, and nothing follows."""
    seen = theatre.findings(outcome="olt disabled in mid-run")

    [run] = seen["runs"]
    assert (run["states"][-1], run["failure"]) == ("INTERRUPTED", "cancelled"), seen


def test_a_run_that_kills_its_engine_is_given_up_after_three_crashes(theatre: Theatre) -> None:
    """D2: a crash is a failed try like any other, however soon the engine is back."""
    seen = theatre.findings(outcome="crash loop")

    assert len(starts(seen, DISCOVERY)) == len(set(starts(seen, DISCOVERY))) == 3, seen
    assert {(run["states"][-1], run["failure"]) for run in seen["runs"]} == {("INTERRUPTED", "internal")}, seen
    assert seen["suspended"][DISCOVERY] == "internal", seen

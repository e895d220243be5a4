"""Who may start or go on, and who of a silent OLT asks for all."""

from dataclasses import replace
from datetime import timedelta

from facho.polling.domain.planning import DueNode, choose_candidates, choose_scouts, ready_at
from facho.polling.domain.ports import CLOCK_TOLERANCE
from factories import NOW, due_node


def on_silent_olt(*, failures: int = 0, asks_in: int = 0, is_run_now: bool = False) -> DueNode:
    node = due_node(olt_id=7, late_seconds=-asks_in, is_run_now=is_run_now)
    return replace(node, failures=failures, is_olt_silent=True)


def waiting(node: DueNode, *, is_retry: bool = True, slot_in: int = 100, is_out_of_hours: bool = False) -> DueNode:
    return replace(
        node,
        execution_id=node.node_id,
        is_retry=is_retry,
        next_run_at=NOW + timedelta(seconds=slot_in),
        is_out_of_hours=is_out_of_hours,
    )


def held_back(*nodes: DueNode) -> list[bool]:
    ready = {node.node_id: node for node in choose_candidates(nodes, [], NOW).ready}
    return [ready[node.node_id].waits_for_scout for node in nodes if node.node_id in ready]


def test_a_node_whose_run_waits_is_a_candidate_once_as_that_run() -> None:
    node = due_node()

    candidates = choose_candidates([node], [waiting(node, is_retry=False, slot_in=-5)], NOW)

    assert [candidate.execution_id for candidate in candidates.ready] == [node.node_id]


def test_a_retry_whose_slot_has_come_ends_and_the_slot_runs() -> None:
    node = due_node()
    retry = waiting(node, slot_in=0)

    candidates = choose_candidates([node], [retry], NOW)

    assert candidates.ready == (node,)
    assert candidates.superseded == (retry,)


def test_a_retry_before_its_time_is_named_and_its_node_does_not_start_afresh() -> None:
    node = due_node(late_seconds=-60)

    candidates = choose_candidates([], [waiting(node)], NOW)

    assert candidates.ready == ()
    assert [later.node_id for later in candidates.later] == [node.node_id]


def test_a_run_that_is_held_stands_for_its_node() -> None:
    node = due_node()

    candidates = choose_candidates([node], [waiting(node, is_retry=False, is_out_of_hours=True)], NOW)

    assert candidates.ready == candidates.later == ()


def test_a_run_that_a_person_asks_for_goes_on_before_its_time() -> None:
    node = due_node(late_seconds=-60, is_run_now=True)

    assert len(choose_candidates([], [waiting(node)], NOW).ready) == 1


def test_the_node_that_failed_most_asks_for_all_of_a_silent_olt() -> None:
    well, once, twice = on_silent_olt(), on_silent_olt(failures=1), on_silent_olt(failures=2)

    assert held_back(well, once, twice) == [True, True, False]


def test_the_others_wait_also_for_a_scout_that_is_not_due_yet() -> None:
    assert held_back(on_silent_olt(), on_silent_olt(failures=1, asks_in=100)) == [True]


def test_nobody_waits_for_a_scout_that_asks_in_an_hour() -> None:
    assert held_back(on_silent_olt(), on_silent_olt(failures=2, asks_in=3_600)) == [False]


def test_a_run_that_a_person_asked_for_waits_for_no_scout() -> None:
    assert held_back(on_silent_olt(is_run_now=True), on_silent_olt(failures=1)) == [False, False]


def test_nobody_scouts_on_an_olt_that_answers() -> None:
    failed = replace(on_silent_olt(failures=2), is_olt_silent=False)

    assert choose_scouts([failed], NOW) == {}


def test_what_waits_longer_than_it_ever_does_is_due_because_the_clock_was_set_back() -> None:
    def ready_in(seconds: int) -> float:
        at = ready_at(NOW + timedelta(seconds=seconds), longest_pause_seconds=120, now=NOW)
        return (at - NOW).total_seconds()

    assert [ready_in(-10), ready_in(120), ready_in(3_600)] == [-10, 120, 0]


def test_a_retry_waits_although_the_clock_of_who_failed_is_a_little_ahead() -> None:
    failed_at = NOW + CLOCK_TOLERANCE
    resume_at = failed_at + timedelta(seconds=120)

    assert ready_at(resume_at, longest_pause_seconds=120, now=NOW) == resume_at

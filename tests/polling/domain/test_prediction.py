"""Predicted runs against the scheduler's rules: the same order, the same slots, and never two at once."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median, quantiles

import pytest
from hypothesis import given, settings
from virtual_network import VirtualNetwork
from virtual_strategies import feasible_olts, olts, steady_nodes
from virtual_workload import START, NodeSpec, OltSpec, Workload

from facho.polling.domain.execution_state import RANK, QueryType
from facho.polling.domain.feasibility import (
    MAX_DELAY,
    Going,
    Master,
    Member,
    PastRun,
    PredictedRun,
    estimate_seconds,
    predict_runs,
)
from facho.polling.domain.schedule import Grid, Span

HOURS = 4
END = START + timedelta(hours=HOURS)
ROUNDING = timedelta(milliseconds=1)

# Lengths that do not vary, so that the scheduler can do just what was predicted.
certain_nodes = steady_nodes.map(lambda node: replace(node, varies=0.0))


def masters_of(olt: OltSpec) -> list[Master]:
    return [
        Master(
            node_id=number,
            grid=spec.grid,
            next_run_at=spec.grid.next_after(START),
            rank=spec.rank,
            priority=spec.priority,
            seconds=spec.seconds,
            ports=spec.ports,
        )
        for number, spec in enumerate(olt.nodes)
    ]


def predict(olt: OltSpec) -> list[PredictedRun]:
    return predict_runs(masters_of(olt), now=START, until=END)


def master(
    node_id: int = 1,
    *,
    interval: int = 300,
    offset: int = 0,
    seconds: float | None = 10,
    query_type: QueryType = QueryType.GET,
    ports: int = 1,
    members: tuple[Member, ...] = (),
) -> Master:
    grid = Grid(interval, offset)
    first = grid.next_after(START - timedelta(seconds=1))
    return Master(node_id, grid, first, RANK[query_type], 50, seconds, members, ports)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def starts(runs: list[PredictedRun]) -> list[tuple[int, float]]:
    return [(run.master.node_id, (run.starts_at - START).total_seconds()) for run in runs]


@settings(max_examples=60)
@given(olts(certain_nodes))
def test_the_scheduler_does_what_was_predicted(olt: OltSpec) -> None:
    """Every run of four hours: its slot, its start and each of its slices, on OLTs that keep up and that do not."""
    network = VirtualNetwork(Workload((olt,), pollers=1, hours=HOURS + 2)).play()
    numbers = {node.node_id: number for number, node in enumerate(network.nodes)}

    predicted = {(run.master.node_id, run.slot_at): run for run in predict(olt)}

    slices = [s for node in network.nodes for s in node.slices if s.slot_at and s.slot_at < END]
    begun = {(numbers[s.node.node_id], s.slot_at): s.began for s in slices if s.is_fresh and s.began < END + MAX_DELAY}
    assert begun.keys() == predicted.keys()
    for key, run in predicted.items():
        assert abs(begun[key] - run.starts_at) < ROUNDING
    held = sorted((s.began, s.ended) for s in slices if s.ended and s.began < END)
    expected = sorted((span.start, span.end) for run in predicted.values() for span in run.slices if span.start < END)
    for (began, ended), (start, end) in zip(held, expected, strict=True):
        assert abs(began - start) < ROUNDING
        assert abs(ended - end) < ROUNDING


def test_lengths_that_vary_by_half_move_starts_by_seconds_only() -> None:
    """A day of states, discovery and an optical pass, foreseen with lengths that are right on average."""
    specs = [
        NodeSpec(300, 6, 17, QueryType.GET, varies=0.5),
        NodeSpec(900, 13, 140, QueryType.DISCOVERY, varies=0.5),
        NodeSpec(3_600, 560, 900, QueryType.GET, ports=16, varies=0.5),
    ]
    network = VirtualNetwork(Workload((OltSpec(tuple(specs)),), pollers=1, hours=24, seed=3)).play()
    expected = OltSpec(tuple(replace(spec, seconds=spec.seconds * 0.75) for spec in specs))

    runs = predict_runs(masters_of(expected), now=START, until=START + timedelta(hours=23))

    numbers = {node.node_id: number for number, node in enumerate(network.nodes)}
    begun = {(numbers[s.node.node_id], s.slot_at): s.began for node in network.nodes for s in node.slices if s.is_fresh}
    errors = [abs((begun[run.master.node_id, run.slot_at] - run.starts_at).total_seconds()) for run in runs]
    assert len(errors) == 23 * (12 + 4 + 1)
    assert median(errors) <= 1
    assert quantiles(errors, n=20)[18] <= 60


@given(olts(steady_nodes))
def test_never_two_runs_hold_the_olt_at_once(olt: OltSpec) -> None:
    held = sorted((span.start, span.end) for run in predict(olt) for span in run.slices)

    assert [pair for pair in pairwise(held) if pair[0][1] > pair[1][0]] == []


@given(olts(steady_nodes))
def test_every_predicted_run_serves_its_own_slot_of_the_grid(olt: OltSpec) -> None:
    runs = predict(olt)

    slots = {each.node_id: set(each.grid.slots(each.next_run_at, START, END)) for each in masters_of(olt)}
    for run in runs:
        assert run.slot_at in slots[run.master.node_id]
        assert run.slot_at <= run.starts_at
    assert len({(run.master.node_id, run.slot_at) for run in runs}) == len(runs)


@settings(max_examples=60)
@given(feasible_olts)
def test_an_olt_that_can_keep_up_has_a_run_for_every_slot(olt: OltSpec) -> None:
    runs = predict(olt)

    for each in masters_of(olt):
        slots = list(each.grid.slots(each.next_run_at, START, END))
        assert [run.slot_at for run in runs if run.master.node_id == each.node_id] == slots


def test_discovery_goes_first_and_the_other_follows_its_chain() -> None:
    discovery = master(1, query_type=QueryType.DISCOVERY, members=(Member(3, 20), Member(4, None)))
    read = master(2)

    runs = predict_runs([read, discovery], now=START, until=after(300))

    assert starts(runs) == [(1, 0), (2, 30)]
    assert runs[0].slices == (Span(after(0), after(30)),)


def test_a_long_read_gives_way_at_a_port_and_goes_on_behind_the_others() -> None:
    """D22: 160 s in 16 ports; the other is due after 30 s, and the minute is over after six ports."""
    long, short = master(1, interval=3_600, seconds=160, ports=16), master(2, interval=900, offset=30, seconds=5)

    runs = predict_runs([long, short], now=START, until=after(600))

    assert starts(runs) == [(1, 0), (2, 60)]
    assert runs[0].slices == (Span(after(0), after(60)), Span(after(65), after(165)))


def test_a_slot_that_went_by_while_the_olt_was_busy_is_not_predicted() -> None:
    long, short = master(1, interval=3_600, seconds=700), master(2, interval=300, offset=1)

    runs = predict_runs([long, short], now=START, until=after(1_000))

    assert starts(runs) == [(1, 0), (2, 700), (2, 901)]
    assert [run.slot_at for run in runs[1:]] == [after(601), after(901)]


def test_what_runs_now_keeps_the_others_waiting_to_its_end() -> None:
    going = Going(1, slot_at=after(-300), starts_at=after(-20), seconds_left=50, resume_at=START, held_since=after(-20))

    runs = predict_runs([master(1, offset=35), master(2)], now=START, until=after(200), going=[going])

    assert starts(runs) == [(1, -20), (2, 30), (1, 40)]


def test_a_run_of_no_node_keeps_everyone_waiting() -> None:
    probe = Going(0, slot_at=None, starts_at=START, seconds_left=25, resume_at=START, held_since=START)

    assert starts(predict_runs([master()], now=START, until=after(200), going=[probe])) == [(1, 25)]


def test_a_run_that_takes_longer_than_expected_is_expected_to_end_now() -> None:
    going = Going(
        2, slot_at=after(-900), starts_at=after(-900), seconds_left=10, resume_at=START, held_since=after(-900)
    )

    runs = predict_runs([master(1), master(2, offset=200)], now=START, until=after(100), going=[going])

    assert starts(runs) == [(2, -900), (1, 0)]


def test_a_retry_waits_for_its_time_and_leaves_it_to_the_next_slot_if_that_comes_first() -> None:
    def retry(resume_at: datetime) -> Going:
        return Going(1, after(-290), after(-290), seconds_left=4, resume_at=resume_at, is_retry=True)

    node = master(1, offset=10)

    tried_again = predict_runs([node], now=START, until=after(100), going=[retry(after(5))])
    left_to_slot = predict_runs([node], now=START, until=after(100), going=[retry(after(60))])

    assert [(run.slot_at, run.slices[0].start) for run in tried_again] == [
        (after(-290), after(5)),
        (after(10), after(10)),
    ]
    assert [(run.slot_at, run.slices[0].start) for run in left_to_slot] == [(after(10), after(10))]


def test_nothing_starts_in_a_pause_and_the_latest_slot_runs_after_it() -> None:
    runs = predict_runs([master()], now=START, until=after(1_000), paused=[Span(after(-60), after(700))])

    assert [(run.slot_at, run.starts_at) for run in runs] == [(after(600), after(700)), (after(900), after(900))]


def test_an_unknown_length_is_predicted_as_no_time_at_all() -> None:
    runs = predict_runs([master(1, seconds=None), master(2)], now=START, until=after(100))

    assert starts(runs) == [(1, 0), (2, 0)]


def test_a_job_that_follows_the_end_of_its_runs_drifts() -> None:
    grid = Grid(300, is_fixed_delay=True)
    node = Master(1, grid, START, RANK[QueryType.GET], 50, seconds=20)

    assert starts(predict_runs([node], now=START, until=after(700))) == [(1, 0), (1, 320), (1, 640)]


@pytest.mark.parametrize(
    ("runs", "onus", "expected"),
    [
        ([], 100, None),
        ([PastRun(10, 100), PastRun(30, 100), PastRun(12, 100)], 100, 12),
        ([PastRun(10, 100), PastRun(20, 200)], 300, 30),
        ([PastRun(10, 0), PastRun(20, 100)], None, 15),
        # A run that read none says nothing about a read of some.
        ([PastRun(0.1, 0), PastRun(0.1, 0), PastRun(20, 100)], 200, 40),
        ([PastRun(0.1, 0)], 200, None),
        ([PastRun(10), PastRun(20, 100)], 200, 25),
    ],
)
def test_a_length_is_the_median_scaled_to_the_onus(runs: list[PastRun], onus: int | None, expected: float) -> None:
    assert estimate_seconds(runs, onus=onus) == expected

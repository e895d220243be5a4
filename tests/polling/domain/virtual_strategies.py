"""Random workloads for the simulated network: anything at all, and OLTs that can just keep up."""

from dataclasses import replace
from itertools import accumulate
from math import ceil

from hypothesis import strategies as st
from virtual_workload import NodeSpec, OltSpec, Span, Workload

from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.retry import YIELD_AFTER_SECONDS

HOURS = 4
_SECONDS = HOURS * 3_600
INTERVALS = (60, 120, 300, 420, 900, 1_800, 3_600)
KINDS = tuple(kind for kind in FailureKind if kind not in (FailureKind.CANCELLED, FailureKind.INTERNAL))

steady_nodes = st.builds(
    NodeSpec,
    interval_seconds=st.sampled_from(INTERVALS),
    seconds=st.integers(1, 900).map(float),
    offset_seconds=st.integers(0, 3_599),
    query_type=st.sampled_from(QueryType),
    priority=st.integers(0, 100),
    ports=st.sampled_from((1, 1, 1, 4, 16)),
    varies=st.sampled_from((0.0, 0.9)),
)
sickly_nodes = st.builds(
    replace,
    steady_nodes,
    failing=st.sampled_from((0.0, 0.0, 0.2, 1.0)),
    failure=st.sampled_from(KINDS),
    is_fixed_delay=st.sampled_from((False, False, False, True)),
)


@st.composite
def spans(draw: st.DrawFn, *, longest: int = 5_000) -> tuple[Span, ...]:
    """Up to two stretches of time that do not touch."""
    lengths = st.integers(1, longest)
    steps = draw(st.sampled_from((0, 2, 4)))
    moments = list(accumulate(draw(st.lists(lengths, min_size=steps, max_size=steps))))
    return tuple(zip(moments[::2], moments[1::2], strict=True))


def olts(nodes: st.SearchStrategy[NodeSpec], *, silent: bool = False) -> st.SearchStrategy[OltSpec]:
    lists = st.lists(nodes, min_size=1, max_size=4).map(tuple)
    return st.builds(OltSpec, lists, spans() if silent else st.just(()))


moments = st.integers(1, _SECONDS - 1)
jumps = st.lists(st.tuples(moments, st.sampled_from((3_600, -3_600, 7, -7, 4, -4))), max_size=2).map(tuple)
no_jumps: st.SearchStrategy[tuple[Span, ...]] = st.just(())
forward_jumps = st.lists(st.tuples(moments, st.sampled_from((3_600, 700, 4))), max_size=2).map(tuple)


def anything(
    *, nodes: st.SearchStrategy[NodeSpec] = sickly_nodes, jumps: st.SearchStrategy[tuple[Span, ...]] = jumps
) -> st.SearchStrategy[Workload]:
    """Sick nodes, silent OLTs, too few pollers, crashes, wishes and a clock that jumps."""
    return st.builds(
        Workload,
        olts=st.lists(olts(nodes, silent=True), min_size=1, max_size=3).map(tuple),
        pollers=st.integers(1, 3),
        hours=st.just(HOURS),
        seed=st.integers(0, 2**16),
        downtimes=spans(),
        wishes=st.lists(st.tuples(moments, st.integers(0, 11)), max_size=3).map(tuple),
        jumps=jumps,
    )


def longest_slice(node: NodeSpec) -> float:
    """Return for how long a run keeps others from the OLT, at most."""
    return min(node.seconds, YIELD_AFTER_SECONDS + node.seconds / node.ports)


def may_yield(node: NodeSpec) -> bool:
    return longest_slice(node) < node.seconds


def demand(olt: OltSpec, node: NodeSpec) -> float:
    """Return the work that may stand before a node's end: a slice of another run, and what outranks it or is equal.

    The rest of a long read that gave way has the lowest rank: it stands before nobody, and everyone before it.
    """
    rank = 0 if may_yield(node) else node.rank
    blocking = max((longest_slice(other) for other in olt.nodes if other is not node), default=0.0)
    rivals = [other for other in olt.nodes if other.rank >= rank]
    work = [rival.seconds if rank == 0 else longest_slice(rival) for rival in rivals]
    times = [ceil(node.interval_seconds / rival.interval_seconds) for rival in rivals]
    return blocking + sum(count * seconds for count, seconds in zip(times, work, strict=True))


def is_feasible(olt: OltSpec) -> bool:
    return all(demand(olt, node) < node.interval_seconds for node in olt.nodes)


def fit(olt: OltSpec, slack: float) -> OltSpec:
    """Shorten all runs of an OLT just so much that it can keep up."""
    while not is_feasible(olt):
        olt = replace(olt, nodes=tuple(replace(node, seconds=node.seconds * slack) for node in olt.nodes))
    return olt


feasible_olts = st.builds(fit, olts(steady_nodes), st.sampled_from((0.5, 0.9, 0.99)))


def feasible(*, jumps: st.SearchStrategy[tuple[Span, ...]] = no_jumps) -> st.SearchStrategy[Workload]:
    """OLTs that can keep up, and a poller for each."""
    lists = st.lists(feasible_olts, min_size=1, max_size=3).map(tuple)
    seeds = st.integers(0, 2**16)
    return st.builds(
        lambda olts, seed, jumps: Workload(olts, pollers=len(olts), hours=HOURS, seed=seed, jumps=jumps),
        lists,
        seeds,
        jumps,
    )

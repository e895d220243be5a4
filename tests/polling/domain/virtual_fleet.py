"""A fleet of OLTs as providers have them: most are well, some have too much to do, answer nonsense, or are paused.

Each is out of reach now and then; how long, says one of several distributions.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from math import exp, log
from random import Random

from virtual_workload import START, NodeSpec, OltSpec, Workload
from virtual_workload import Span as Seconds

from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.schedule import Span

SHORTEST_OUTAGE_SECONDS, LONGEST_OUTAGE_SECONDS = 120, 6 * 3_600
SECONDS_BETWEEN_OUTAGES = 24 * 3_600
# Of twenty OLTs so many are of each kind, and the rest is well.
OVERLOADED, FLAKY, NONSENSE, PAUSED = 0, 1, 2, (3, 4, 5)

WELL = (
    NodeSpec(300, 5, query_type=QueryType.GET),
    NodeSpec(900, 10, query_type=QueryType.DISCOVERY),
    NodeSpec(3_600, 491, query_type=QueryType.GET, ports=16),
    NodeSpec(420, 8, query_type=QueryType.WALK),
    NodeSpec(7_200, 60, query_type=QueryType.BULK),
)


def any_scale(luck: Random) -> float:
    """As many outages of some minutes as of some hours."""
    return exp(luck.uniform(log(SHORTEST_OUTAGE_SECONDS), log(LONGEST_OUTAGE_SECONDS)))


def without_memory(luck: Random) -> float:
    """Outages that are as likely to end in the next minute however old they are; 25 minutes on average."""
    return SHORTEST_OUTAGE_SECONDS + luck.expovariate(1 / 1_400)


def around_a_quarter(luck: Random) -> float:
    """Outages of a quarter of an hour, give or take a factor of three."""
    return luck.lognormvariate(log(900), 1.0)


def reboots_and_cuts(luck: Random) -> float:
    """Some minutes or some hours, and nothing in between."""
    return luck.uniform(120, 600) if luck.random() < 0.6 else luck.uniform(3_600, LONGEST_OUTAGE_SECONDS)


LENGTHS: dict[str, Callable[[Random], float]] = {
    "any scale": any_scale,
    "without memory": without_memory,
    "around a quarter": around_a_quarter,
    "reboots and cuts": reboots_and_cuts,
}


def make_fleet(olts: int, *, hours: int, lengths: str, seed: int) -> tuple[Workload, dict[int, list[Span]]]:
    """Return the workload of a fleet and its pauses."""
    luck = Random(seed)  # noqa: S311 luck, not a secret
    fleet, pauses = [], {}
    for number in range(olts):
        nodes = [_place(spec, luck) for spec in _nodes(number % 20, luck)]
        fleet.append(OltSpec(tuple(nodes), _outages(luck, hours, LENGTHS[lengths])))
        if number % 20 in PAUSED:
            pauses[number] = [_pause(luck, hours)]
    return Workload(tuple(fleet), pollers=max(olts // 2, 1), hours=hours, seed=seed), pauses


def _nodes(kind: int, luck: Random) -> list[NodeSpec]:
    if kind == OVERLOADED:
        state, discovery, optics, walk, _ = WELL
        slow = replace(state, seconds=luck.uniform(120, 240))
        return [slow, replace(discovery, seconds=200), optics, replace(walk, seconds=100)]
    if kind == FLAKY:
        return [replace(spec, failing=luck.uniform(0.02, 0.25)) for spec in WELL]
    if kind == NONSENSE:
        return [replace(spec, failing=float(spec.query_type is QueryType.DISCOVERY)) for spec in WELL]
    return list(WELL)


def _place(spec: NodeSpec, luck: Random) -> NodeSpec:
    return replace(spec, offset_seconds=luck.randrange(spec.interval_seconds), varies=0.3)


def _outages(luck: Random, hours: int, length: Callable[[Random], float]) -> tuple[Seconds, ...]:
    outages: list[Seconds] = []
    begin = luck.expovariate(1 / SECONDS_BETWEEN_OUTAGES)
    while begin < hours * 3_600:
        end = begin + min(max(length(luck), SHORTEST_OUTAGE_SECONDS), LONGEST_OUTAGE_SECONDS)
        outages.append((int(begin), int(end)))
        begin = end + 600 + luck.expovariate(1 / SECONDS_BETWEEN_OUTAGES)
    return tuple(outages)


def _pause(luck: Random, hours: int) -> Span:
    begin = START + timedelta(seconds=luck.randrange(hours * 3_600))
    return Span(begin, begin + timedelta(seconds=luck.randrange(600, 3 * 3_600)))

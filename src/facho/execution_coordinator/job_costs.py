"""Tells what a vendor's ready-made jobs would cost an OLT, before it has them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from facho.execution_coordinator.durations import load_peer_runs
from facho.execution_coordinator.feasibility import NodeNeed, OltFeasibility
from facho.polling.domain.feasibility import Need, judge_feasibility
from facho.polling.domain.run_length import PastRun, estimate_seconds
from facho.polling.vendors.definition import Definition, Job
from facho.polling.vendors.read_cost import estimate_ports, estimate_read_seconds
from facho.polling.vendors.vocabulary import Cost, Scope

SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True, slots=True)
class OltSize:
    """What the cost of a read depends on."""

    onus: int
    round_trip_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class JobCost:
    """One run of a job: how long it takes, as measured on OLTs of the same vendor or else estimated."""

    slug: str
    seconds: float
    is_measured: bool
    ports: int = 1

    def seconds_per_hour(self, interval_seconds: int) -> float:
        """The time that its runs of an hour take."""
        return self.seconds * SECONDS_PER_HOUR / interval_seconds


def load_job_costs(definition: Definition, size: OltSize) -> dict[str, JobCost]:
    """Return the cost of each ready-made job, by its slug; a few queries."""
    measured = load_peer_runs(definition.key)
    return {job.slug: _cost(definition, job, size, measured.get(job.slug, [])) for job in definition.jobs}


def judge_choice(
    name: str, definition: Definition, intervals: Mapping[str, int], costs: Mapping[str, JobCost]
) -> OltFeasibility:
    """Add up the chosen jobs, given with their intervals, and judge them as an OLT's feasibility is judged."""
    masters = [job for job in definition.jobs if job.slug in intervals and job.chain_of is None]
    needs = [_need(number, definition, intervals, costs, job) for number, job in enumerate(masters)]
    told = tuple(
        NodeNeed(need.node_id, _(job.name), need.interval_seconds, need.seconds, need.minutes_per_hour)
        for need, job in zip(needs, masters, strict=True)
    )
    return OltFeasibility(0, name, told, judge_feasibility(needs))


def members_of(definition: Definition, master: str) -> list[Job]:
    """Return the jobs that run right after a master."""
    return [job for job in definition.jobs if job.chain_of == master]


def safe_minimum_seconds(definition: Definition, jobs: Collection[Job]) -> int:
    """Return how often these jobs may be read together at most."""
    keys = [key for job in jobs for key in job.columns or definition.identity_columns()]
    return definition.safe_interval_seconds(keys)


def is_live(definition: Definition, job: Job) -> bool:
    """Tell whether the OLT has to ask its ONUs for what a job reads."""
    return any(definition.column(key).cost is Cost.LIVE for key in job.columns)


def _cost(definition: Definition, job: Job, size: OltSize, runs: Sequence[PastRun]) -> JobCost:
    ports = estimate_ports(size.onus) if is_live(definition, job) else 1
    onus = size.onus if _is_about_onus(definition, job) else None
    known = estimate_seconds(runs, onus=onus)
    if known is not None:
        return JobCost(job.slug, known, is_measured=True, ports=ports)
    guess = estimate_read_seconds(definition, job.columns, onus=size.onus, round_trip_seconds=size.round_trip_seconds)
    return JobCost(job.slug, guess, is_measured=False, ports=ports)


def _is_about_onus(definition: Definition, job: Job) -> bool:
    keys = job.columns or definition.identity_columns()
    return any(definition.column(key).index.scope is Scope.ONU for key in keys)


def _need(
    number: int, definition: Definition, intervals: Mapping[str, int], costs: Mapping[str, JobCost], master: Job
) -> Need:
    own = costs[master.slug]
    chain = sum(_chain_seconds(definition, intervals, costs, master.slug))
    holds = own.seconds + chain
    if own.ports > 1:
        holds = max(min(own.seconds, settings.FACHO_YIELD_SECONDS + own.seconds / own.ports), chain)
    return Need(number, intervals[master.slug], own.seconds + chain, holds)


def _chain_seconds(
    definition: Definition, intervals: Mapping[str, int], costs: Mapping[str, JobCost], master: str
) -> Iterator[float]:
    return (costs[job.slug].seconds for job in members_of(definition, master) if job.slug in intervals)

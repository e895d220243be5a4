"""Judges whether OLTs have more work than fits into an hour, from past runs, and what to relax."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.execution_coordinator.state import load_olts
from facho.execution_coordinator.workload import composites_of, load_lengths, load_peer_runs
from facho.polling.domain.feasibility import MINUTES_PER_HOUR, Feasibility, Need, judge_feasibility
from facho.polling.domain.prediction import estimate_seconds
from facho.polling.vendors.definition import Definition, Job
from facho.polling.vendors.read_cost import estimate_ports, estimate_read_seconds
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_jobs.application import Work
from facho.snmp_jobs.models import WorkflowNode

# Longer lists are not read; the API has them all.
OLTS_NAMED = 5
RELAXATIONS_NAMED = 3
SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True, slots=True)
class NodeNeed:
    """What a master with its chain needs; without `seconds` it is not known yet and counts as nothing."""

    node_id: int
    name: str
    interval_seconds: int
    seconds: float | None
    minutes_per_hour: float


@dataclass(frozen=True, slots=True)
class OltFeasibility:
    """An OLT, what its masters need, and what that comes to."""

    olt_id: int
    olt: str
    needs: tuple[NodeNeed, ...]
    judged: Feasibility

    def name_of(self, node_id: int) -> str:
        """Name a master as lists of its OLT do."""
        return next((need.name for need in self.needs if need.node_id == node_id), "")


def load_feasibility(olt_ids: Collection[int] | None = None) -> dict[int, OltFeasibility]:
    """Judge all OLTs, or these, as they are set up now; a few queries, however many there are."""
    olts = load_olts(None if olt_ids is None else list(olt_ids))
    lengths = load_lengths(olt_ids)
    masters = WorkflowNode.objects.filter(enabled=True, is_chain_node=False).order_by()
    if olt_ids is not None:
        masters = masters.filter(workflow__olt_id__in=list(olt_ids))
    names = dict(masters.values_list("id", "job__name"))
    found = {}
    for olt in olts.values():
        composites = composites_of(olt, lengths) if olt.enabled else []
        needs = tuple(
            NodeNeed(
                each.task.node_id,
                names.get(each.task.node_id, each.task.task_type),
                each.task.grid.interval_seconds,
                None if each.length.seconds is None else each.seconds,
                each.as_need.minutes_per_hour,
            )
            for each in composites
        )
        judged = judge_feasibility([each.as_need for each in composites])
        found[olt.olt_id] = OltFeasibility(olt.olt_id, olt.name, needs, judged)
    return found


def advise(olt_ids: Collection[int]) -> list[str]:
    """Describe which of these OLTs have more work than an hour holds, and whether all OLTs need more pollers."""
    everything = load_feasibility()
    chosen = [everything[olt_id] for olt_id in olt_ids if olt_id in everything]
    too_much = [found for found in chosen if not found.judged.fits]
    if not chosen:
        return []
    advice = [" ".join(words_of(found)) for found in too_much[:OLTS_NAMED]]
    more = len(too_much) - len(advice)
    if more:
        advice.append(ngettext("And %(n)s more OLT.", "And %(n)s more OLTs.", more) % {"n": more})
    minutes = sum(found.judged.minutes_per_hour for found in everything.values())
    pollers = settings.FACHO_POLLERS
    if minutes > pollers * MINUTES_PER_HOUR:
        words = {
            "minutes": _rounded(minutes),
            "pollers": pollers,
            "capacity": _rounded(pollers * MINUTES_PER_HOUR),
        }
        text = _(
            "All OLTs together need %(minutes)s min of SNMP per hour, and %(pollers)s pollers have %(capacity)s:"
            " set FACHO_POLLERS to more, or read less often."
        )
        advice.append(text % words)
    return advice


def load_work(olt_ids: Collection[int]) -> dict[int, Work]:
    """Sum up the work of these OLTs, for pages of rooms below."""
    return {
        olt_id: Work(
            found.judged.minutes_per_hour,
            sum(need.seconds is None for need in found.needs),
            found.judged.fits,
            () if found.judged.fits else tuple(words_of(found)),
        )
        for olt_id, found in load_feasibility(olt_ids).items()
    }


def words_of(found: OltFeasibility) -> Iterator[str]:
    """Describe how much work an OLT has and, when it does not fit, why not and what to relax."""
    judged = found.judged
    yield _("%(olt)s needs %(minutes)s min of SNMP per hour.") % {
        "olt": found.olt,
        "minutes": _rounded(judged.minutes_per_hour),
    }
    for blocked in judged.blocked[:1]:
        yield _('"%(longer)s" takes %(length)s at a time, longer than the interval of "%(shorter)s".') % {
            "longer": found.name_of(blocked.by_node_id),
            "length": _length(round(blocked.seconds)),
            "shorter": found.name_of(blocked.node_id),
        }
    if judged.relaxations:
        named = judged.relaxations if judged.are_needed_together else judged.relaxations[:RELAXATIONS_NAMED]
        changes = "; ".join(
            _("%(node)s every %(after)s instead of %(before)s saves %(minutes)s min")
            % {
                "node": found.name_of(relaxation.node_id),
                "after": _length(relaxation.interval_seconds),
                "before": _length(relaxation.interval_before_seconds),
                "minutes": _rounded(relaxation.saves_minutes_per_hour),
            }
            for relaxation in named
        )
        if judged.are_needed_together:
            yield _("What would make it fit, together: %(changes)s.") % {"changes": changes}
        else:
            yield _("What would make it fit: %(changes)s.") % {"changes": changes}


def _length(seconds: int) -> str:
    """Write a length in the largest unit that it is a whole number of."""
    if seconds % 3_600 == 0:
        return _("%(n)s h") % {"n": seconds // 3_600}
    return _("%(n)s min") % {"n": seconds // 60} if seconds % 60 == 0 else _("%(n)s s") % {"n": seconds}


def _rounded(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}".removesuffix(".0")


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
    measured, costs = load_peer_runs(definition.key), {}
    for job in definition.jobs:
        columns = [definition.column(key) for key in job.columns or definition.identity_columns()]
        reads_onus = any(column.index.scope is Scope.ONU for column in columns)
        seconds = estimate_seconds(measured.get(job.slug, []), onus=size.onus if reads_onus else None)
        is_measured = seconds is not None
        if seconds is None:
            trip = size.round_trip_seconds
            seconds = estimate_read_seconds(definition, job.columns, onus=size.onus, round_trip_seconds=trip)
        ports = estimate_ports(size.onus) if is_live(definition, job) else 1
        costs[job.slug] = JobCost(job.slug, seconds, is_measured=is_measured, ports=ports)
    return costs


def judge_choice(
    name: str, definition: Definition, intervals: Mapping[str, int], costs: Mapping[str, JobCost]
) -> OltFeasibility:
    """Add up the chosen jobs, given with their intervals, and judge them as an OLT's feasibility is judged."""
    masters = [job for job in definition.jobs if job.slug in intervals and job.chain_of is None]
    needs = []
    for number, master in enumerate(masters):
        own = costs[master.slug]
        chain = sum(costs[job.slug].seconds for job in members_of(definition, master.slug) if job.slug in intervals)
        holds = own.seconds + chain
        if own.ports > 1:
            holds = max(min(own.seconds, settings.FACHO_YIELD_SECONDS + own.seconds / own.ports), chain)
        needs.append(Need(number, intervals[master.slug], own.seconds + chain, holds))
    named = tuple(
        NodeNeed(need.node_id, _(job.name), need.interval_seconds, need.seconds, need.minutes_per_hour)
        for need, job in zip(needs, masters, strict=True)
    )
    return OltFeasibility(0, name, named, judge_feasibility(needs))


def members_of(definition: Definition, master: str) -> list[Job]:
    """Return the jobs that run right after a master."""
    return [job for job in definition.jobs if job.chain_of == master]


def safe_minimum_seconds(definition: Definition, jobs: Collection[Job]) -> int:
    """Return how often these jobs may be read together at most."""
    keys = [key for job in jobs for key in job.columns or definition.identity_columns()]
    return definition.safe_interval_seconds(keys)


def is_live(definition: Definition, job: Job) -> bool:
    """Return whether the OLT has to ask its ONUs for what a job reads."""
    return any(definition.column(key).cost is Cost.LIVE for key in job.columns)

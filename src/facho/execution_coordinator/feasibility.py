"""Tells whether OLTs have more work than an hour holds, from what their nodes took so far, and what to relax."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.execution_coordinator.durations import load_lengths
from facho.execution_coordinator.state import load_olts
from facho.execution_coordinator.workload import composites_of
from facho.polling.domain.feasibility import MINUTES_PER_HOUR, Feasibility, Relaxation, judge_feasibility
from facho.snmp_jobs.advice import Work
from facho.snmp_jobs.models import WorkflowNode

# More would be read by nobody; the API tells them all.
OLTS_TOLD = 5
RELAXATIONS_TOLD = 3


@dataclass(frozen=True, slots=True)
class NodeNeed:
    """What a master with its chain needs; without `seconds` nobody knows yet, and it counts as nothing."""

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
    """Say which of these OLTs have more work than an hour holds, and whether all OLTs need more pollers."""
    everything = load_feasibility()
    chosen = [everything[olt_id] for olt_id in olt_ids if olt_id in everything]
    too_much = [found for found in chosen if not found.judged.fits]
    told = [" ".join(words_of(found)) for found in too_much[:OLTS_TOLD]]
    more = len(too_much) - len(told)
    if more:
        told.append(ngettext("And %(n)s more OLT.", "And %(n)s more OLTs.", more) % {"n": more})
    return [*told, *_words_of_pollers(everything.values())] if chosen else []


def load_work(olt_ids: Collection[int]) -> dict[int, Work]:
    """Tell what the work of these OLTs comes to, for pages of rooms below."""
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
    """Say in sentences what an OLT's work comes to and, when it does not fit, why not and what to relax."""
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
        told = judged.relaxations if judged.are_needed_together else judged.relaxations[:RELAXATIONS_TOLD]
        changes = "; ".join(_change(found, relaxation) for relaxation in told)
        if judged.are_needed_together:
            yield _("What would make it fit, together: %(changes)s.") % {"changes": changes}
        else:
            yield _("What would make it fit: %(changes)s.") % {"changes": changes}


def _words_of_pollers(everything: Iterable[OltFeasibility]) -> Iterator[str]:
    minutes, pollers = sum(found.judged.minutes_per_hour for found in everything), settings.FACHO_POLLERS
    if minutes > pollers * MINUTES_PER_HOUR:
        yield _(
            "All OLTs together need %(minutes)s min of SNMP per hour, and %(pollers)s pollers have %(capacity)s:"
            " set FACHO_POLLERS to more, or read less often."
        ) % {
            "minutes": _rounded(minutes),
            "pollers": pollers,
            "capacity": _rounded(pollers * MINUTES_PER_HOUR),
        }


def _change(found: OltFeasibility, relaxation: Relaxation) -> str:
    return _("%(node)s every %(after)s instead of %(before)s saves %(minutes)s min") % {
        "node": found.name_of(relaxation.node_id),
        "after": _length(relaxation.interval_seconds),
        "before": _length(relaxation.interval_before_seconds),
        "minutes": _rounded(relaxation.saves_minutes_per_hour),
    }


def _length(seconds: int) -> str:
    """Write a length in the largest unit that it is a whole number of."""
    if seconds % 3_600 == 0:
        return _("%(n)s h") % {"n": seconds // 3_600}
    return _("%(n)s min") % {"n": seconds // 60} if seconds % 60 == 0 else _("%(n)s s") % {"n": seconds}


def _rounded(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}".removesuffix(".0")

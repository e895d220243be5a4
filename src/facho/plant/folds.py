"""Folds the events of ONUs that lost light in common into one: eight lines of a splitter say no more than one."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery

from facho.onus.models import OnuEvent
from facho.onus.timeline import TimelineCursor
from facho.onus.words import EventKinds
from facho.plant.models import FindingKinds, FindingOnu, LightFinding

# The event comes with the poll that lost the light, or with a later one where the first loss was not quite a step.
BEFORE, AFTERWARDS = timedelta(minutes=1), timedelta(minutes=15)


def load_step_folds(
    findings: QuerySet[LightFinding], cursor: TimelineCursor | None, size: int, *, after: datetime | None = None
) -> list[LightFinding]:
    """Load what several ONUs lost in common, as far as a page of so many lines may meet it; one query.

    Each has the number of its ONUs as `hit_number` and its `first_event`; with `after`, the first one since then.
    """
    is_hit = Exists(FindingOnu.objects.filter(finding=OuterRef(OuterRef("pk")), onu=OuterRef("onu_id"), is_hit=True))
    events = OnuEvent.objects.filter(
        is_hit,
        kind=EventKinds.POWER_DROP,
        pon_port_id=OuterRef("pon_port_id"),
        at__gte=OuterRef("since") - BEFORE,
        at__lte=OuterRef("since") + AFTERWARDS,
    )
    events = events if after is None else events.filter(at__gte=after)
    first = Subquery(events.order_by("at", "id").values("pk")[:1])
    known = findings.filter(kind=FindingKinds.COMMON_STEP).annotate(first_event=first).filter(first_event__isnull=False)
    is_newer = cursor is not None and cursor.is_newer
    if cursor is not None:
        edge = {"since__gte": cursor.at - AFTERWARDS} if is_newer else {"since__lte": cursor.at + BEFORE}
        known = known.filter(**edge)
    hit = FindingOnu.objects.filter(finding=OuterRef("pk"), is_hit=True).order_by().values("finding")
    order = ("since", "id") if is_newer else ("-since", "-id")
    # Some have their first event on the page before.
    return list(known.annotate(hit_number=Subquery(hit.values(n=Count("*")))).order_by(*order)[: 2 * size])


def fold_steps(timeline: QuerySet[OnuEvent], folds: Iterable[LightFinding]) -> QuerySet[OnuEvent]:
    """Leave one event of each of these findings, its first."""
    firsts = {finding.pk: first_step_of(finding) for finding in folds}
    if not firsts:
        return timeline
    # Not by the keys themselves, as in `fold_outages`.
    of_it = FindingOnu.objects.alias(number=F("finding_id") + 0).filter(
        number__in=firsts,
        is_hit=True,
        onu_id=OuterRef("onu_id"),
        finding__pon_port_id=OuterRef("pon_port_id"),
        finding__since__gte=OuterRef("at") - AFTERWARDS,
        finding__since__lte=OuterRef("at") + BEFORE,
    )
    return timeline.filter(~Q(kind=EventKinds.POWER_DROP) | Q(pk__in=set(firsts.values())) | ~Exists(of_it))


def first_step_of(finding: LightFinding) -> int:
    """Return the event that is left of a finding that `load_step_folds` loaded."""
    first: int = finding.first_event  # type: ignore[attr-defined]  # annotated
    return first

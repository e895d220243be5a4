"""Gathers what the page of an outage shows: its evidence in words, its drawing, what it is part of and its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from facho.accounts.acknowledge import who_acknowledged
from facho.accounts.scope import OltScope
from facho.dashboard.outage_words import Findings, evidence_lines, meaning_of
from facho.dashboard.outages_now import OutageRow, outage_rows, shape_outages
from facho.dashboard.svg_outage import Moment, OutageDrawing, Step, draw_outage
from facho.onus.models import Outage
from facho.onus.outage_evidence import Change, departures, load_changes, load_neighbours, load_port_counts_of
from facho.onus.words import OutageScopes
from facho.polling.domain.outage_evidence import weigh_departures

PART_LINES = 50
# Only where the OLT answers can anybody say who went.
_COUNTED = (OutageScopes.PON, OutageScopes.CARD)


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that is told of one outage."""

    row: OutageRow
    resumed_at: datetime | None
    meaning: str
    evidence: list[str]
    drawing: OutageDrawing
    part_of: OutageRow | None
    parts: list[OutageRow]


def load_sheet(outage: Outage, scope: OltScope, now: datetime) -> Sheet:
    """Load what belongs to an outage that was loaded with its names; six queries at most, whatever its size."""
    changes = load_changes(outage) if outage.scope in _COUNTED else []
    findings = _find_out(outage, changes)
    seen = scope.narrow(Outage.objects.all())
    return Sheet(
        row=shape_outages([outage])[0],
        resumed_at=outage.resumed_at if outage.resumed_at != outage.started_at else None,
        meaning=meaning_of(outage.cause, findings),
        evidence=evidence_lines(findings),
        drawing=_draw(outage, changes, now),
        part_of=next(iter(outage_rows(seen.filter(pk=outage.part_of_id))), None) if outage.part_of_id else None,
        parts=outage_rows(seen.filter(part_of=outage.pk).order_by("-affected", "id")[:PART_LINES]),
    )


def _find_out(outage: Outage, changes: list[Change]) -> Findings:
    if outage.scope not in _COUNTED:
        return Findings(olts=outage.affected_olts)
    evidence = weigh_departures(departures(changes))
    if outage.scope == OutageScopes.CARD:
        return Findings(evidence)
    # How the port is now says nothing of an outage that is over.
    port = None if outage.ended_at else load_port_counts_of(outage)
    return Findings(evidence, load_neighbours(outage), port)


def _draw(outage: Outage, changes: Sequence[Change], now: datetime) -> OutageDrawing:
    moments = [Moment(outage.started_at, _("began"))]
    if outage.resumed_at != outage.started_at:
        moments.append(Moment(outage.resumed_at, _("came back")))
    if outage.acknowledged_at:
        words = _("acknowledged by %(who)s") % {"who": who_acknowledged(outage)}
        moments.append(Moment(outage.acknowledged_at, words))
    moments.append(Moment(outage.ended_at or now, _("ended") if outage.ended_at else _("now")))
    return draw_outage(_steps(changes), moments, starts_at=outage.started_at, ends_at=outage.ended_at or now)


def _steps(changes: Sequence[Change]) -> list[Step]:
    """Follow how many are down, one step for each moment in which it changed."""
    steps: dict[datetime, int] = {}
    down: set[int] = set()
    for change in changes:
        (down.add if change.is_down else down.discard)(change.onu_id)
        steps[change.at] = len(down)
    return list(steps.items())

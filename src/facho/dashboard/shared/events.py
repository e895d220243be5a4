"""Events of ONUs as lines: what several lost in common is one line, which leads to the finding instead of an ONU."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from facho.dashboard.onu.names import EventLine, event_rows
from facho.onus.events import all_events, load_page
from facho.onus.models import OnuEvent
from facho.plant.folds import first_step_of, fold_steps, load_step_folds
from facho.plant.models import LightFinding
from facho.plant.store import describe_common_step


@dataclass(frozen=True, slots=True)
class FoldedStep(EventLine):
    """Light that several ONUs lost in common, instead of an event of each."""

    finding_id: int

    @property
    def url(self) -> str:
        return reverse("light-finding", args=[self.finding_id])


def load_latest(events: Q, findings: QuerySet[LightFinding], count: int) -> list[EventLine]:
    """Load the latest events of a place as lines; `findings` are those of its ports. Two queries."""
    folds = load_step_folds(findings, None, count)
    return event_lines(load_page(fold_steps(all_events().filter(events), folds), None, count).rows, folds)


def event_lines(events: Sequence[OnuEvent], folds: Sequence[LightFinding]) -> list[EventLine]:
    """Shape events, in their order, of which `folds` stand for others; no query."""
    findings = {first_step_of(finding): finding for finding in folds}
    return [
        _fold(line, finding) if (finding := findings.get(line.id)) is not None else line for line in event_rows(events)
    ]


def _fold(line: EventLine, finding: LightFinding) -> FoldedStep:
    hit: int = finding.hit_number  # type: ignore[attr-defined]  # annotated
    values = {each.name: getattr(line, each.name) for each in fields(line)}
    values |= {
        "what": describe_common_step(finding, hit),
        "place": line.place.rpartition("/")[0],
        "code": _("Plot and numbers"),
        "description": "",
    }
    return FoldedStep(**values, finding_id=finding.pk)

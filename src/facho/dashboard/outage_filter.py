"""The form that narrows the list of outages."""

from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.dashboard.timeline_lists import TimelineFilter
from facho.onus.models import Outage
from facho.onus.words import OutageCauses

OPEN, UNSEEN, ENDED, ACKNOWLEDGED = "open", "unseen", "ended", "acknowledged"
_SHOWN: dict[str, Q] = {
    OPEN: Q(ended_at__isnull=True),
    UNSEEN: Q(ended_at__isnull=True, acknowledged_at__isnull=True),
    ENDED: Q(ended_at__isnull=False),
    ACKNOWLEDGED: Q(acknowledged_at__isnull=False),
}


class OutageFilter(TimelineFilter):
    """Which outages, of which OLT, for which cause, going on between which times."""

    show = forms.ChoiceField(
        label=_("Show"),
        required=False,
        choices=[
            ("", pgettext_lazy("outages", "all")),
            (OPEN, _("going on")),
            (UNSEEN, _("going on, not acknowledged")),
            (ACKNOWLEDGED, _("acknowledged")),
            (ENDED, _("ended")),
        ],
    )
    cause = forms.ChoiceField(
        label=_("Probable cause"), required=False, choices=[("", _("all")), *OutageCauses.choices]
    )
    field_order = ("show", "olt", "cause", "after", "before")

    def narrow(self, outages: QuerySet[Outage]) -> QuerySet[Outage]:
        """Apply what was filled in; times find what was going on between them."""
        return outages.filter(*(_condition(name, value) for name, value in self.chosen.items()))


def _condition(name: str, value: Any) -> Q:
    match name:
        case "show":
            return _SHOWN[value]
        case "olt":
            return Q(olt_id=int(value))
        case "cause":
            return Q(cause=value)
        case "after":
            return Q(ended_at__isnull=True) | Q(ended_at__gt=value)
        case _:
            return Q(started_at__lt=value)

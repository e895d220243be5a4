"""The history of ONUs as people ask for it: a metric by its name, a span of time, and how closely it is to be shown.

Whatever the resolution, a state is the share of samples online in percent. What nobody knows is a gap, as is what did
not come: never down.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _

from facho.onus.history import PortSeries, Resolution, Series, read_olt_row, read_onu, read_port
from facho.onus.history_metrics import STATE_CODES, Floats, Metric
from facho.onus.models import Onu
from facho.polling.domain.onu_state import RunState
from facho.polling.vendors.vocabulary import Unit

DEFAULT_SPAN = timedelta(days=1)
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name.lower(): metric for metric in Metric})
UNITS: Mapping[Metric, Unit] = MappingProxyType(
    {
        Metric.RX_POWER: Unit.DBM,
        Metric.TX_POWER: Unit.DBM,
        Metric.OLT_RX_POWER: Unit.DBM,
        Metric.TEMPERATURE: Unit.CELSIUS,
        Metric.DISTANCE: Unit.METRE,
        Metric.STATE: Unit.PERCENT,
    }
)
# A month of 128 ONUs every five minutes; an answer with more than that weighs too much.
MAX_VALUES = 1_200_000


class Detail(StrEnum):
    """How closely values are shown; auto chooses by the span, and by what is still kept of its age."""

    AUTO = "auto"
    FULL = "full"
    HOUR = "hour"
    DAY = "day"


_RESOLUTIONS = {Detail.FULL: Resolution.SAMPLES, Detail.HOUR: Resolution.HOURS, Detail.DAY: Resolution.DAYS}
DETAILS: Mapping[Resolution, Detail] = MappingProxyType({value: key for key, value in _RESOLUTIONS.items()})
# How long a span may be, and up to which length `auto` takes this resolution: some hundred points of each.
_LONGEST_DAYS = {Resolution.SAMPLES: 31, Resolution.HOURS: 366, Resolution.DAYS: 36_525}
_AUTO_DAYS = {Resolution.SAMPLES: 2, Resolution.HOURS: 62}


class WrongQuestion(ValueError):
    """Nothing can be shown for this; the text is for people, `field` is what to change."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be shown, from `start` to before `end`; a metric that is an OID's own has no unit of ours."""

    metric: int
    start: datetime
    end: datetime
    resolution: Resolution

    @property
    def unit(self) -> Unit:
        """The unit of the values."""
        return UNITS[Metric(self.metric)]

    @property
    def detail(self) -> Detail:
        """The resolution as people call it."""
        return DETAILS[self.resolution]


def ask(metric: int, *, start: datetime | None, end: datetime | None, detail: Detail, now: datetime) -> Question:
    """Complete a question, by default about the last day; WrongQuestion when it makes no sense or asks too much."""
    until = min(end or now, now)
    since = start or until - DEFAULT_SPAN
    if since >= until:
        raise WrongQuestion("from", _("Choose a time before the end, which is %(end)s.") % {"end": until.isoformat()})
    resolution = _choose(since, until, now) if detail is Detail.AUTO else _RESOLUTIONS[detail]
    days = _LONGEST_DAYS[resolution]
    if until - since > timedelta(days=days):
        raise WrongQuestion(
            "from",
            _("At this resolution %(days)s days can be shown at most: choose a shorter time or hour or day.")
            % {"days": days},
        )
    return Question(metric, since, until, resolution)


def load_onu_history(onu_id: int, question: Question) -> Series:
    """Load one ONU's values in one query, wherever it was plugged in."""
    series = read_onu(onu_id, question.metric, question.start, question.end, question.resolution)
    return _checked(series, question)


def load_port_history(pon_port_id: int, question: Question) -> PortSeries:
    """Load the values of all ONUs that were at a port in that time, in one query."""
    series = read_port(pon_port_id, question.metric, question.start, question.end, question.resolution)
    return _checked(series, question)


def load_olt_value_history(olt_id: int, row_id: int, question: Question) -> Series:
    """Load the values of one row of an OLT's tables in one query."""
    span = question.start, question.end, question.resolution
    return _checked(read_olt_row(olt_id, row_id, question.metric, *span), question)


def load_names(onu_ids: Iterable[int]) -> dict[int, str]:
    """Return the serials of ONUs, or their places; one that was deleted has left its values to its port."""
    onus = Onu.objects.filter(id__in=set(onu_ids)).select_related("pon_port").order_by()
    return {onu.id: str(onu) for onu in onus}


def _choose(start: datetime, end: datetime, now: datetime) -> Resolution:
    kept_days = {
        Resolution.SAMPLES: settings.FACHO_HISTORY_DAYS,
        Resolution.HOURS: settings.FACHO_HISTORY_HOURLY_DAYS,
    }
    for resolution, days in _AUTO_DAYS.items():
        if end - start <= timedelta(days=days) and now - start <= timedelta(days=kept_days[resolution]):
            return resolution
    return Resolution.DAYS


_Either = TypeVar("_Either", Series, PortSeries)


def _checked(series: _Either, question: Question) -> _Either:
    if series.average.size > MAX_VALUES:
        raise WrongQuestion(
            "resolution", _("That is more than one answer can hold: choose a shorter time, or hour or day.")
        )
    if question.metric != Metric.STATE or question.resolution is not Resolution.SAMPLES:
        return series
    share = _share_online(series.average)
    return replace(series, average=share, lowest=share, highest=share)


def _share_online(codes: Floats) -> Floats:
    share = np.full_like(codes, np.nan)
    share[codes == STATE_CODES[RunState.ONLINE]] = 100.0
    share[codes == STATE_CODES[RunState.OFFLINE]] = 0.0
    return share

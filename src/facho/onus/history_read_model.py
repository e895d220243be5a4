"""The history of ONUs by metric, period and resolution.

Whatever the resolution, a state is the share of samples online in percent. Unknown values are gaps, as is what did
not come: never down.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _

from facho.onus.history import PortSeries, Resolution, Series, read_olt, read_olt_row, read_onu_metrics, read_port
from facho.onus.history_models import STATE_CODES, Metric
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
# How long a span may be, and up to which length `auto` takes this resolution: some hundred points of each.
_LONGEST_DAYS = {Resolution.SAMPLES: 31, Resolution.HOURS: 366, Resolution.DAYS: 36_525}
_AUTO_DAYS = {Resolution.SAMPLES: 2, Resolution.HOURS: 62}
_Either = TypeVar("_Either", Series, PortSeries)


class Detail(StrEnum):
    """Resolution of a history; auto chooses by the period's length and age."""

    AUTO = "auto"
    FULL = "full"
    HOUR = "hour"
    DAY = "day"


_RESOLUTIONS = {Detail.FULL: Resolution.SAMPLES, Detail.HOUR: Resolution.HOURS, Detail.DAY: Resolution.DAYS}
DETAILS: Mapping[Resolution, Detail] = MappingProxyType({value: key for key, value in _RESOLUTIONS.items()})


class WrongQuestion(ValueError):
    """An invalid history query; the text is for operators, `field` is the parameter to change."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """A checked query from `start` to before `end`; custom OIDs have no unit."""

    metric: int
    start: datetime
    end: datetime
    resolution: Resolution

    @property
    def unit(self) -> Unit:
        return UNITS[Metric(self.metric)]

    @property
    def detail(self) -> Detail:
        return DETAILS[self.resolution]


def ask(metric: int, *, start: datetime | None, end: datetime | None, detail: Detail, now: datetime) -> HistoryQuery:
    """Build a query, by default of the last day; raises WrongQuestion if it is invalid or too large."""
    until = min(end or now, now)
    since = start or until - DEFAULT_SPAN
    if since >= until:
        raise WrongQuestion("from", _("Choose a time before the end, which is %(end)s.") % {"end": until.isoformat()})
    resolution = _choose(since, until, now) if detail is Detail.AUTO else _RESOLUTIONS[detail]
    days = _LONGEST_DAYS[resolution]
    if until - since > timedelta(days=days):
        raise WrongQuestion(
            "from",
            _("This resolution shows at most %(days)s days: choose a shorter period, or hour or day.") % {"days": days},
        )
    return HistoryQuery(metric, since, until, resolution)


def load_onu_history(onu_id: int, question: HistoryQuery) -> Series:
    """Load one ONU's values on any port; one query."""
    return load_onu_metrics(onu_id, (question.metric,), question)[question.metric]


def load_onu_metrics(onu_id: int, metrics: Collection[int], question: HistoryQuery) -> dict[int, Series]:
    """Load several metrics of one ONU; one query."""
    read = read_onu_metrics(onu_id, metrics, question.start, question.end, question.resolution)
    return {metric: _checked(series, replace(question, metric=metric)) for metric, series in read.items()}


def load_port_history(pon_port_id: int, question: HistoryQuery) -> PortSeries:
    """Load the values of all ONUs that were on a port; one query."""
    series = read_port(pon_port_id, question.metric, question.start, question.end, question.resolution)
    return _checked(series, question)


def load_olt_value_history(olt_id: int, row_id: int, question: HistoryQuery) -> Series:
    """Load the values of one row of an OLT's tables; one query."""
    span = question.start, question.end, question.resolution
    return _checked(read_olt_row(olt_id, row_id, question.metric, *span), question)


def load_olt_history(olt_id: int, metrics: Collection[int], question: HistoryQuery) -> dict[int, PortSeries]:
    """Load all rows of some of an OLT's tables; rows take the place of ONUs. One query."""
    read = read_olt(olt_id, metrics, question.start, question.end, question.resolution)
    return {metric: _checked(series, replace(question, metric=metric)) for metric, series in read.items()}


def load_names(onu_ids: Iterable[int]) -> dict[int, str]:
    """Return serials or places by ONU id; values of deleted ONUs stay with the port."""
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


def _checked(series: _Either, question: HistoryQuery) -> _Either:
    if series.average.size > MAX_VALUES:
        raise WrongQuestion("resolution", _("Too much for one answer: choose a shorter period, or hour or day."))
    if question.metric != Metric.STATE or question.resolution is not Resolution.SAMPLES:
        return series
    codes = series.average
    share = np.full_like(codes, np.nan)
    share[codes == STATE_CODES[RunState.ONLINE]] = 100.0
    share[codes == STATE_CODES[RunState.OFFLINE]] = 0.0
    return replace(series, average=share, lowest=share, highest=share)

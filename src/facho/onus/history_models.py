"""What the history keeps, in which whole numbers, and its blocks: waiting polls, samples by day, hours and days.

A metric is a number. Those of `Metric` are ours; above them each OID whose values somebody wants kept has its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

import numpy as np
from django.db import models
from django.utils.translation import gettext_lazy as _
from numpy.typing import NDArray

from facho.polling.domain.onu_state import RunState

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Beyond whatever a scale allows, so that no value can be mistaken for it.
MISSING = int(np.iinfo(np.int64).min)
# A block has one byte for the number.
OWN_NUMBERS = range(16, 256)
# State codes are stored as well.
STATE_CODES: Mapping[str, int] = MappingProxyType(
    {RunState.UNKNOWN.value: 0, RunState.ONLINE.value: 1, RunState.OFFLINE.value: 2}
)
# Summed up, a state is the share of samples online: hundredths of a percent. Unknown is neither.
_SHARE_STEPS = 100
_SHARES = {STATE_CODES[RunState.ONLINE.value]: 100 * _SHARE_STEPS, STATE_CODES[RunState.OFFLINE.value]: 0}


class Metric(IntEnum):
    """A series of an ONU; the numbers are stored and must never be reused."""

    RX_POWER = 1
    TX_POWER = 2
    OLT_RX_POWER = 3
    TEMPERATURE = 4
    DISTANCE = 5
    STATE = 6


@dataclass(frozen=True, slots=True)
class MetricScale:
    """Stored steps per unit, and the valid range in steps."""

    steps_per_unit: int
    lowest: int
    highest: int


_POWER = MetricScale(100, -32_767, 32_767)
# Thousandths of any unit; a day of such values, one per second, can still be summed.
_OWN = MetricScale(1_000, -(10**14), 10**14)

SCALES: Mapping[Metric, MetricScale] = MappingProxyType(
    {
        Metric.RX_POWER: _POWER,
        Metric.TX_POWER: _POWER,
        Metric.OLT_RX_POWER: _POWER,
        Metric.TEMPERATURE: MetricScale(10, -32_767, 32_767),
        Metric.DISTANCE: MetricScale(1, 0, 2_147_483_647),
        Metric.STATE: MetricScale(1, 0, 255),
    }
)

_SCALES: Mapping[int, MetricScale] = {int(metric): scale for metric, scale in SCALES.items()}


def scale_of(metric: int) -> MetricScale:
    return _SCALES.get(metric, _OWN)


def to_steps(metric: int, values: Floats) -> Ints:
    """Convert to stored steps; NaN and values out of range are missing."""
    scale = scale_of(metric)
    with np.errstate(over="ignore"):
        steps = np.rint(values * scale.steps_per_unit)
    is_possible = (steps >= scale.lowest) & (steps <= scale.highest)
    stored = np.full(len(steps), MISSING)
    stored[is_possible] = steps[is_possible].astype(np.int64)
    return stored


def from_steps(metric: int, steps: Ints, *, is_summary: bool) -> Floats:
    """Convert stored steps to the unit, missing ones to NaN; an aggregated state is a percentage."""
    is_share = is_summary and metric == Metric.STATE
    values = steps / (_SHARE_STEPS if is_share else scale_of(metric).steps_per_unit)
    values[steps == MISSING] = np.nan
    return values


def summable(metric: int, steps: Ints) -> Ints:
    if metric != Metric.STATE:
        return steps
    shares = np.full_like(steps, MISSING)
    for code, share in _SHARES.items():
        shares[steps == code] = share
    return shares


class HistoryPoll(models.Model):
    """A poll of a few adjacent PON ports, until it is merged into their daily blocks."""

    port_group = models.BigIntegerField()
    taken_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        indexes = [
            models.Index(fields=["port_group", "taken_at"], name="history_poll_of_group"),
            models.Index(fields=["taken_at"], name="history_poll_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.port_group} · {self.taken_at}"


class HistoryBlock(models.Model):
    """One metric of all ONUs of a PON port in one period.

    A block is replaced, never updated: deleting a row by id proves that it is unchanged since it was read.
    """

    pon_port = models.ForeignKey("onus.PonPort", on_delete=models.CASCADE, related_name="+", db_index=False)
    metric = models.PositiveSmallIntegerField()
    ends_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["pon_port", "metric", "ends_at"], name="one_%(class)s_per_period")
        ]
        indexes = [models.Index(fields=["ends_at"], name="%(class)s_oldest")]

    def __str__(self) -> str:
        return f"{self.pon_port_id} · {self.metric} · {self.ends_at}"


class HistorySamples(HistoryBlock):
    class Meta(HistoryBlock.Meta):
        verbose_name = _("day of measured values of ONUs")
        verbose_name_plural = _("days of measured values of ONUs")


class HistoryHours(HistoryBlock):
    """The hours of a day: average, minimum, maximum, count."""

    class Meta(HistoryBlock.Meta):
        verbose_name = _("day of hourly averages of ONUs")
        verbose_name_plural = _("days of hourly averages of ONUs")


class HistoryDays(HistoryBlock):
    """The days of a month: average, minimum, maximum, count."""

    class Meta(HistoryBlock.Meta):
        verbose_name = _("month of daily averages of ONUs")
        verbose_name_plural = _("months of daily averages of ONUs")


class HistoryStay(models.Model):
    """Links an ONU to the ports whose blocks contain it, so that its history is found after it moved."""

    onu = models.ForeignKey("onus.Onu", on_delete=models.CASCADE, related_name="+", db_index=False)
    pon_port = models.ForeignKey("onus.PonPort", on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name = _("stay of an ONU at a port")
        verbose_name_plural = _("stays of ONUs at ports")
        constraints = [models.UniqueConstraint(fields=["onu", "pon_port"], name="one_stay_per_onu_and_port")]

    def __str__(self) -> str:
        return f"{self.onu_id} · {self.pon_port_id}"

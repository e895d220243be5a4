"""A family of series, declared as data, and how it becomes one of the library's.

Prometheus takes a counter that shrinks for a restart. So only figures that are kept as such are counters; what is
counted from rows, which are deleted one day, is a gauge whose name says over which time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from facho.api.metrics_read_model import Snapshot

# The values of the labels, in their order, and the figure; no two have the same labels.
Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one name; a name that ends in `_total` is a counter."""

    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: Callable[[Snapshot], Samples]


def build_metric(family: Family, snapshot: Snapshot) -> Metric:
    """Fill a family with its samples; one without any still says what it means."""
    kind = CounterMetricFamily if family.name.endswith("_total") else GaugeMetricFamily
    metric = kind(family.name, family.meaning, labels=family.labels)
    for labels, value in family.samples(snapshot):
        metric.add_metric(labels, value)
    return metric

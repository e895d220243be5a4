"""How late the waiting nodes are, in the buckets that Zabbix's queue made familiar."""

from collections.abc import Iterable
from datetime import timedelta

BUCKETS_SECONDS = (5, 10, 30, 60, 300, 600)


def lateness_histogram(delays: Iterable[timedelta]) -> dict[int, int]:
    """Count, for each bound, the nodes that are at least that late."""
    seconds = [delay.total_seconds() for delay in delays]
    return {bound: sum(late >= bound for late in seconds) for bound in BUCKETS_SECONDS}

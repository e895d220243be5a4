"""The pollers' figures, minute by minute, so that a look back tells when they were saturated."""

from datetime import datetime

from facho.zabbix_pollers.models import PollerStats
from facho.zabbix_pollers.read_model import load_overview


def save_poller_stats(now: datetime) -> PollerStats:
    """Add one row to the series; its saturation is what the next look remembers."""
    stats = load_overview(now).global_stats
    return PollerStats.objects.create(
        total_pollers=stats.total_pollers,
        free_pollers=stats.free_pollers,
        busy_pollers=stats.busy_pollers,
        busy_percentage=stats.busy_percentage,
        queue_size=stats.queue_size,
        is_saturated=stats.is_saturated,
        total_tasks_completed=stats.total_tasks_completed,
        total_tasks_delayed=stats.total_tasks_delayed,
    )

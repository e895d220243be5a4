"""A port whose ONUs have a month of polls: their states and light, written as the history keeps them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

import numpy as np

from facho.onus.history_codec import DAY_SECONDS, HistoryGrid, encode_grid
from facho.onus.history_models import STATE_CODES, HistorySamples, HistoryStay, Metric, to_steps
from facho.onus.models import Onu, PonPort
from facho.polling.domain.availability import Month

OCTOBER = Month(2026, 10)
START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
# When October is computed.
AFTERWARDS = END + timedelta(hours=1)
STEP = timedelta(hours=1)

# What a poll reads of an ONU: whether it is online, None if nothing was read, and its light.
Story = Callable[[datetime], tuple[bool | None, float | None]]


def steady(dbm: float) -> Story:
    return lambda at: (True, dbm + 0.03 * (at.hour % 3 - 1))


def down(story: Story, since: datetime, until: datetime) -> Story:
    return lambda at: (False, None) if since <= at < until else story(at)


def silent(story: Story, since: datetime, until: datetime) -> Story:
    return lambda at: (None, None) if since <= at < until else story(at)


def day(number: int, hour: int = 0) -> datetime:
    return START + timedelta(days=number - 1, hours=hour)


def write_history(
    onus: Sequence[Onu],
    stories: Sequence[Story],
    *,
    start: datetime = START - timedelta(days=10),
    end: datetime = AFTERWARDS,
    port: PonPort | None = None,
) -> None:
    """Write the days of these ONUs of one port."""
    port_id = (port or onus[0].pon_port).id
    moments = [start + number * STEP for number in range((end - start) // STEP)]
    ids = np.array([onu.id for onu in onus], dtype=np.int64)
    for ends, its in groupby(moments, lambda at: int(at.timestamp()) // DAY_SECONDS + 1):
        taken = list(its)
        reported = [[story(at) for at in taken] for story in stories]
        at = np.array([int(each.timestamp()) for each in taken], dtype=np.int64)
        states = [
            [np.nan if up is None else STATE_CODES["online" if up else "offline"] for up, _ in row] for row in reported
        ]
        light = [[np.nan if dbm is None else dbm for _, dbm in row] for row in reported]
        for metric, values in ((Metric.STATE, np.array(states, float)), (Metric.RX_POWER, np.array(light, float))):
            grid = HistoryGrid(ids, at, to_steps(metric, values.ravel()).reshape(values.shape)[np.newaxis])
            if grid.has_values:
                HistorySamples.objects.create(
                    pon_port_id=port_id,
                    metric=metric,
                    ends_at=datetime.fromtimestamp(ends * DAY_SECONDS, UTC),
                    data=encode_grid(grid),
                )
    HistoryStay.objects.bulk_create((HistoryStay(onu=onu, pon_port_id=port_id) for onu in onus), ignore_conflicts=True)

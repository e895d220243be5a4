"""When a channel sends: its hours, its weekdays and its digests, on the installation's clock."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from facho.polling.domain.alerting import Digest, OnCall, send_at
from facho.polling.domain.schedule import Window

BOGOTA = ZoneInfo("America/Bogota")
WORKDAYS = frozenset(range(5))
NIGHT = OnCall(Window(time(22), time(6), BOGOTA), WORKDAYS)
OFFICE = OnCall(Window(time(8), time(18), BOGOTA), WORKDAYS)


def local(day: int, hour: int, minute: int = 0) -> datetime:
    """A moment in March 2026 in Bogotá; the 2nd is a Monday."""
    return datetime(2026, 3, day, hour, minute, tzinfo=BOGOTA).astimezone(UTC)


@pytest.mark.parametrize(
    ("hours", "moment", "expected"),
    [
        (OFFICE, local(2, 8), True),
        (OFFICE, local(2, 18), False),
        (OFFICE, local(7, 12), False),
        (NIGHT, local(6, 23), True),
        # The night of Friday ends on Saturday; that of Sunday is nobody's, also on Monday morning.
        (NIGHT, local(7, 5), True),
        (NIGHT, local(7, 23), False),
        (NIGHT, local(9, 5), False),
        (OnCall(Window(time(0), time(0), BOGOTA), frozenset({5, 6})), local(8, 23, 59), True),
        (OnCall(Window(time(0), time(0), BOGOTA), frozenset({5, 6})), local(9, 0), False),
    ],
)
def test_hours_belong_to_the_day_on_which_they_begin(hours: OnCall, moment: datetime, expected: bool) -> None:
    assert hours.contains(moment) is expected


@pytest.mark.parametrize(
    ("digest", "on_call", "moment", "expected"),
    [
        (Digest.AT_ONCE, None, local(2, 12, 7), local(2, 12, 7)),
        (Digest.QUARTER, None, local(2, 12, 7), local(2, 12, 15)),
        (Digest.QUARTER, None, local(2, 12, 15), local(2, 12, 30)),
        (Digest.HOUR, None, local(2, 23, 7), local(3, 0)),
        (Digest.DAY, None, local(2, 7, 59), local(2, 8)),
        (Digest.DAY, None, local(2, 8), local(3, 8)),
        (Digest.AT_ONCE, OFFICE, local(2, 12), local(2, 12)),
        (Digest.AT_ONCE, OFFICE, local(6, 18), local(9, 8)),
        (Digest.HOUR, OFFICE, local(6, 17, 30), local(9, 8)),
        (Digest.DAY, NIGHT, local(3, 12), local(4, 22)),
    ],
)
def test_a_message_waits_for_the_digest_and_the_hours(
    digest: Digest, on_call: OnCall | None, moment: datetime, expected: datetime
) -> None:
    assert send_at(moment, digest=digest, on_call=on_call, zone=BOGOTA) == expected

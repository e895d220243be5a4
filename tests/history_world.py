"""A few ONUs at PON ports whose history is written, compacted and read."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from facho.onus.compaction import CompactionLimits, compact
from facho.onus.history import Resolution, Samples, Series, append, read_onu
from facho.onus.history_models import Metric
from facho.onus.models import Onu, PonPort
from factories import make_olt

FIVE_MINUTES = timedelta(minutes=5)
FOREVER = (datetime.fromisoformat("2000-01-01T00:00:00Z"), datetime.fromisoformat("2100-01-01T00:00:00Z"))


# Ports share the row of a poll with their neighbours; these begin such a group.
FIRST_PORT_ID = 1 << 40


def make_ports(count: int) -> list[PonPort]:
    olt = make_olt()
    numbers = range(count)
    return [PonPort.objects.create(id=FIRST_PORT_ID + n, olt=olt, frame=0, slot=1, port=n) for n in numbers]


def make_onus(port: PonPort, count: int, *, now: datetime) -> list[Onu]:
    numbers = range(1, count + 1)
    return [Onu.objects.create(olt=port.olt, pon_port=port, onu_id=n, first_seen_at=now) for n in numbers]


def poll(now: datetime, powers: Mapping[Onu, float | None]) -> None:
    """Let one poll read the receive power of these ONUs where they are."""
    onus = list(powers)
    append(
        now, Samples.of([o.id for o in onus], [o.pon_port_id for o in onus], {Metric.RX_POWER: list(powers.values())})
    )


def compact_all(now: datetime, limits: CompactionLimits = CompactionLimits()) -> int:  # noqa: B008 a value
    """Compact until nothing is left, and tell how many pieces that took."""
    pieces = 0
    while compact(now, limits):
        pieces += 1
    return pieces


def read(onu: Onu, resolution: Resolution = Resolution.SAMPLES, span: tuple[datetime, datetime] = FOREVER) -> Series:
    return read_onu(onu.id, Metric.RX_POWER, *span, resolution)


def points(series: Series) -> list[tuple[int, float]]:
    """Return the values that are none of the gaps."""
    pairs = zip(series.at.tolist(), series.average.tolist(), strict=True)
    return [(at, value) for at, value in pairs if value == value]

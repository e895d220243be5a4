"""What an OLT tells of itself, as tables: its cards, its fans and supplies, and the interfaces towards the network."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from facho.hosts.models import OltData
from facho.hosts.value_words import shown_growth, shown_value, title_of

INTERFACE_LINES = 24

_CARD = (
    "board.type",
    "board.status",
    "board.cpu",
    "board.control_cpu",
    "board.memory",
    "board.control_memory",
    "board.temperature",
)
_HARDWARE = ("chassis.temperature", "fan.status", "power.status")
_INTERFACE = ("if.oper", "if.speed", "if.in_octets", "if.out_octets", "if.descr")
_FINE = frozenset({"normal", "up", "empty"})
_STATES = frozenset({"board.status", "fan.status", "power.status", "if.oper"})


@dataclass(frozen=True, slots=True)
class Figure:
    """A value as people read it; `percent` is set where a meter helps, `is_bad` where a state is not fine."""

    title: str
    text: str = ""
    percent: float | None = None
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Values of several places: the titles of those that any place has, and a line for each place."""

    titles: list[str]
    lines: list[tuple[str, list[Figure]]]


@dataclass(frozen=True, slots=True)
class Health:
    """Everything that was read of the OLT itself, and when the latest of it was."""

    cards: Table
    hardware: list[tuple[str, Figure]]
    uplinks: Table
    more_uplinks: int
    read_at: datetime | None

    @property
    def is_known(self) -> bool:
        """Tell whether there is anything to show."""
        return self.read_at is not None


def load_health(olt_id: int) -> Health:
    """Load what the OLT told last; one query."""
    rows = list(
        OltData.objects.filter(olt_id=olt_id, name__in=[*_CARD, *_HARDWARE, *_INTERFACE]).order_by("index", "id")
    )
    uplinks = _pivot(_INTERFACE, (row for row in rows if row.name in _INTERFACE and not _is_pon(row.place)))
    return Health(
        cards=_pivot(_CARD, (row for row in rows if row.name in _CARD)),
        hardware=[(row.place, _figure(row)) for row in rows if row.name in _HARDWARE],
        uplinks=Table(uplinks.titles, uplinks.lines[:INTERFACE_LINES]),
        more_uplinks=max(len(uplinks.lines) - INTERFACE_LINES, 0),
        read_at=max((row.updated_at for row in rows), default=None),
    )


def _is_pon(place: str) -> bool:
    """Tell a PON port among interfaces by its name: the map of the light shows those."""
    return "pon" in place.lower()


def _pivot(names: Sequence[str], rows: Iterable[OltData]) -> Table:
    by_place: Mapping[str, dict[str, OltData]] = defaultdict(dict)
    for row in rows:
        by_place[row.place or row.index][row.name] = row
    used = [name for name in names if any(name in found for found in by_place.values())]
    lines = [
        (place, [_figure(found[name]) if name in found else Figure(title_of(name)) for name in used])
        for place, found in by_place.items()
    ]
    return Table([title_of(name) for name in used], lines)


def _figure(row: OltData) -> Figure:
    growth = shown_growth(row.per_second, row.unit)
    is_counter = row.name.endswith("_octets")
    return Figure(
        title_of(row.name),
        text=growth if is_counter else shown_value(row.name, row.value, row.unit),
        percent=_percent(row.value) if row.unit == "percent" else None,
        is_bad=row.name in _STATES and row.value not in _FINE,
    )


def _percent(value: str) -> float | None:
    try:
        return min(max(float(value), 0.0), 100.0)
    except ValueError:
        return None

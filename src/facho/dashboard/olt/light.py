"""The light map of an OLT: a row for each card, a cell for each PON port, coloured by what its ONUs receive."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Avg, Count, Max, Min, Q
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from facho.dashboard.shared.light import STRONGEST_CDBM, WEAKEST_CDBM, LightLevel, judge_level
from facho.dashboard.shared.page import coordinate
from facho.onus.models import Onu, RunStateChoice
from facho.onus.shown_state import in_state

CELL_WIDTH, CELL_HEIGHT, GAP = 76.0, 44.0, 3.0
LEFT, TOP = 46.0, 18.0

Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Cell:
    place: Place
    x: str
    y: str
    middle: str


@dataclass(frozen=True, slots=True)
class ChassisLabel:
    text: str
    x: str
    y: str


@dataclass(frozen=True, slots=True)
class ChassisDrawing:
    """Cells with row and column labels; sizes in pixels."""

    width: str
    height: str
    cells: list[Cell]
    cards: list[ChassisLabel]
    ports: list[ChassisLabel]


def draw_chassis(places: Iterable[Place]) -> ChassisDrawing:
    """Lay out ports by card and number; unused numbers take no space."""
    known = sorted(set(places))
    cards = sorted({place[:2] for place in known})
    numbers = sorted({place[2] for place in known})
    row, column = {card: n for n, card in enumerate(cards)}, {number: n for n, number in enumerate(numbers)}
    return ChassisDrawing(
        coordinate(LEFT + len(numbers) * (CELL_WIDTH + GAP)),
        coordinate(TOP + len(cards) * (CELL_HEIGHT + GAP)),
        [
            Cell(place, _x(column[place[2]]), _y(row[place[:2]]), _x(column[place[2]], CELL_WIDTH / 2))
            for place in known
        ],
        [ChassisLabel(f"{frame}/{slot}", "0", _y(n, CELL_HEIGHT / 2 + 4)) for n, (frame, slot) in enumerate(cards)],
        [ChassisLabel(str(number), _x(n, CELL_WIDTH / 2), coordinate(TOP - 6)) for n, number in enumerate(numbers)],
    )


def _x(column: int, inside: float = 0.0) -> str:
    return coordinate(LEFT + column * (CELL_WIDTH + GAP) + inside)


def _y(row: int, inside: float = 0.0) -> str:
    return coordinate(TOP + row * (CELL_HEIGHT + GAP) + inside)


@dataclass(frozen=True, slots=True)
class PortLightCell:
    is_port_known: bool
    onus: int
    online: int
    offline: int
    average_cdbm: float | None
    lowest_cdbm: int | None
    highest_cdbm: int | None
    weak: int
    strong: int

    @property
    def is_known(self) -> bool:
        return bool(self.online or self.offline)

    @property
    def is_down(self) -> bool:
        """Whether all its ONUs were asked and none is online."""
        return not self.online and self.offline > 0


@dataclass(frozen=True, slots=True)
class HeatCell:
    cell: Cell
    level: LightLevel
    power: str
    online: str
    weak: int
    offline: int
    tip: str

    @property
    def port(self) -> str:
        return "/".join(map(str, self.cell.place))


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The chassis; `has_portless` if some ONUs have no cell because their OLT does not report ports."""

    chassis: ChassisDrawing
    cells: list[HeatCell]
    has_portless: bool


def load_heat_map(olt_id: int) -> HeatMap:
    """Load and draw the ports that have ONUs; one query."""
    lights = _load_lights(olt_id)
    known = {place: light for place, light in lights.items() if light.is_port_known}
    chassis = draw_chassis(known)
    cells = [_cell(cell, known[cell.place]) for cell in chassis.cells]
    return HeatMap(chassis, cells, has_portless=len(known) < len(lights))


def _load_lights(olt_id: int) -> Mapping[Place, PortLightCell]:
    """Sum up by port; only ONUs online count, since the power of others is from before they went down."""
    online, power = in_state(RunStateChoice.ONLINE), "reading__rx_power_cdbm"
    rows = (
        Onu.objects.filter(olt_id=olt_id, is_present=True)
        .order_by()
        .values_list("pon_port__frame", "pon_port__slot", "pon_port__port", "pon_port__is_known")
        .annotate(
            onus=Count("id"),
            online=Count("id", filter=online),
            offline=Count("id", filter=in_state(RunStateChoice.OFFLINE)),
            average=Avg(power, filter=online),
            lowest=Min(power, filter=online),
            highest=Max(power, filter=online),
            weak=Count("id", filter=online & Q(**{f"{power}__lt": WEAKEST_CDBM})),
            strong=Count("id", filter=online & Q(**{f"{power}__gt": STRONGEST_CDBM})),
        )
    )
    return {(frame, slot, port): PortLightCell(*figures) for frame, slot, port, *figures in rows}


def _cell(cell: Cell, light: PortLightCell) -> HeatCell:
    return HeatCell(
        cell=cell,
        level=LightLevel.DOWN if light.is_down else judge_level(light.average_cdbm),
        power=pgettext("state", "down") if light.is_down else _dbm(light.average_cdbm),
        online=f"{light.online if light.is_known else '?'}/{light.onus}",
        weak=light.weak,
        offline=light.offline,
        tip=_tip(cell.place, light),
    )


def _tip(place: Place, light: PortLightCell) -> str:
    lines = [_("Port %(place)s") % {"place": "/".join(map(str, place))}]
    numbers = {"online": light.online, "onus": light.onus, "offline": light.offline}
    if light.is_known:
        lines.append(_("%(online)s of %(onus)s ONUs online, %(offline)s offline") % numbers)
    else:
        lines.append(ngettext("%(onus)s ONU, state unknown", "%(onus)s ONUs, state unknown", light.onus) % numbers)
    if light.average_cdbm is not None:
        powers = {
            "average": _dbm(light.average_cdbm),
            "low": _dbm(light.lowest_cdbm),
            "high": _dbm(light.highest_cdbm),
        }
        lines.append(_("average %(average)s dBm, from %(low)s to %(high)s") % powers)
        lines.append(_("%(weak)s weak, %(strong)s too strong") % {"weak": light.weak, "strong": light.strong})
    return "\n".join(lines)


def _dbm(cdbm: float | None) -> str:
    return "—" if cdbm is None else number_format(cdbm / 100, decimal_pos=1)

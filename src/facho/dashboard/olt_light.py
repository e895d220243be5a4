"""The light of an OLT's ONUs by card and port, drawn as a map that can be read without its colours."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Avg, Count, Max, Min, Q
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from facho.dashboard.light import STRONGEST_CDBM, WEAKEST_CDBM, Level, judge_level
from facho.dashboard.svg_heat import Cell, Chassis, Place, draw_chassis
from facho.onus.models import Onu, RunState
from facho.onus.shown_state import in_state


@dataclass(frozen=True, slots=True)
class PortLight:
    """What the ONUs of a port that are online receive, and how many there are."""

    onus: int
    online: int
    offline: int
    average_cdbm: float | None
    lowest_cdbm: int | None
    highest_cdbm: int | None
    weak: int
    strong: int


Lights = Mapping[Place, PortLight]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A port as it is drawn: its average, who is online, and what is wrong, each as text."""

    cell: Cell
    level: Level
    power: str
    online: str
    weak: int
    offline: int
    tip: str

    @property
    def port(self) -> str:
        """The place as people write it."""
        return "/".join(map(str, self.cell.place))


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The chassis and its cells, and how many ONUs have no place in it since the OLT does not tell their ports."""

    chassis: Chassis
    cells: list[HeatCell]
    portless_onus: int


def load_heat_map(olt_id: int) -> HeatMap:
    """Load and draw the ports of an OLT that have ONUs; one query."""
    known, unknown = _load_lights(olt_id)
    chassis = draw_chassis(known)
    cells = [_cell(cell, known[cell.place]) for cell in chassis.cells]
    return HeatMap(chassis, cells, sum(light.onus for light in unknown.values()))


def _load_lights(olt_id: int) -> tuple[Lights, Lights]:
    """Sum up by known and unknown port; only those online count, since power read before an ONU went is history."""
    online, power = in_state(RunState.ONLINE), "reading__rx_power_cdbm"
    rows = (
        Onu.objects.filter(olt_id=olt_id, is_present=True)
        .order_by()
        .values_list("pon_port__is_known", "pon_port__frame", "pon_port__slot", "pon_port__port")
        .annotate(
            onus=Count("id"),
            online=Count("id", filter=online),
            offline=Count("id", filter=in_state(RunState.OFFLINE)),
            average=Avg(power, filter=online),
            lowest=Min(power, filter=online),
            highest=Max(power, filter=online),
            weak=Count("id", filter=online & Q(**{f"{power}__lt": WEAKEST_CDBM})),
            strong=Count("id", filter=online & Q(**{f"{power}__gt": STRONGEST_CDBM})),
        )
    )
    known: dict[Place, PortLight] = {}
    unknown: dict[Place, PortLight] = {}
    for is_known, frame, slot, port, *figures in rows:
        (known if is_known else unknown)[frame, slot, port] = PortLight(*figures)
    return known, unknown


def _cell(cell: Cell, light: PortLight) -> HeatCell:
    return HeatCell(
        cell=cell,
        level=judge_level(light.average_cdbm),
        power=_dbm(light.average_cdbm),
        online=f"{light.online}/{light.onus}",
        weak=light.weak,
        offline=light.offline,
        tip=_tip(cell.place, light),
    )


def _tip(place: Place, light: PortLight) -> str:
    lines = [
        _("Port %(place)s") % {"place": "/".join(map(str, place))},
        _("%(online)s of %(onus)s ONUs online, %(offline)s offline")
        % {"online": light.online, "onus": light.onus, "offline": light.offline},
    ]
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

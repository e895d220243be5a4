"""The light of an OLT's ONUs by card and port, drawn as a map that can be read without its colours."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Avg, Count, Max, Min, Q
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from facho.dashboard.light import STRONGEST_CDBM, WEAKEST_CDBM, Level, judge_level
from facho.dashboard.svg_heat import Cell, Chassis, Place, draw_chassis
from facho.onus.models import Onu, RunState
from facho.onus.shown_state import in_state


@dataclass(frozen=True, slots=True)
class PortLight:
    """What the ONUs of a port that are online receive, and how many there are."""

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
        """Whether anything may be said of its ONUs now."""
        return bool(self.online or self.offline)

    @property
    def is_down(self) -> bool:
        """Whether none of its ONUs is online though they were asked for."""
        return not self.online and self.offline > 0


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
    """The chassis and its cells; some ONUs may have no place in it, since their OLT does not tell their ports."""

    chassis: Chassis
    cells: list[HeatCell]
    has_portless: bool


def load_heat_map(olt_id: int) -> HeatMap:
    """Load and draw the ports of an OLT that have ONUs; one query."""
    lights = _load_lights(olt_id)
    known = {place: light for place, light in lights.items() if light.is_port_known}
    chassis = draw_chassis(known)
    cells = [_cell(cell, known[cell.place]) for cell in chassis.cells]
    return HeatMap(chassis, cells, has_portless=len(known) < len(lights))


def _load_lights(olt_id: int) -> Mapping[Place, PortLight]:
    """Sum up by port; power that was read before an ONU went is history, so only those online count."""
    online, power = in_state(RunState.ONLINE), "reading__rx_power_cdbm"
    rows = (
        Onu.objects.filter(olt_id=olt_id, is_present=True)
        .order_by()
        .values_list("pon_port__frame", "pon_port__slot", "pon_port__port", "pon_port__is_known")
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
    return {(frame, slot, port): PortLight(*figures) for frame, slot, port, *figures in rows}


def _cell(cell: Cell, light: PortLight) -> HeatCell:
    return HeatCell(
        cell=cell,
        level=Level.DOWN if light.is_down else judge_level(light.average_cdbm),
        power=pgettext("state", "down") if light.is_down else _dbm(light.average_cdbm),
        online=f"{light.online if light.is_known else '?'}/{light.onus}",
        weak=light.weak,
        offline=light.offline,
        tip=_tip(cell.place, light),
    )


def _tip(place: Place, light: PortLight) -> str:
    lines = [
        _("Port %(place)s") % {"place": "/".join(map(str, place))},
        _say_states(light),
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


def _say_states(light: PortLight) -> str:
    numbers = {"online": light.online, "onus": light.onus, "offline": light.offline}
    if not light.is_known:
        return ngettext("%(onus)s ONU, state unknown", "%(onus)s ONUs, state unknown", light.onus) % numbers
    return _("%(online)s of %(onus)s ONUs online, %(offline)s offline") % numbers


def _dbm(cdbm: float | None) -> str:
    return "—" if cdbm is None else number_format(cdbm / 100, decimal_pos=1)

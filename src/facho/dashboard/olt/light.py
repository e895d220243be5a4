"""The light map of an OLT: a row for each card, a cell for each PON port, coloured by what its ONUs receive."""

from collections.abc import Mapping
from typing import Any

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


def load_heat_map(olt_id: int) -> dict[str, Any]:
    """Load and draw the ports that have ONUs; one query. Numbers of cards and ports without any take no space."""
    rows = _load_lights(olt_id)
    known = {place: light for place, light in sorted(rows.items()) if light["pon_port__is_known"]}
    cards, numbers = sorted({place[:2] for place in known}), sorted({place[2] for place in known})
    return {
        "width": _x(len(numbers)),
        "height": _y(len(cards)),
        "cards": [
            {"text": f"{frame}/{slot}", "y": _y(n, CELL_HEIGHT / 2 + 4)} for n, (frame, slot) in enumerate(cards)
        ],
        "ports": [{"text": number, "x": _x(n, CELL_WIDTH / 2)} for n, number in enumerate(numbers)],
        "ports_y": coordinate(TOP - 6),
        "cells": [
            {"place": place, "x": _x(numbers.index(place[2])), "y": _y(cards.index(place[:2])), **_words(place, light)}
            for place, light in known.items()
        ],
        # Some ONUs have no cell because their OLT does not report ports.
        "has_portless": len(known) < len(rows),
    }


def _x(column: int, inside: float = 0.0) -> str:
    return coordinate(LEFT + column * (CELL_WIDTH + GAP) + inside)


def _y(row: int, inside: float = 0.0) -> str:
    return coordinate(TOP + row * (CELL_HEIGHT + GAP) + inside)


def _load_lights(olt_id: int) -> Mapping[Place, Mapping[str, Any]]:
    """Sum up by port; only ONUs online count, since the power of others is from before they went down."""
    online, power = in_state(RunStateChoice.ONLINE), "reading__rx_power_cdbm"
    rows = (
        Onu.objects.filter(olt_id=olt_id, is_present=True)
        .order_by()
        .values("pon_port__frame", "pon_port__slot", "pon_port__port", "pon_port__is_known")
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
    return {(row["pon_port__frame"], row["pon_port__slot"], row["pon_port__port"]): row for row in rows}


def _words(place: Place, light: Mapping[str, Any]) -> dict[str, Any]:
    """Say what a port receives, in its cell and in its tip."""
    average, name = light["average"], "/".join(map(str, place))
    is_known = light["online"] or light["offline"]
    # All its ONUs were asked and none is online.
    is_down = not light["online"] and light["offline"]
    lines = [_("Port %(place)s") % {"place": name}]
    if is_known:
        lines.append(_("%(online)s of %(onus)s ONUs online, %(offline)s offline") % light)
    else:
        lines.append(ngettext("%(onus)s ONU, state unknown", "%(onus)s ONUs, state unknown", light["onus"]) % light)
    if average is not None:
        powers = {"average": _dbm(average), "low": _dbm(light["lowest"]), "high": _dbm(light["highest"])}
        lines.append(_("average %(average)s dBm, from %(low)s to %(high)s") % powers)
        lines.append(_("%(weak)s weak, %(strong)s too strong") % light)
    return {
        "port": name,
        "level": LightLevel.DOWN if is_down else judge_level(average),
        "power": pgettext("state", "down") if is_down else _dbm(average),
        "online": f"{light['online'] if is_known else '?'}/{light['onus']}",
        "weak": light["weak"],
        "tip": "\n".join(lines),
    }


def _dbm(cdbm: float | None) -> str:
    return "—" if cdbm is None else number_format(cdbm / 100, decimal_pos=1)

"""The page of the map and what it draws; images of streets come from where the operator said, or not at all."""

import json
import math
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.plant.views import LOOKS
from facho.dashboard.shared.page import for_users, may_operate, read_id
from facho.onus.models import Outage
from facho.onus.words import ShownState
from facho.plant.boxes import visible_boxes
from facho.plant.map import MapBounds, load_break, load_extent, load_features

# About half a kilometre around a single box.
NEARBY = 0.004
EDGES = {"west": 180.0, "south": 90.0, "east": 180.0, "north": 90.0}


@require_safe
@for_users
def map_page(request: HttpRequest) -> HttpResponse:
    """Show the map of all boxes, or the surroundings of one, of a zone, or of an outage's break."""
    scope, tiles = scope_of(request.user), settings.FACHO_MAP_TILES
    extent = _chosen_extent(request, scope) or load_extent(scope)
    words = {look.value: str(text) for look, text in LOOKS.items()}
    words |= {state.value: str(state.label) for state in ShownState if state.value not in words}
    words |= {"counted": _("%s online"), "boxes": _("%s boxes"), "break": _("broken"), "finding": _("light")}
    context = {
        "here": "map",
        "extent": extent,
        "tiles": tiles,
        "attribution": settings.FACHO_MAP_ATTRIBUTION if tiles else "",
        "words": json.dumps(words),
        "looks": [(look.value, text) for look, text in LOOKS.items()],
        "may_operate": may_operate(request),
    }
    response = render(request, "plant/map.html", context)
    if tiles:
        parts = urlsplit(tiles)
        # Of the policy: images of this origin, on this page alone.
        response.image_origin = f"{parts.scheme}://{parts.netloc}"  # type: ignore[attr-defined]
    return response


def _chosen_extent(request: HttpRequest, scope: OltScope) -> MapBounds | None:
    """Return the surroundings of what the address names; None for what is not there or has no place."""
    named = {name: row_id for name in ("box", "zone", "outage") if (row_id := read_id(request.GET.get(name, "")))}
    if "outage" in named:
        outage = scope.narrow(Outage.objects.filter(id=named["outage"])).first()
        found = load_break(outage) if outage else None
        return _around(load_extent(scope, found.boxes.keys() if found else []))
    if "zone" in named:
        ids = visible_boxes(scope).filter(zone_id=named["zone"]).values_list("id", flat=True)
        return _around(load_extent(scope, list(ids)))
    return _around(load_extent(scope, [named["box"]])) if "box" in named else None


def _around(extent: MapBounds | None) -> MapBounds | None:
    if extent is None:
        return None
    return MapBounds(extent.west - NEARBY, extent.south - NEARBY, extent.east + NEARBY, extent.north + NEARBY)


@require_safe
@for_users
def map_features(request: HttpRequest) -> HttpResponse:
    """Answer with GeoJSON of what is between the edges of a view."""
    bounds = _read_bounds(request)
    if bounds is None:
        return JsonResponse({"detail": _("west, south, east and north are degrees.")}, status=400)
    wants_customers = request.GET.get("customers") == "true"
    found: dict[str, Any] = load_features(scope_of(request.user), bounds, with_customers=wants_customers)
    return JsonResponse(found, content_type="application/geo+json")


def _read_bounds(request: HttpRequest) -> MapBounds | None:
    try:
        edges = {name: float(request.GET.get(name, "")) for name in EDGES}
    except ValueError:
        return None
    if not all(math.isfinite(value) and abs(value) <= EDGES[name] for name, value in edges.items()):
        return None
    return MapBounds(**edges)

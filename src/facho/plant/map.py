"""Reads what pages and the map show of the plant: boxes by the state of their ONUs, customers, broken segments."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, Max, Min, OuterRef, Q, Subquery, Value
from django.db.models.expressions import Combinable
from django.utils import timezone
from django.utils.formats import localize
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.accounts.scope import OltScope
from facho.onus.events import OF_OUTAGES
from facho.onus.models import Onu, OnuEvent, OnuReading, Outage, PonPort
from facho.onus.outages import MemberChange, dark_at_worst
from facho.onus.shown_state import shown_state, shown_state_column
from facho.onus.words import EventKinds, OutageCauses, OutageScopes, RunStateChoice, ShownState
from facho.plant.boxes import visible_boxes, visible_zones
from facho.plant.models import Box, FindingKinds, LightFinding, OnuAttachment, Zone
from facho.plant.store import all_findings, describe_finding, hit_of
from facho.polling.domain.onu_state import WEAKEST_CDBM
from facho.polling.domain.plant import (
    BoxLook,
    BreakEvidence,
    BrokenSegment,
    FibreBreak,
    PlacedOnu,
    ancestors,
    find_break,
    judge_box,
)

# More boxes than can be told apart on a screen; beyond it they are shown by areas.
MOST_BOXES = 2_000
MOST_CUSTOMERS = 2_000
MOST_OUTAGES = 50
# Areas across the map when boxes are shown by areas.
AREAS_ACROSS = 24
# Nothing else has to be found on a map at once.
MOST_ZONES = 500
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class BoxCounts:
    """ONUs behind a box by shown state; `weak` are those online with too little light."""

    online: int = 0
    offline: int = 0
    unknown: int = 0
    weak: int = 0

    @property
    def total(self) -> int:
        return self.online + self.offline + self.unknown

    @property
    def look(self) -> BoxLook:
        return judge_box(online=self.online, offline=self.offline, weak=self.weak)


@dataclass(frozen=True, slots=True)
class MapBounds:
    """A part of the world in degrees."""

    west: float
    south: float
    east: float
    north: float

    @property
    def inside(self) -> Q:
        return Q(latitude__range=(self.south, self.north), longitude__range=(self.west, self.east))


def count_onus(boxes: Sequence[Box]) -> dict[int, BoxCounts]:
    """Count the present ONUs on each box and on those that it feeds; two queries."""
    ports = {box.pon_port_id for box in boxes}
    family = Q(pon_port__in=ports - {None}) | (Q(pon_port__isnull=True) if None in ports else Q())
    rows = Box.objects.filter(family).order_by() if boxes else Box.objects.none()
    parents = dict(rows.values_list("id", "parent_id"))
    of_family = Q(box__pon_port__in=ports - {None}) | (Q(box__pon_port__isnull=True) if None in ports else Q())
    attached = OnuAttachment.objects.filter(of_family, onu__is_present=True).order_by()
    is_weak = Q(onu__reading__rx_power_cdbm__lt=WEAKEST_CDBM)
    shown = attached.annotate(shown=shown_state_column("onu__")).values_list("box_id", "shown")
    counted = shown.annotate(number=Count("pk"), weak=Count("pk", filter=is_weak))
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for box_id, state, number, weak in counted if boxes else ():
        for each in ancestors(box_id, parents):
            found[each][state] += number
            found[each]["weak"] += weak if state == ShownState.ONLINE else 0
    return {box.id: BoxCounts(**found[box.id]) for box in boxes}


def load_features(scope: OltScope, bounds: MapBounds, *, with_customers: bool) -> dict[str, Any]:
    """Load what the map shows between bounds, as GeoJSON; what is too much for a screen is summed up by area."""
    boxes = _boxes_between(scope, bounds)
    is_whole = len(boxes) <= MOST_BOXES
    counts = count_onus(boxes)
    features = [*_zone_features(scope, bounds)]
    features += _box_features(boxes, counts) if is_whole else _area_features(boxes, counts, bounds)
    customers = list(_customer_features(scope, bounds)) if with_customers else []
    features += customers[:MOST_CUSTOMERS]
    features += _break_features(scope)
    features += _finding_features(scope, timezone.now())
    return {
        "type": "FeatureCollection",
        "features": features,
        "is_whole": is_whole and len(customers) <= MOST_CUSTOMERS,
    }


def load_extent(scope: OltScope, box_ids: Collection[int] | None = None) -> MapBounds | None:
    """Return what holds all boxes that have a place, or these; None without any."""
    boxes = visible_boxes(scope).filter(latitude__isnull=False).order_by()
    if box_ids is not None:
        boxes = boxes.filter(id__in=box_ids)
    edges = boxes.aggregate(west=Min("longitude"), south=Min("latitude"), east=Max("longitude"), north=Max("latitude"))
    return None if edges["west"] is None else MapBounds(**edges)


def _boxes_between(scope: OltScope, bounds: MapBounds) -> list[Box]:
    """Load the boxes of a view; too many for a screen without what only a single one shows."""
    boxes = visible_boxes(scope).filter(bounds.inside).order_by("id")
    shown = list(boxes.select_related("parent__parent")[: MOST_BOXES + 1])
    if len(shown) <= MOST_BOXES:
        return shown
    return list(boxes.only("kind", "pon_port_id", "latitude", "longitude"))


def _feature(point: Point | list[Point], **properties: Any) -> dict[str, Any]:
    kind = "LineString" if isinstance(point, list) else "Point"
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": point}, "properties": properties}


def point_of(row: Box | Zone | Any) -> Point | None:
    if row is None or row.latitude is None or row.longitude is None:
        return None
    return row.longitude, row.latitude


def _zone_features(scope: OltScope, bounds: MapBounds) -> Iterator[dict[str, Any]]:
    for zone in visible_zones(scope).filter(bounds.inside).order_by("name")[:MOST_ZONES]:
        yield _feature((zone.longitude or 0.0, zone.latitude or 0.0), type="zone", id=zone.id, name=zone.name)


def _box_features(boxes: Iterable[Box], counts: Mapping[int, BoxCounts]) -> Iterator[dict[str, Any]]:
    for box in boxes:
        each = counts[box.id]
        # A box without a place is passed over by the line.
        before = point_of(box.parent) or (point_of(box.parent.parent) if box.parent else None)
        yield _feature(
            (box.longitude or 0.0, box.latitude or 0.0),
            type="box",
            id=box.id,
            name=box.name,
            kind=box.kind,
            before=before,
            look=each.look,
            online=each.online,
            offline=each.offline,
            weak=each.weak,
            total=each.total,
        )


def _area_features(
    boxes: Sequence[Box], counts: Mapping[int, BoxCounts], bounds: MapBounds
) -> Iterator[dict[str, Any]]:
    """Sum boxes up by square areas, each where its boxes are on average."""
    size = max(bounds.east - bounds.west, bounds.north - bounds.south) / AREAS_ACROSS or 1.0
    areas: dict[Point, list[Box]] = defaultdict(list)
    for box in boxes:
        place = point_of(box) or (0.0, 0.0)
        areas[place[0] // size, place[1] // size].append(box)
    for members in areas.values():
        ends = [box for box in members if box.kind != "splitter"]
        sums = {name: sum(getattr(counts[box.id], name) for box in ends) for name in ("online", "offline", "weak")}
        middle = [sum(each) / len(members) for each in zip(*map(point_of, members), strict=True)]
        yield _feature((middle[0], middle[1]), type="area", boxes=len(members), look=judge_box(**sums), **sums)


def _customer_features(scope: OltScope, bounds: MapBounds) -> Iterator[dict[str, Any]]:
    limits = {"latitude": (bounds.south, bounds.north), "longitude": (bounds.west, bounds.east)}
    onus = scope.narrow(Onu.objects.filter(is_present=True)).filter(
        **{f"customer__{name}__range": between for name, between in limits.items()}
    )
    columns = ("reading__run_state", "reading__rx_power_cdbm", "customer__label", "attachment__box__latitude")
    rows = onus.select_related("olt", "reading", "customer", "attachment__box").only(
        *("serial", "mac", "onu_id", "is_present", "olt__enabled", "olt__reachability", "pon_port_id", *columns),
        *("customer__latitude", "customer__longitude", "attachment__box__longitude", "attachment__source"),
    )
    for onu in rows.order_by("id")[: MOST_CUSTOMERS + 1]:
        state, reading = shown_state(onu), getattr(onu, "reading", None)
        power = reading.rx_power_cdbm if reading and state is ShownState.ONLINE else None
        is_weak = power is not None and power < WEAKEST_CDBM
        customer, attachment = onu.customer, getattr(onu, "attachment", None)
        yield _feature(
            (customer.longitude or 0.0, customer.latitude or 0.0),
            type="onu",
            id=onu.id,
            name=customer.label or onu.serial or onu.mac,
            state=state.value,
            look=_LOOKS.get(state, BoxLook.UNKNOWN) if not is_weak else BoxLook.WEAK,
            dbm=None if power is None else power / 100,
            before=point_of(attachment.box) if attachment else None,
        )


_LOOKS = {ShownState.ONLINE: BoxLook.WELL, ShownState.OFFLINE: BoxLook.DARK}


def _break_features(scope: OltScope) -> Iterator[dict[str, Any]]:
    """Yield the broken segments of outages that are going on, where boxes tell them; four queries."""
    open_ones = scope.narrow(Outage.objects.filter(ended_at__isnull=True, scope=OutageScopes.PON))
    outages = list(open_ones.filter(cause__in=_OF_FIBRE).order_by("-affected", "id")[:MOST_OUTAGES])
    for outage, found in zip(outages, load_breaks(outages), strict=True):
        for segment in found.fibre.segments if found else ():
            yield from _segment_features(outage, segment, found.boxes if found else {})


def _segment_features(outage: Outage, segment: BrokenSegment, boxes: Mapping[int, Box]) -> Iterator[dict[str, Any]]:
    about = {"type": "break", "id": outage.id, "name": segment_words(segment, boxes), "dark": segment.dark}
    healthy = point_of(boxes.get(segment.healthy_box_id or 0))
    places = [point for box_id in segment.dark_box_ids if (point := point_of(boxes.get(box_id)))]
    for place in places:
        yield _feature([healthy, place] if healthy else place, **about)
    if healthy and not places:
        yield _feature(healthy, **about)


def _finding_features(scope: OltScope, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield what light shows of several ONUs or of one, at the box that has them; five queries if there is any."""
    its = scope.narrow(all_findings(), "pon_port__olt").filter(ended_at__isnull=True, kind__in=_OF_BOXES)
    findings = list(its.filter(judged_at__gt=now - KEPT_ON_MAP)[:MOST_FINDINGS])
    for finding, box in zip(findings, place_findings(findings), strict=True):
        if point := point_of(box):
            name = f"{box}: {describe_finding(finding, now)}"
            yield _feature(point, type="finding", id=finding.id, name=name, box=box.id if box else None)


# A lasting loss is shown for this time; what each day confirms again, as long as it does.
KEPT_ON_MAP = timedelta(days=30)
MOST_FINDINGS = 200
_OF_BOXES = (FindingKinds.COMMON_STEP, FindingKinds.BRANCH_DECAY, FindingKinds.STEP)
# The box that is named has this share of the ONUs that were hit and are on known boxes, on it or behind it.
_MOST_OF_THEM = 0.8


def place_findings(findings: Sequence[LightFinding]) -> list[Box | None]:
    """Find the last box that feeds most ONUs of each finding; two queries."""
    hit = [[each.onu_id] if each.onu_id else [row.onu_id for row in hit_of(each)] for each in findings]
    attached = OnuAttachment.objects.filter(onu_id__in={onu_id for onu_ids in hit for onu_id in onu_ids})
    box_of = dict(attached.values_list("onu_id", "box_id"))
    boxes = {box.id: box for box in Box.objects.filter(pon_port_id__in={each.pon_port_id for each in findings})}
    parents = {box.id: box.parent_id for box in boxes.values()}
    return [boxes.get(_shared_box([box_of[i] for i in onu_ids if i in box_of], parents)) for onu_ids in hit]


def _shared_box(box_ids: Sequence[int], parents: Mapping[int, int | None]) -> int:
    """Return the box farthest from the OLT that most are on or behind; 0 if there is none."""
    chains = [list(ancestors(box_id, parents)) for box_id in box_ids]
    counts = Counter(box_id for chain in chains for box_id in chain)
    shared = (box_id for box_id, count in counts.items() if count >= _MOST_OF_THEM * len(chains))
    return max(shared, key=lambda box_id: len(list(ancestors(box_id, parents))), default=0)


def load_box_findings(box: Box, now: datetime) -> list[LightFinding]:
    """Load what the light of the ONUs on a box, or behind it, shows now; two queries."""
    behind = OnuAttachment.objects.filter(Q(box=box) | Q(box__parent=box) | Q(box__parent__parent=box)).values("onu_id")
    hit = LightFinding.objects.filter(members__onu_id__in=behind, members__is_hit=True).values("id")
    its = all_findings().filter(Q(id__in=hit) | Q(onu_id__in=behind), ended_at__isnull=True)
    return list(its.filter(judged_at__gt=now - KEPT_ON_MAP)[:MOST_OF_BOX])


def load_box_breaks(box: Box) -> list[tuple[Outage, str]]:
    """Load the open outages that broke the fibre at a box, with the words of its segment; four queries at most."""
    port = box.pon_port
    if port is None:
        return []
    place = {name: getattr(port, name) for name in _PLACE}
    outages = list(Outage.objects.filter(ended_at__isnull=True, scope=OutageScopes.PON, cause__in=_OF_FIBRE, **place))
    return [
        (outage, segment_words(segment, found.boxes))
        for outage, found in zip(outages, load_breaks(outages), strict=True)
        if found is not None
        for segment in found.fibre.segments
        if box.id in (segment.healthy_box_id, *segment.dark_box_ids)
    ]


# More findings of one box say nothing more.
MOST_OF_BOX = 20
# A failure of power has no place in the fibre.
_OF_FIBRE = (OutageCauses.FIBRE, OutageCauses.UNKNOWN)


@dataclass(frozen=True, slots=True)
class FoundBreak:
    """Where the fibre of an outage broke, with the boxes of the port."""

    fibre: FibreBreak
    boxes: Mapping[int, Box]
    onus: Sequence[PlacedOnu]


def load_break(outage: Outage, changes: Sequence[MemberChange] = ()) -> FoundBreak | None:
    """Find the broken segment of a port's outage; None where its cause is not in the fibre. Three queries.

    The ONUs of an outage that is over may be in a later one by now: its `changes` say which were dark.
    """
    return _find_breaks([outage], changes)[0]


def load_breaks(outages: Sequence[Outage]) -> list[FoundBreak | None]:
    """Find the broken segment of each outage that is going on; three queries."""
    return _find_breaks(outages, ())


def _find_breaks(outages: Sequence[Outage], changes: Sequence[MemberChange]) -> list[FoundBreak | None]:
    of_fibre = [each for each in outages if each.scope == OutageScopes.PON and each.cause in _OF_FIBRE]
    if not of_fibre:
        return [None] * len(outages)
    at_olts = PonPort.objects.filter(olt_id__in={each.olt_id for each in of_fibre})
    places = {tuple(place): port_id for port_id, *place in at_olts.values_list("id", *_PLACE)}
    port_of = {each.id: places.get(tuple(getattr(each, name) for name in _PLACE)) for each in of_fibre}
    port_ids = set(port_of.values()) - {None}
    onus: dict[int, list[_StruckOnu]] = defaultdict(list)
    readings = OnuReading.objects.filter(onu__pon_port_id__in=port_ids, onu__is_present=True).order_by("onu_id")
    next_change = _next_change(max((each.ended_at for each in of_fibre if each.ended_at), default=None))
    for port_id, *row in readings.values_list("onu__pon_port_id", *_STRUCK, next_change):
        onus[port_id].append(_StruckOnu(*row))
    boxes: dict[int, dict[int, Box]] = defaultdict(dict)
    for box in Box.objects.filter(pon_port_id__in=port_ids).order_by("id"):
        boxes[box.pon_port_id or 0][box.id] = box
    return [
        _break_of(each, onus[port_id], boxes[port_id], changes)
        if (port_id := port_of.get(each.id)) is not None
        else None
        for each in outages
    ]


class _StruckOnu(NamedTuple):
    """An ONU of a port with an outage. `next_change` is the kind of its first change after the end, if there is one."""

    id: int
    box_id: int | None
    distance_m: int | None
    state: str
    outage_id: int | None
    next_change: str | None


_PLACE = ("olt_id", "frame", "slot", "port")
_STRUCK = ("onu_id", "onu__attachment__box_id", "distance_m", "run_state", "outage_id")


def _next_change(ended_at: datetime | None) -> Combinable:
    if ended_at is None:
        return Value("")
    later = OnuEvent.objects.filter(onu_id=OuterRef("onu_id"), at__gt=ended_at, kind__in=OF_OUTAGES)
    return Subquery(later.order_by("at", "id").values("kind")[:1])


def _break_of(
    outage: Outage, struck: Sequence[_StruckOnu], boxes: Mapping[int, Box], changes: Sequence[MemberChange]
) -> FoundBreak:
    are_dark = _were_dark(struck, outage.ended_at, changes) if outage.ended_at else _are_dark(struck, outage)
    onus = [PlacedOnu(onu.box_id, onu.distance_m, is_dark) for onu, is_dark in zip(struck, are_dark, strict=True)]
    return FoundBreak(find_break(onus, {box.id: box.parent_id for box in boxes.values()}), boxes, onus)


def _are_dark(struck: Iterable[_StruckOnu], outage: Outage) -> Iterator[bool | None]:
    for onu in struck:
        is_member = onu.outage_id == outage.id and onu.state == RunStateChoice.OFFLINE
        yield True if is_member else False if onu.state == RunStateChoice.ONLINE else None


def _were_dark(
    struck: Iterable[_StruckOnu], ended_at: datetime, changes: Sequence[MemberChange]
) -> Iterator[bool | None]:
    dark = dark_at_worst(changes, until=ended_at)
    unsteady = {each.onu_id for each in changes if each.is_down and each.at <= ended_at} - dark
    for onu in struck:
        # What it went to next says what it was at the end; without any change it is still that.
        was_online = onu.next_change == EventKinds.DOWN or (not onu.next_change and onu.state == RunStateChoice.ONLINE)
        yield True if onu.id in dark else False if was_online and onu.id not in unsteady else None


def segment_words(segment: BrokenSegment, boxes: Mapping[int, Box]) -> str:
    healthy = boxes[segment.healthy_box_id].name if segment.healthy_box_id else ""
    dark = ", ".join(boxes[box_id].name for box_id in segment.dark_box_ids)
    if not dark:
        return _("at the outputs of %(box)s") % {"box": healthy}
    if not healthy:
        return _("between the OLT and %(dark)s") % {"dark": dark}
    return _("between %(healthy)s and %(dark)s") % {"healthy": healthy, "dark": dark}


def describe_break(found: FoundBreak) -> list[str]:
    fibre = found.fibre
    if fibre.evidence is BreakEvidence.BOXES:
        return [
            ngettext(
                "Probably broken %(where)s: %(n)s ONU is dark behind it.",
                "Probably broken %(where)s: %(n)s ONUs are dark behind it.",
                each.dark,
            )
            % {"where": segment_words(each, found.boxes), "n": each.dark}
            for each in fibre.segments
        ]
    if fibre.evidence is BreakEvidence.DISTANCE:
        text = _(
            "Probably broken between %(near)s and %(far)s from the OLT: every dark ONU is farther away than all others."
        )
        return [text % {"near": _length(fibre.near_m or 0), "far": _length(fibre.far_m or 0)}]
    if fibre.evidence is BreakEvidence.WHOLE_PORT:
        return [_("Where it broke is not known: all of the port is dark, so it is the feeder or the port itself.")]
    if fibre.far_m is None:
        return [_("Where it broke is not known: too little is known of boxes and distances.")]
    text = _("Where it broke is not known; if it is one break, it is within %(far)s of the OLT.")
    return [text % {"far": _length(fibre.far_m)}]


def explain_break(found: FoundBreak) -> str:
    """Write the numbers that a place, or that none is known, rests on."""
    dark, lit = ([onu for onu in found.onus if onu.is_dark is is_dark] for is_dark in (True, False))
    text = _(
        "ONUs that are dark: %(dark)s, of which %(dark_boxes)s on known boxes, %(dark_m)s from the OLT. "
        "With light: %(lit)s, of which %(lit_boxes)s on known boxes, %(lit_m)s from the OLT."
    )
    numbers = {
        "dark": len(dark),
        "dark_boxes": sum(onu.box_id is not None for onu in dark),
        "dark_m": _span(dark),
        "lit": len(lit),
        "lit_boxes": sum(onu.box_id is not None for onu in lit),
        "lit_m": _span(lit),
    }
    return text % numbers


def _span(onus: Sequence[PlacedOnu]) -> str:
    metres = [onu.distance_m for onu in onus if onu.distance_m is not None]
    if not metres:
        return _("at unknown distances")
    return _("%(near)s to %(far)s") % {"near": _length(min(metres)), "far": _length(max(metres))}


def _length(metres: int) -> str:
    return (
        _("%(n)s km") % {"n": localize(round(metres / 1_000, 1))} if metres >= 1_000 else _("%(n)s m") % {"n": metres}
    )

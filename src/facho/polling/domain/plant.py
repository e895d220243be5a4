"""The tree of boxes: loops in it, where a fibre broke, and which inferred groups are boxes that people know."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

# One dark ONU may as well be a drop, or a customer without power.
MIN_DARK = 2
# Distances are the weaker evidence.
MIN_DARK_BY_DISTANCE = 3
# Of the dark ONUs: below it, what is known of them says little about the others.
MIN_SHARE_KNOWN = 0.5


class BoxLook(StrEnum):
    """How the ONUs of a box are, the worst first."""

    DARK = "dark"
    SOME_OFFLINE = "some_offline"
    WEAK = "weak"
    WELL = "well"
    UNKNOWN = "unknown"


def judge_box(*, online: int, offline: int, weak: int) -> BoxLook:
    """Judge a box by its ONUs whose state is known; `weak` are those online with too little light."""
    if offline:
        return BoxLook.SOME_OFFLINE if online else BoxLook.DARK
    if weak:
        return BoxLook.WEAK
    return BoxLook.WELL if online else BoxLook.UNKNOWN


def ancestors(key: Key, parents: Mapping[Key, Key | None]) -> Iterator[Key]:
    """Yield a box and those before it, up to the first; in a loop each once."""
    seen: set[Key] = set()
    at: Key | None = key
    while at is not None and at not in seen:
        seen.add(at)
        yield at
        at = parents.get(at)


def find_loops(parents: Mapping[Key, Key | None]) -> set[Key]:
    """Return all that, followed towards the OLT, come back to themselves."""
    sound: set[Key] = set()
    loops: set[Key] = set()
    for start in parents:
        path: dict[Key, None] = {}
        at: Key | None = start
        while at is not None and at not in sound and at not in path and at not in loops:
            path[at] = None
            at = parents.get(at)
        if at is not None and at in path:
            ring = list(path)
            loops |= set(ring[ring.index(at) :])
        sound |= path.keys() - loops
    return loops


class BreakEvidence(StrEnum):
    BOXES = "boxes"
    DISTANCE = "distance"
    # Every ONU whose state is known is dark: the feeder or the port.
    WHOLE_PORT = "whole_port"
    THIN = "thin"


@dataclass(frozen=True, slots=True)
class PlacedOnu:
    """An ONU of a port with an outage. `is_dark` is None if it is not known, or was off before."""

    box_id: int | None
    distance_m: int | None
    is_dark: bool | None


@dataclass(frozen=True, slots=True)
class BrokenSegment:
    """From the last healthy box, None being the OLT, to the first dark ones; without these, the outputs of a box."""

    healthy_box_id: int | None
    dark_box_ids: tuple[int, ...]
    # ONUs that it explains.
    dark: int


@dataclass(frozen=True, slots=True)
class FibreBreak:
    """Where the fibre broke, if that is known; distances are from the OLT."""

    evidence: BreakEvidence
    segments: tuple[BrokenSegment, ...] = ()
    near_m: int | None = None
    far_m: int | None = None


def find_break(onus: Sequence[PlacedOnu], parents: Mapping[int, int | None]) -> FibreBreak:
    """Find the segment of a port's outage: by boxes where most dark ONUs have one, else by distance."""
    dark = [onu for onu in onus if onu.is_dark]
    lit = [onu for onu in onus if onu.is_dark is False]
    # All that are dark share the fibre up to the nearest of them.
    nearest = min((onu.distance_m for onu in dark if onu.distance_m is not None), default=None)
    if len(dark) < MIN_DARK:
        return FibreBreak(BreakEvidence.THIN)
    if not lit:
        return FibreBreak(BreakEvidence.WHOLE_PORT, far_m=nearest)
    segments = _broken_segments(dark, lit, parents)
    if sum(segment.dark for segment in segments) >= MIN_SHARE_KNOWN * len(dark):
        return FibreBreak(BreakEvidence.BOXES, segments)
    return _by_distance(dark, lit, nearest)


def _broken_segments(
    dark: Collection[PlacedOnu], lit: Collection[PlacedOnu], parents: Mapping[int, int | None]
) -> tuple[BrokenSegment, ...]:
    behind: dict[bool, Counter[int]] = {is_dark: Counter() for is_dark in (True, False)}
    own: Counter[int] = Counter()
    for onu in (*dark, *lit):
        if onu.box_id is not None:
            behind[bool(onu.is_dark)].update(ancestors(onu.box_id, parents))
            own[onu.box_id] += bool(onu.is_dark)
    is_dark = {box for box, number in behind[True].items() if number >= MIN_DARK and not behind[False][box]}
    first: dict[int | None, list[int]] = defaultdict(list)
    for box in sorted(is_dark):
        if parents.get(box) not in is_dark:
            first[parents.get(box)].append(box)
    found = [
        BrokenSegment(healthy, tuple(boxes), sum(behind[True][box] for box in boxes))
        for healthy, boxes in first.items()
    ]
    # Some ONUs of a box are dark and others are not: its outputs, or the drops.
    found += [
        BrokenSegment(box, (), number)
        for box, number in sorted(own.items())
        if number >= MIN_DARK and behind[False][box]
    ]
    return tuple(sorted(found, key=lambda segment: -segment.dark))


def _by_distance(dark: Collection[PlacedOnu], lit: Collection[PlacedOnu], nearest: int | None) -> FibreBreak:
    known = sum(onu.distance_m is not None for onu in dark)
    last_lit = max((onu.distance_m for onu in lit if onu.distance_m is not None), default=None)
    is_enough = known >= MIN_DARK_BY_DISTANCE and known >= MIN_SHARE_KNOWN * len(dark)
    if nearest is None or last_lit is None or not is_enough or last_lit >= nearest:
        # Lit ONUs that are farther away are on other branches: how near the break may be is not known.
        return FibreBreak(BreakEvidence.THIN, far_m=nearest if is_enough else None)
    return FibreBreak(BreakEvidence.DISTANCE, near_m=last_lit, far_m=nearest)


@dataclass(frozen=True, slots=True)
class GroupBox:
    """What an inferred group means: a box that is known, or a new one, and the ONUs to put on it."""

    box_id: int | None
    onu_ids: tuple[int, ...]


def match_group(
    onu_ids: Sequence[int], firm: Mapping[int, int], inferred: Mapping[int, int], taken: Collection[int] = ()
) -> GroupBox:
    """Match a group with the box that most of its ONUs are on, as people said or, else, as was inferred before.

    Those that people put elsewhere stay there. `taken` are boxes that another group of the port has.
    """
    votes = Counter(firm[onu_id] for onu_id in onu_ids if onu_id in firm)
    before = Counter(inferred[onu_id] for onu_id in onu_ids if onu_id in inferred and inferred[onu_id] not in taken)
    box_id = next((box_id for box_id, _number in (votes or before).most_common(1)), None)
    return GroupBox(
        box_id,
        tuple(
            onu_id for onu_id in onu_ids if onu_id not in firm and (box_id is None or inferred.get(onu_id) != box_id)
        ),
    )

"""Infers which ONUs of a port share a box, from what hit them together and how far they are, and obeys corrections."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

import numpy as np
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from facho.accounts.audit import Action, record
from facho.infrastructure.bulk import insert_values
from facho.onus.models import OnuEvent, OnuReading, Outage, PonPort, RunStateChoice
from facho.onus.words import EventKinds, OutageCauses, OutageScopes
from facho.plant.models import (
    AttachmentSources,
    FindingKinds,
    FindingOnu,
    LightFinding,
    OnuAttachment,
    OnuBox,
    TreeCorrection,
)
from facho.polling.domain.light import COMMON_ONUS, BoxRule, SharedEvent, infer_branches
from facho.polling.domain.outages import POWER_LOST

Ints = NDArray[np.int64]

# What the light shows of several ONUs at once.
SHARED_KINDS: Final = (FindingKinds.COMMON_STEP, FindingKinds.BRANCH_DECAY)
# Events that a tree rests on at most: the latest ones of each kind.
TREE_EVENTS: Final = 30
# Cables are replaced: older outages do not count.
OUTAGES_WITHIN: Final = timedelta(days=365)
# ONUs of one cut go down within this time, the length of a pass over a large OLT.
ONE_CUT: Final = timedelta(minutes=10)
# More events of one port than any cut has.
MAX_EVENTS: Final = 5_000


def save_tree(pon_port_id: int) -> None:
    """Infer again which ONUs of a port share a box."""
    readings = OnuReading.objects.filter(onu__pon_port_id=pon_port_id, onu__is_present=True).order_by("onu_id")
    read = list(readings.values_list("onu_id", "distance_m", "run_state"))
    onu_ids = np.array([onu_id for onu_id, _, _ in read], dtype=np.int64)
    distance = np.array([np.nan if metres is None else metres for _, metres, _ in read])
    online = {onu_id for onu_id, _, state in read if state == RunStateChoice.ONLINE}
    events = [*_finding_events(pon_port_id, onu_ids), *_outage_events(pon_port_id, onu_ids, online)]
    rules, by_hand = _rules(pon_port_id, onu_ids)
    branches = infer_branches(distance, events, rules)
    fields = ("onu_id", "pon_port_id", "number", "confidence", "events", "is_told")
    # Most days change nothing.
    known = set(OnuBox.objects.filter(onu__pon_port_id=pon_port_id).values_list(*fields))
    boxes = [
        (onu_id, pon_port_id, box, confidence, len(events), onu_id in by_hand)
        for onu_id, box, confidence in zip(
            onu_ids.tolist(), branches.box.tolist(), branches.confidence.tolist(), strict=True
        )
    ]
    insert_values(
        OnuBox,
        ["onu", "pon_port", "number", "confidence", "events", "is_told"],
        [box for box in boxes if box not in known],
        unique=["onu"],
    )


def find_trees(pon_port_ids: Collection[int]) -> set[int]:
    """Return the ports with a tree, an event that ONUs have in common, or an ONU on a box; three queries."""
    with_tree = OnuBox.objects.filter(pon_port_id__in=pon_port_ids).values_list("pon_port_id")
    shared = LightFinding.objects.filter(kind__in=SHARED_KINDS, pon_port_id__in=pon_port_ids).values_list("pon_port_id")
    attached = OnuAttachment.objects.filter(onu__pon_port_id__in=pon_port_ids).values_list("onu__pon_port_id")
    return {port for found in (with_tree, shared, attached) for (port,) in found.order_by().distinct()}


def _finding_events(pon_port_id: int, onu_ids: Ints) -> Iterator[SharedEvent]:
    """What was lost at once, and what decays together."""
    findings = LightFinding.objects.filter(kind__in=SHARED_KINDS, pon_port_id=pon_port_id).order_by("-since")
    members: dict[int, dict[int, bool]] = {}
    rows = FindingOnu.objects.filter(finding__in=list(findings.values_list("id", flat=True)[:TREE_EVENTS]))
    for finding_id, onu_id, is_hit in rows.values_list("finding_id", "onu_id", "is_hit"):
        members.setdefault(finding_id, {})[onu_id] = is_hit
    for its in members.values():
        hit = [onu_id for onu_id, is_hit in its.items() if is_hit]
        well = [onu_id for onu_id, is_hit in its.items() if not is_hit]
        yield SharedEvent(np.isin(onu_ids, hit), np.isin(onu_ids, well))


def load_cuts(pon_port_id: int) -> list[Outage]:
    """Load the latest outages of a port that may have been cuts of its fibre, the last one first; two queries."""
    place = PonPort.objects.filter(id=pon_port_id).values("olt_id", "frame", "slot", "port").first()
    if place is None:
        return []
    cuts = Outage.objects.filter(scope=OutageScopes.PON, **place).exclude(cause=OutageCauses.POWER)
    latest = list(cuts.order_by("-started_at")[:TREE_EVENTS])
    return [outage for outage in latest if outage.started_at >= latest[0].started_at - OUTAGES_WITHIN]


@dataclass(frozen=True, slots=True)
class _Change:
    onu_id: int
    at: datetime
    is_down: bool
    lost_power: bool


def _outage_events(pon_port_id: int, onu_ids: Ints, online: Collection[int]) -> Iterator[SharedEvent]:
    """What fibre cuts took, and who stayed online meanwhile; a street without power is no branch."""
    starts = [outage.started_at for outage in load_cuts(pon_port_id)]
    if not starts:
        return
    kinds = (EventKinds.DOWN, EventKinds.UP)
    events = OnuEvent.objects.filter(pon_port_id=pon_port_id, at__gte=starts[-1], kind__in=kinds)
    rows = events.order_by("-at", "-id").values_list("onu_id", "at", "kind", "cause")[:MAX_EVENTS]
    changes = [_Change(onu, at, kind == EventKinds.DOWN, cause in POWER_LOST) for onu, at, kind, cause in rows][::-1]
    for start in starts:
        if event := _cut(start, changes, online, onu_ids):
            yield event


def _cut(start: datetime, changes: Sequence[_Change], online: Collection[int], onu_ids: Ints) -> SharedEvent | None:
    """Find the ONUs of a cut by the first change of each since it began; None if they are too few."""
    first: dict[int, _Change] = {}
    for each in changes:
        if each.at >= start:
            first.setdefault(each.onu_id, each)
    hit, well = [], []
    for onu_id in onu_ids.tolist():
        change = first.get(onu_id)
        if change is None:
            # Nothing happened to it since: it is now what it was then.
            well += [onu_id] * (onu_id in online)
        elif change.is_down and change.at - start > ONE_CUT:
            well.append(onu_id)
        elif change.is_down and not change.lost_power:
            hit.append(onu_id)
    if len(hit) < COMMON_ONUS:
        return None
    return SharedEvent(np.isin(onu_ids, hit), np.isin(onu_ids, well))


def _rules(pon_port_id: int, onu_ids: Ints) -> tuple[list[BoxRule], set[int]]:
    """Return what is known of boxes, the latest last, and the ONUs whose box is known."""
    here = set(onu_ids.tolist())
    by_box: dict[int, list[int]] = {}
    known = OnuAttachment.objects.filter(onu_id__in=here).exclude(source=AttachmentSources.INFERRED)
    for onu_id, box_id in known.order_by("onu_id").values_list("onu_id", "box_id"):
        by_box.setdefault(box_id, []).append(onu_id)
    by_hand = {onu_id for its in by_box.values() for onu_id in its}
    pairs = [(its, sorted(by_hand.difference(its))) for its in by_box.values()]
    for correction in TreeCorrection.objects.filter(pon_port_id=pon_port_id):
        pairs.append((correction.together, correction.apart))
        by_hand |= here.intersection(correction.together)
    return [BoxRule(np.isin(onu_ids, together), np.isin(onu_ids, apart)) for together, apart in pairs], by_hand


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box of a port's tree with its ONUs by distance; `name` is that of the known box most of them are on."""

    number: int
    name: str
    confidence: float
    is_told: bool
    # Common events that the tree rests on.
    events: int
    onu_ids: list[int]


def load_tree(pon_port_id: int) -> list[PlacedBox]:
    """Load the boxes of a port, the nearest first; none while they are unknown. One query."""
    rows = OnuBox.objects.filter(Q(events__gt=0) | Q(is_told=True) | Q(pon_port__tree_corrections__isnull=False))
    rows = rows.filter(pon_port_id=pon_port_id, onu__is_present=True, onu__pon_port_id=pon_port_id).distinct()
    found = rows.order_by("number", "onu__reading__distance_m", "onu__onu_id").values_list(
        "number", "confidence", "is_told", "events", "onu_id", "onu__reading__distance_m", "onu__attachment__box__name"
    )
    boxes, nearest = [], {}
    for number, group in groupby(found, key=lambda row: row[0]):
        its = list(group)
        names = Counter(row[6] for row in its if row[6]).most_common(1)
        metres = [row[5] for row in its if row[5] is not None]
        nearest[number] = min(metres, default=math.inf)
        boxes.append(
            PlacedBox(
                number=number,
                name=names[0][0] if names and 2 * names[0][1] >= len(its) else "",
                confidence=sum(row[1] for row in its) / len(its),
                is_told=any(row[2] for row in its),
                events=max(row[3] for row in its),
                onu_ids=[row[4] for row in its],
            )
        )
    return sorted(boxes, key=lambda box: (nearest[box.number], box.number))


class NoSuchBox(ValueError):
    """The ONUs or the box are not on this port any more; `str()` explains it."""


def correct_tree(
    port: PonPort, onu_ids: Collection[int], target: int | None, *, who: AbstractBaseUser | AnonymousUser, now: datetime
) -> TreeCorrection:
    """Say that some ONUs share the box `target`, or without one a box of their own; all others of theirs do not.

    All ONUs of a box moved to another one merge both; moved to a box of their own they are pinned as they are.
    """
    boxes = dict(OnuBox.objects.filter(pon_port=port, onu__is_present=True).values_list("onu_id", "number"))
    moved = set(onu_ids)
    if not moved or not moved <= boxes.keys():
        raise NoSuchBox(_("Nothing was changed: choose ONUs of this port."))
    there = {onu_id for onu_id, number in boxes.items() if number == target}
    if target is not None and not there:
        raise NoSuchBox(_("Nothing was changed: that box is not there any more."))
    together = moved | there
    left = {boxes[onu_id] for onu_id in moved} | ({target} if target is not None else set())
    apart = {onu_id for onu_id, number in boxes.items() if number in left} - together
    if target is None and not apart:
        # A whole box as it is: later events neither join nor split it.
        apart = boxes.keys() - together
    with transaction.atomic():
        correction = TreeCorrection.objects.create(
            pon_port=port,
            made_at=now,
            made_by_id=who.pk,
            together=sorted(together),
            apart=sorted(apart),
        )
        record(who, correction, Action.ADDED, _("%s ONUs share a box") % len(together))
        save_tree(port.pk)
    return correction


def remove_correction(correction: TreeCorrection, *, who: AbstractBaseUser | AnonymousUser) -> None:
    """Take a correction back; what was inferred counts again."""
    with transaction.atomic():
        record(who, correction, Action.DELETED, _("%s ONUs share a box") % len(correction.together))
        pon_port_id = correction.pon_port_id
        correction.delete()
        save_tree(pon_port_id)

"""Writes zones, boxes and the ONUs on them, for forms, files, programs and the inferred trees alike.

All of a sound list is written, or nothing of a bad one. Boxes behind one another are on one PON port,
that of the first.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from facho.accounts.audit import Action, changed_words, record_each
from facho.accounts.scope import EVERYTHING, OltScope
from facho.hosts.inventory import (
    ColumnChange,
    EntryProblem,
    ImportPlan,
    InventoryError,
    PlannedRow,
    RowVerdict,
    bad_rows,
)
from facho.onus.customers import (
    COORDINATES,
    CustomerEntry,
    CustomerKey,
    Imported,
    find_onus,
    save_customers,
    why_no_onu,
)
from facho.onus.models import Onu, PonPort
from facho.plant.entries import BOX, NAME, SOURCE, EntryType, Given, PlantEntry, title_of
from facho.plant.models import AttachmentSources, Box, BoxKinds, OnuAttachment, OnuBox, Zone
from facho.polling.domain.plant import ancestors, find_loops, match_group

BATCH = 500
# Below this an inferred group is a guess.
MIN_CONFIDENCE = 0.5
# Fewer ONUs share nothing.
MIN_TOGETHER = 2
_RANKS = {AttachmentSources.INFERRED: 0, AttachmentSources.IMPORT: 1, AttachmentSources.HAND: 2}

Person = AbstractBaseUser | AnonymousUser


@dataclass(frozen=True, slots=True)
class ZoneFacts:
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """A box by the names of what it refers to; its port as `OLT 0/1/3`, empty if it has none."""

    kind: str = BoxKinds.CTO
    zone: str = ""
    fed_by: str = ""
    port: str = ""
    outputs: int | None = None
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class OnuFacts:
    """The box of an ONU, who said so, and where the customer is."""

    box: str = ""
    source: str = ""
    latitude: float | None = None
    longitude: float | None = None


Facts = ZoneFacts | BoxFacts | OnuFacts


@dataclass(slots=True)
class PlantDraft:
    """What an entry makes of what is stored. A problem with a column refuses the whole list; `left_out` only this."""

    entry: PlantEntry
    name: str
    before: Facts | None = None
    after: Facts | None = None
    onu_id: int = 0
    left_out: str = ""
    problems: list[EntryProblem] = field(default_factory=list)
    new_name: str = ""

    @property
    def is_changed(self) -> bool:
        return self.after is not None and not self.left_out and (self.after != self.before or bool(self.new_name))

    def blame(self, column: str, reason: str) -> None:
        self.problems.append(EntryProblem(self.entry.line, reason, column=column))


@dataclass(slots=True)
class _Plant:
    """What is stored and in scope, by name; as entries are laid over it, what it would be."""

    zones: dict[str, ZoneFacts]
    boxes: dict[str, BoxFacts]
    # Names beyond the scope, which are taken.
    hidden: set[str]
    ports: set[str]
    stored: Mapping[str, BoxFacts]


def visible_boxes(scope: OltScope) -> QuerySet[Box]:
    """Select the boxes on ports in scope; those without a port are seen by people who see every OLT."""
    return scope.narrow(Box.objects.all(), "pon_port__olt")


def visible_zones(scope: OltScope) -> QuerySet[Zone]:
    """Select zones with a box in scope, or without any box: a name alone shows nothing of other OLTs."""
    if scope.is_everything:
        return Zone.objects.all()
    return Zone.objects.filter(Q(boxes__isnull=True) | Q(boxes__in=visible_boxes(scope))).distinct()


def words_of_port(port: PonPort) -> str:
    return f"{port.olt.name} {port}"


def plan_entries(entries: Sequence[PlantEntry], scope: OltScope) -> list[PlantDraft]:
    """Lay entries over what is stored and in scope; each draft has what is wrong with it."""
    plant = load_plant(scope, entries)
    drafts = [PlantDraft(entry, str(entry.key)) for entry in entries]
    blame_doubles(drafts)
    by_type: dict[EntryType, list[PlantDraft]] = defaultdict(list)
    for draft in drafts:
        by_type[draft.entry.type].append(draft)
    for draft in by_type[EntryType.ZONE]:
        lay_zone(draft, plant, scope)
    boxes = by_type[EntryType.BOX]
    for draft in boxes:
        lay_box(draft, plant, scope)
    settle_tree(boxes, plant)
    for draft in boxes:
        if isinstance(draft.after, BoxFacts):
            draft.after = plant.boxes[draft.new_name or draft.name]
            if not draft.after.port and not scope.is_everything:
                draft.blame("port", _("choose a PON port: without one you would not see this box"))
    lay_onus(by_type[EntryType.ONU], plant, scope)
    return [*drafts, *dragged_along(boxes, plant)]


def import_plan(drafts: Sequence[PlantDraft], left_out: Iterable[EntryProblem] = ()) -> ImportPlan:
    """Show what drafts would do, and what of the file has no draft."""
    if problems := problems_of(drafts):
        names = {draft.entry.line: draft.name for draft in drafts}
        return ImportPlan(tuple(bad_rows(((each.line, each.reason) for each in problems), names)))
    others = (PlannedRow(each.line, "", RowVerdict.LEFT_OUT, problems=(each.reason,)) for each in left_out)
    return ImportPlan((*map(_planned, drafts), *others))


def problems_of(drafts: Iterable[PlantDraft]) -> list[EntryProblem]:
    return [problem for draft in drafts for problem in draft.problems]


def save_entries(
    entries: Sequence[PlantEntry],
    *,
    who: Person,
    scope: OltScope = EVERYTHING,
    source: str = "",
    now: datetime,
) -> Imported:
    """Write what differs, within the scope, and record it; the same list again changes nothing.

    InventoryError lists what is wrong.
    """
    try:
        with transaction.atomic():
            drafts = plan_entries(entries, scope)
            if problems := problems_of(drafts):
                raise InventoryError(problems)
            changed = [draft for draft in drafts if draft.is_changed]
            write_zones([draft for draft in changed if isinstance(draft.after, ZoneFacts)])
            write_boxes([draft for draft in changed if isinstance(draft.after, BoxFacts)])
            write_onus([draft for draft in changed if isinstance(draft.after, OnuFacts)], who, scope, source, now)
            record_each(who, _changes(changed, source))
    except IntegrityError as error:
        # Somebody else was faster.
        raise InventoryError([EntryProblem(None, _("this name is taken"), column=NAME)]) from error
    left_out = tuple(EntryProblem(each.entry.line, each.left_out) for each in drafts if each.left_out)
    return Imported(len(changed), len(drafts) - len(changed) - len(left_out), left_out)


def load_plant(scope: OltScope, entries: Iterable[PlantEntry]) -> _Plant:
    """Load zones, boxes and the ports that are named; five queries at most."""
    zones = {zone.name: ZoneFacts(zone.latitude, zone.longitude) for zone in visible_zones(scope)}
    shown = visible_boxes(scope).select_related("zone", "parent", "pon_port__olt")
    boxes = {box.name: facts_of(box) for box in shown}
    hidden = set()
    if not scope.is_everything:
        hidden = set(Box.objects.values_list("name", flat=True)) - boxes.keys()
    named = {str(entry.values.get("port") or "") for entry in entries} - {""}
    ports = {box.port for box in boxes.values()} | _ids_of_ports(named, scope).keys()
    return _Plant(zones, boxes, hidden, ports, dict(boxes))


def facts_of(box: Box) -> BoxFacts:
    """Describe a box loaded with its zone, its feeding box and its port."""
    return BoxFacts(
        kind=box.kind,
        zone=box.zone.name if box.zone else "",
        fed_by=box.parent.name if box.parent else "",
        port=words_of_port(box.pon_port) if box.pon_port else "",
        outputs=box.outputs,
        latitude=box.latitude,
        longitude=box.longitude,
    )


def blame_doubles(drafts: Iterable[PlantDraft]) -> None:
    lines: dict[tuple[EntryType, str | CustomerKey], int | None] = {}
    for draft in drafts:
        key = (draft.entry.type, draft.entry.key)
        if key in lines:
            draft.blame(NAME, _("“%(name)s” is on line %(line)s already") % {"name": draft.name, "line": lines[key]})
        lines.setdefault(key, draft.entry.line)


def lay_zone(draft: PlantDraft, plant: _Plant, scope: OltScope) -> None:
    before = plant.zones.get(draft.name)
    after = replace(before or ZoneFacts(), **_values(draft, COORDINATES))
    draft.before, draft.after = before, after
    _rename(draft, plant.zones, plant)
    if draft.is_changed and not scope.is_everything:
        draft.blame(NAME, _("to change zones you have to see every OLT"))
        return
    plant.zones[draft.new_name or draft.name] = after


def lay_box(draft: PlantDraft, plant: _Plant, scope: OltScope) -> None:
    before = plant.boxes.get(draft.name)
    if before is None and draft.name in plant.hidden:
        draft.blame(NAME, _("this name is taken"))
        return
    draft.before = before
    draft.after = after = replace(before or BoxFacts(), **_values(draft, (f.name for f in fields(BoxFacts))))
    if after.zone and after.zone not in plant.zones:
        draft.blame("zone", _("there is no zone “%s”") % after.zone)
    if after.port and after.port not in plant.ports:
        olt, _space, place = after.port.rpartition(" ")
        draft.blame("port", _("there is no PON port %(place)s on %(olt)s") % {"place": place, "olt": olt})
    _rename(draft, plant.boxes, plant)
    plant.boxes[draft.new_name or draft.name] = after


def _values(draft: PlantDraft, names: Iterable[str]) -> dict[str, Any]:
    return {name: draft.entry.values[name] for name in names if name in draft.entry.values}


def _rename(draft: PlantDraft, known: dict[str, Any], plant: _Plant) -> None:
    """Move what has a new name, and what is fed by it."""
    new = str(draft.entry.values.get(NAME) or draft.name)
    if new == draft.name:
        return
    if new in known or (draft.entry.type is EntryType.BOX and new in plant.hidden):
        draft.blame(NAME, _("this name is taken"))
        return
    known.pop(draft.name, None)
    draft.new_name = new
    column = "zone" if draft.entry.type is EntryType.ZONE else "fed_by"
    for name, facts in plant.boxes.items():
        if getattr(facts, column) == draft.name:
            plant.boxes[name] = replace(facts, zone=new) if column == "zone" else replace(facts, fed_by=new)


def settle_tree(drafts: Sequence[PlantDraft], plant: _Plant) -> None:
    """Give every box the port of the first one before it, and blame entries that make a loop or contradict that."""
    parents = {name: facts.fed_by or None for name, facts in plant.boxes.items()}
    loops = find_loops(parents)
    stated: dict[str, PlantDraft] = {}
    for draft in drafts:
        name, feeder = draft.new_name or draft.name, draft.after.fed_by if isinstance(draft.after, BoxFacts) else ""
        if feeder and feeder not in plant.boxes:
            draft.blame("fed_by", _("there is no box “%s”") % feeder)
        elif name in loops:
            draft.blame("fed_by", _("a box cannot be fed by itself, nor by one behind it"))
        elif draft.entry.values.get("port"):
            stated[name] = draft
    firsts = {name: list(ancestors(name, parents))[-1] for name in plant.boxes if name not in loops}
    for name, draft in stated.items():
        first = firsts.get(name, name)
        port = draft.entry.values["port"]
        if first in plant.boxes and not plant.boxes[first].port:
            plant.boxes[first] = replace(plant.boxes[first], port=str(port))
        elif first in plant.boxes and plant.boxes[first].port != port:
            names = {"box": first, "port": plant.boxes[first].port}
            draft.blame("port", _("it is fed by “%(box)s”, which is on %(port)s") % names)
    for name, first in firsts.items():
        if first in plant.boxes and plant.boxes[name].port != plant.boxes[first].port:
            plant.boxes[name] = replace(plant.boxes[name], port=plant.boxes[first].port)


def dragged_along(drafts: Sequence[PlantDraft], plant: _Plant) -> Iterator[PlantDraft]:
    """Yield boxes that no entry names and whose port changed with that of a box before them."""
    named = {draft.new_name or draft.name for draft in drafts}
    if any(draft.problems for draft in drafts):
        return
    for name, after in plant.boxes.items():
        before = plant.stored.get(name)
        if name not in named and before is not None and after.port != before.port:
            yield PlantDraft(PlantEntry(None, EntryType.BOX, name, {}), name, before, after)


def lay_onus(drafts: Sequence[PlantDraft], plant: _Plant, scope: OltScope) -> None:
    lines: dict[int, int | None] = {}
    for start in range(0, len(drafts), BATCH):
        batch = drafts[start : start + BATCH]
        keys = [draft.entry.key for draft in batch if isinstance(draft.entry.key, CustomerKey)]
        found = find_onus(keys, scope)
        onus = load_onus([ids[0] for ids in found.values() if len(ids) == 1])
        for draft, key in zip(batch, keys, strict=True):
            ids = found.get(key, [])
            if len(ids) != 1:
                draft.left_out = why_no_onu(key, len(ids))
                continue
            draft.onu_id = ids[0]
            if draft.onu_id in lines:
                draft.left_out = _("this ONU is on line %s already") % lines[draft.onu_id]
                continue
            lines[draft.onu_id] = draft.entry.line
            before, port = onus[draft.onu_id]
            lay_onu(draft, before, port, plant)


def load_onus(onu_ids: Sequence[int]) -> dict[int, tuple[OnuFacts, str]]:
    """Load what is known of ONUs, and their ports; one query."""
    rows = Onu.objects.filter(id__in=onu_ids).select_related("olt", "pon_port", "attachment__box", "customer")
    columns = ("olt__name", "pon_port", "attachment__source", "attachment__box__name")
    found = {}
    for onu in rows.only(*columns, "customer__latitude", "customer__longitude"):
        attachment, customer = getattr(onu, "attachment", None), getattr(onu, "customer", None)
        box, source = (attachment.box.name, attachment.source) if attachment else ("", "")
        point = (customer.latitude, customer.longitude) if customer else (None, None)
        found[onu.id] = OnuFacts(box, source, *point), f"{onu.olt.name} {onu.pon_port}"
    return found


def lay_onu(draft: PlantDraft, before: OnuFacts, port: str, plant: _Plant) -> None:
    draft.before = before
    after = replace(before, **_values(draft, COORDINATES))
    if BOX in draft.entry.values:
        box = str(draft.entry.values[BOX] or "")
        if box and box not in plant.boxes:
            draft.blame(BOX, _("there is no box “%s”") % box)
            return
        source = source_of(str(draft.entry.values.get(SOURCE) or ""), box, before)
        other = plant.boxes[box].port if box else ""
        if other and other != port and box != before.box:
            draft.left_out = _("this ONU is on %(port)s, and the box on %(other)s") % {"port": port, "other": other}
        elif box != before.box and before.source and _RANKS[source] < _RANKS[AttachmentSources(before.source)]:
            words = {"box": before.box, "source": AttachmentSources(before.source).label}
            draft.left_out = _("this ONU is on “%(box)s” already, %(source)s") % words
        after = replace(after, box=box, source=source if box else "")
    draft.after = after


def source_of(stated: str, box: str, before: OnuFacts) -> AttachmentSources:
    """Return who says so: a list that repeats what is stored says nothing new, else it is an import, or by hand."""
    if box == before.box and before.source and (stated == before.source or stated == ""):
        stronger = max(AttachmentSources(before.source), AttachmentSources.IMPORT, key=lambda each: _RANKS[each])
        return AttachmentSources(before.source) if stated else stronger
    if stated == AttachmentSources.INFERRED and not before.source:
        return AttachmentSources.INFERRED
    return AttachmentSources.HAND if stated == AttachmentSources.HAND else AttachmentSources.IMPORT


def _planned(draft: PlantDraft) -> PlannedRow:
    if draft.left_out:
        return PlannedRow(draft.entry.line, draft.name, RowVerdict.LEFT_OUT, problems=(draft.left_out,))
    if not draft.is_changed:
        return PlannedRow(draft.entry.line, draft.name, RowVerdict.UNCHANGED)
    return PlannedRow(draft.entry.line, draft.name, _verdict(draft), tuple(column_changes(draft)))


def _verdict(draft: PlantDraft) -> RowVerdict:
    is_new = draft.before is None or (isinstance(draft.before, OnuFacts) and not draft.before.box)
    return RowVerdict.NEW if is_new else RowVerdict.CHANGED


def column_changes(draft: PlantDraft) -> Iterator[ColumnChange]:
    if draft.new_name:
        yield ColumnChange(NAME, draft.name, draft.new_name, title=title_of(NAME))
    for name, (before, after) in _differences(draft).items():
        yield ColumnChange(name, _shown(name, before), _shown(name, after), title=title_of(name))


def _differences(draft: PlantDraft) -> dict[str, tuple[Any, Any]]:
    if draft.after is None:
        return {}
    before = {each.name: getattr(draft.before, each.name, None) for each in fields(draft.after)}
    after = {each.name: getattr(draft.after, each.name) for each in fields(draft.after)}
    return {name: (before[name], value) for name, value in after.items() if (before[name] or None) != (value or None)}


def _shown(name: str, value: Any) -> str:
    labels = {"kind": BoxKinds.choices, SOURCE: AttachmentSources.choices}
    return "" if value is None else str(dict(labels.get(name, ())).get(value, value))


def write_zones(changed: Sequence[PlantDraft]) -> None:
    for draft in changed:
        facts = draft.after
        values = {"name": draft.new_name or draft.name, **{name: getattr(facts, name) for name in COORDINATES}}
        if draft.before is None:
            Zone.objects.create(**values)
        else:
            Zone.objects.filter(name=draft.name).update(**values)


def write_boxes(changed: Sequence[PlantDraft]) -> None:
    """Write boxes before what they are fed by: those may be new as well."""
    if not changed:
        return
    facts = {draft.name: draft.after for draft in changed if isinstance(draft.after, BoxFacts)}
    new = [draft.name for draft in changed if draft.before is None]
    Box.objects.bulk_create([Box(name=name) for name in new], batch_size=BATCH)
    boxes = {box.name: box for box in _named(Box.objects.all(), [draft.name for draft in changed])}
    for draft in changed:
        boxes[draft.name].name = draft.new_name or draft.name
    feeders = {each.fed_by for each in facts.values()} - {""}
    ids = {box.name: box.id for box in (*_named(Box.objects.all(), list(feeders)), *boxes.values())}
    zones = dict(Zone.objects.values_list("name", "id"))
    ports = _ids_of_ports({each.port for each in facts.values()} - {""})
    for name, each in facts.items():
        box = boxes[name]
        box.kind, box.outputs, box.latitude, box.longitude = each.kind, each.outputs, each.latitude, each.longitude
        box.zone_id = zones[each.zone] if each.zone else None
        box.parent_id = ids[each.fed_by] if each.fed_by else None
        box.pon_port_id = ports[each.port] if each.port else None
    names = ["name", "kind", "zone", "parent", "pon_port", "outputs", *COORDINATES]
    Box.objects.bulk_update(boxes.values(), names, batch_size=BATCH)


def _named(rows: QuerySet[Box], names: Sequence[str]) -> Iterator[Box]:
    for start in range(0, len(names), BATCH):
        yield from rows.filter(name__in=names[start : start + BATCH])


def _ids_of_ports(words: Iterable[str], scope: OltScope = EVERYTHING) -> dict[str, int]:
    olts = {each.rpartition(" ")[0] for each in words}
    ports = scope.narrow(PonPort.objects.filter(is_known=True, olt__name__in=olts)).select_related("olt")
    return {words_of_port(port): port.id for port in ports.only("frame", "slot", "port", "is_known", "olt__name")}


def write_onus(changed: Sequence[PlantDraft], who: Person, scope: OltScope, source: str, now: datetime) -> None:
    rows, points = [], []
    ids = {box.name: box.id for box in _named(Box.objects.all(), list({_facts(draft).box for draft in changed} - {""}))}
    for draft in changed:
        before, after = draft.before, _facts(draft)
        if isinstance(before, OnuFacts) and (before.box, before.source) != (after.box, after.source):
            rows.append((draft.onu_id, ids.get(after.box), after.source))
        if isinstance(before, OnuFacts) and (before.latitude, before.longitude) != (after.latitude, after.longitude):
            point: dict[str, Given] = {"latitude": after.latitude, "longitude": after.longitude}
            assert isinstance(draft.entry.key, CustomerKey)  # noqa: S101 of an ONU
            points.append(CustomerEntry(draft.entry.line, draft.entry.key, point))
    _write_attachments(rows)
    if points:
        save_customers(points, who=who, scope=scope, source=source, now=now)


def _facts(draft: PlantDraft) -> OnuFacts:
    return draft.after if isinstance(draft.after, OnuFacts) else OnuFacts()


def _write_attachments(rows: Sequence[tuple[int, int | None, str]]) -> None:
    """Write ONU, box and source of each; without a box the ONU is taken off."""
    gone = [onu_id for onu_id, box_id, _source in rows if box_id is None]
    for start in range(0, len(gone), BATCH):
        OnuAttachment.objects.filter(onu_id__in=gone[start : start + BATCH]).delete()
    OnuAttachment.objects.bulk_create(
        [OnuAttachment(onu_id=onu_id, box_id=box_id, source=source) for onu_id, box_id, source in rows if box_id],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["onu"],
        update_fields=["box", "source"],
    )


def _changes(changed: Sequence[PlantDraft], source: str) -> Iterator[tuple[Any, Action, str]]:
    models: dict[EntryType, type[Zone] | type[Box]] = {EntryType.ZONE: Zone, EntryType.BOX: Box}
    ids = {
        kind: dict(model.objects.values_list("name", "id")) if any(d.entry.type is kind for d in changed) else {}
        for kind, model in models.items()
    }
    for draft in changed:
        differing = _differences(draft)
        if draft.entry.type is EntryType.ONU:
            differing = {name: each for name, each in differing.items() if name not in COORDINATES}
            if not differing:
                continue
            row: Any = OnuAttachment(onu_id=draft.onu_id)
        else:
            name = draft.new_name or draft.name
            row = models[draft.entry.type](id=ids[draft.entry.type][name], name=name)
        if draft.new_name:
            differing = {NAME: (draft.name, draft.new_name), **differing}
        words = changed_words(*({name: each[end] for name, each in differing.items()} for end in (0, 1)))
        stated = draft.name if draft.entry.type is EntryType.ONU else ""
        yield (
            row,
            Action.ADDED if _verdict(draft) is RowVerdict.NEW else Action.CHANGED,
            " · ".join(filter(None, [source, stated, words])),
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """ONUs that were assigned to a box or removed, each with the box and source it had; and how many are elsewhere."""

    before: list[tuple[int, int | None, str]]
    elsewhere: int = 0


def put_on_box(
    onu_ids: Sequence[int], box: Box | None, *, who: Person, source: AttachmentSources = AttachmentSources.HAND
) -> Moved:
    """Put ONUs on a box, or take them off; those on another PON port, or with a stronger source, stay as they are."""
    moved: list[tuple[int, int | None, str]] = []
    elsewhere = 0
    with transaction.atomic():
        for start in range(0, len(onu_ids), BATCH):
            stored = load_boxes_of(onu_ids[start : start + BATCH])
            for onu_id, (port_id, box_id, stated, _name) in stored.items():
                if box is not None and box.pon_port_id not in (None, port_id):
                    elsewhere += 1
                elif (box_id, stated) != (box.id if box else None, source if box else "") and (
                    not stated or _RANKS[source] >= _RANKS[AttachmentSources(stated)]
                ):
                    moved.append((onu_id, box_id, stated))
            here = {onu_id for onu_id, _box_id, _stated in moved} & stored.keys()
            _write_attachments([(onu_id, box.id if box else None, source) for onu_id in here])
            name = box.name if box else ""
            record_each(
                who,
                [
                    (OnuAttachment(onu_id=onu_id), Action.CHANGED, changed_words({BOX: stored[onu_id][3]}, {BOX: name}))
                    for onu_id in here
                ],
            )
    return Moved(moved, elsewhere)


def put_back(before: Iterable[tuple[int, int | None, str]], *, who: Person) -> int:
    """Put ONUs where they were, as far as those boxes are still there; return how many."""
    rows = list(before)
    with transaction.atomic():
        boxes = Box.objects.in_bulk({box_id for _onu_id, box_id, _source in rows if box_id})
        known = [row for row in rows if row[1] is None or row[1] in boxes]
        _write_attachments(known)
        record_each(
            who,
            [
                (
                    OnuAttachment(onu_id=onu_id),
                    Action.CHANGED,
                    " ".join((_("Undone."), f"{BOX}: {boxes[box_id].name if box_id else '—'}")),
                )
                for onu_id, box_id, _source in known
            ],
        )
    return len(known)


def load_boxes_of(onu_ids: Sequence[int]) -> dict[int, tuple[int, int | None, str, str]]:
    """Load port, box, source and the box's name of each ONU; one query."""
    rows = Onu.objects.filter(id__in=onu_ids).order_by("id")
    columns = ("pon_port_id", "attachment__box_id", "attachment__source", "attachment__box__name")
    return {
        onu_id: (port_id, box_id, source or "", name or "")
        for onu_id, port_id, box_id, source, name in rows.values_list("id", *columns)
    }


@dataclass(frozen=True, slots=True)
class InferredBox:
    """A group of the inferred tree of a port, by its number there, and the box that it is or would be."""

    number: int
    name: str
    box_id: int | None
    onu_ids: tuple[int, ...]
    confidence: float
    events: int

    @property
    def percent(self) -> int:
        return round(100 * self.confidence)


def plan_inferred(port: PonPort) -> list[InferredBox]:
    """Plan what boxes the inferred tree of a port gives; groups that are a guess, or have nothing new, are left out."""
    groups: dict[int, list[OnuBox]] = defaultdict(list)
    for row in OnuBox.objects.filter(pon_port=port, onu__pon_port=port, onu__is_present=True).order_by("onu_id"):
        groups[row.number].append(row)
    attached = OnuAttachment.objects.filter(onu__pon_port=port, box__pon_port=port)
    sources = {
        onu_id: (box_id, source) for onu_id, box_id, source in attached.values_list("onu_id", "box_id", "source")
    }
    inferred = {onu_id: box_id for onu_id, (box_id, source) in sources.items() if source == AttachmentSources.INFERRED}
    firm = {onu_id: box_id for onu_id, (box_id, _source) in sources.items() if onu_id not in inferred}
    names = dict(Box.objects.filter(pon_port=port).values_list("id", "name"))
    used = set(Box.objects.filter(name__startswith=words_of_port(port)).values_list("name", flat=True))
    taken: set[int] = set()
    found: list[InferredBox] = []
    for number, rows in sorted(groups.items(), key=lambda each: -len(each[1])):
        confidence, events = min(row.confidence for row in rows), rows[0].events
        if len(rows) < MIN_TOGETHER or confidence < MIN_CONFIDENCE or not events:
            continue
        match = match_group([row.onu_id for row in rows], firm, inferred, taken)
        if not match.onu_ids:
            continue
        if match.box_id is not None:
            taken.add(match.box_id)
        name = names[match.box_id] if match.box_id is not None else free_name(words_of_port(port), used)
        found.append(InferredBox(number, name, match.box_id, match.onu_ids, confidence, events))
    return found


def free_name(port: str, used: set[str]) -> str:
    number = next(number for number in range(1, len(used) + 2) if f"{port} #{number}" not in used)
    used.add(f"{port} #{number}")
    return f"{port} #{number}"


def save_inferred(port: PonPort, *, who: Person) -> Counter[str]:
    """Make the boxes of the inferred tree and put their ONUs on them; count new boxes and ONUs."""
    counts: Counter[str] = Counter()
    with transaction.atomic():
        for each in plan_inferred(port):
            if each.box_id is None:
                box = Box.objects.create(name=each.name, pon_port=port)
                record_each(who, [(box, Action.ADDED, _("From the inferred tree."))])
                counts["boxes"] += 1
            else:
                box = Box.objects.get(id=each.box_id)
            counts["onus"] += len(put_on_box(each.onu_ids, box, who=who, source=AttachmentSources.INFERRED).before)
    return counts


def delete_box(box: Box, *, who: Person) -> None:
    """Delete a box: its ONUs are on none then, and what it fed is fed by nothing."""
    with transaction.atomic():
        record_each(who, [(box, Action.DELETED, "")])
        Box.objects.filter(pk=box.pk).delete()


def delete_zone(zone: Zone, *, who: Person) -> None:
    """Delete a zone; its boxes stay."""
    with transaction.atomic():
        record_each(who, [(zone, Action.DELETED, "")])
        Zone.objects.filter(pk=zone.pk).delete()

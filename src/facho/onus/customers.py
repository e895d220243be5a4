"""Writes what people know of customers, for files, pages and programs alike: by serial, hardware address or place.

All of a sound list is written, or nothing of a bad one. An entry without its ONU is left out and named.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.utils import translation
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from facho.accounts.audit import Action, changed_words, console, record_each
from facho.accounts.scope import EVERYTHING, OltScope
from facho.hosts.csv import misshapen, read_rows
from facho.hosts.inventory import (
    ColumnChange,
    EntryProblem,
    ImportPlan,
    InventoryError,
    PlanChanged,
    PlannedRow,
    RowVerdict,
    bad_rows,
)
from facho.infrastructure.bulk import insert_values
from facho.infrastructure.folding import fold
from facho.infrastructure.spreadsheet import unguard
from facho.onus.models import CUSTOMER_TEXTS, Onu, OnuCustomer, PonPort
from facho.polling.vendors.decoders import decode_mac, decode_serial

SERIAL, MAC, OLT, PLACE = "serial", "mac", "olt", "place"
KEYS = (SERIAL, MAC, OLT, PLACE)
COORDINATES = ("latitude", "longitude")
FIELDS = (*CUSTOMER_TEXTS, *COORDINATES)
BATCH = 500
# No column holds a larger number of an ONU.
MAX_NUMBER_DIGITS = 6
# A tenth of a metre.
COORDINATE_DECIMALS = 6
_LIMITS = {"latitude": 90, "longitude": 180}
_LENGTHS = {field.name: field.max_length or 0 for field in OnuCustomer._meta.concrete_fields}

Given = str | float | None
Values = Mapping[str, Given]
_EMPTY: Values = {**dict.fromkeys(CUSTOMER_TEXTS, ""), **dict.fromkeys(COORDINATES, None)}


class CustomerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """What is written of one customer, checked as in a file."""

    class Meta:
        model = OnuCustomer
        fields = FIELDS

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        values["tags"] = tidy_tags(values.get("tags") or "")
        for name in COORDINATES:
            try:
                values[name] = read_coordinate(name, values.get(name))
            except ValueError as error:
                self.add_error(name, str(error))
        if (values.get("latitude") is None) != (values.get("longitude") is None):
            self.add_error("longitude", _("latitude and longitude belong together"))
        return values


@dataclass(frozen=True, slots=True)
class CustomerKey:
    """How an entry names its ONU: by serial, hardware address or place, the latter behind its OLT's name."""

    kind: str
    code: str
    olt: str = ""

    def __str__(self) -> str:
        return f"{self.olt} {self.code}".strip()


@dataclass(frozen=True, slots=True)
class CustomerEntry:
    """What is given of one customer; fields that are not named stay as they are."""

    line: int | None
    key: CustomerKey
    values: Values


@dataclass(frozen=True, slots=True)
class Imported:
    """Counts of customers written and unchanged, and the entries skipped with their reason."""

    written: int
    unchanged: int
    left_out: tuple[EntryProblem, ...]


@dataclass(frozen=True, slots=True)
class TagChange:
    """The ONUs whose tags changed, and how many have no room for another."""

    onu_ids: list[int]
    full: int


@dataclass(frozen=True, slots=True)
class _CustomerDraft:
    entry: CustomerEntry
    onu_id: int
    problem: str
    before: Values | None
    after: Values

    @property
    def is_changed(self) -> bool:
        return not self.problem and self.after != (self.before or _EMPTY)


def import_customers(content: bytes, *, is_dry_run: bool = False, now: datetime, source: str = "") -> Imported:
    """Import a file, as made on the console; raises InventoryError listing every invalid row.

    A dry run does everything but write.
    """
    entries = read_file(content)
    if is_dry_run:
        return _sum_up([draft for batch in _lay_over(entries, EVERYTHING) for draft in batch])
    return save_customers(entries, who=console(), source=source, now=now)


def plan_file(content: bytes, scope: OltScope) -> ImportPlan:
    """Plan the import of a file; for a bad one the plan lists what is wrong."""
    try:
        entries = read_file(content)
    except InventoryError as error:
        return ImportPlan(tuple(bad_rows(((each.line, each.reason) for each in error.problems), {})))
    return _plan([draft for batch in _lay_over(entries, scope) for draft in batch])


def save_customers(
    entries: Sequence[CustomerEntry],
    *,
    who: AbstractBaseUser | AnonymousUser,
    scope: OltScope = EVERYTHING,
    source: str = "",
    now: datetime,
    shown: str | None = None,
) -> Imported:
    """Write what differs, within the scope, and record it; the same list again changes nothing.

    With `shown`, the fingerprint of a plan, PlanChanged is raised and nothing written if the plan differs.
    """
    drafts: list[_CustomerDraft] = []
    with transaction.atomic():
        for batch in _lay_over(entries, scope):
            drafts += batch
            changed = [draft for draft in batch if draft.is_changed]
            _write([(draft.onu_id, draft.after) for draft in changed], now)
            record_each(who, _changes(changed, source))
        if shown is not None and shown != _plan(drafts).fingerprint:
            raise PlanChanged
    return _sum_up(drafts)


def change_tags(
    onu_ids: Sequence[int], *, add: str = "", remove: str = "", who: AbstractBaseUser | AnonymousUser, now: datetime
) -> TagChange:
    """Add a tag to ONUs, or take one away; those that have it so already are not touched."""
    changed_ids: list[int] = []
    full = 0
    with transaction.atomic():
        for start in range(0, len(onu_ids), BATCH):
            batch = onu_ids[start : start + BATCH]
            before = _load_stored(batch)
            changed: list[tuple[int, Values]] = []
            for onu_id in batch:
                stored = before.get(onu_id, _EMPTY)
                kept = [tag for tag in str(stored["tags"]).split(", ") if tag and fold(tag) != fold(remove)]
                has_it = fold(add) in map(fold, kept)
                tags = ", ".join(kept if has_it or not add else [*kept, add])
                if len(tags) > _LENGTHS["tags"]:
                    full += 1
                elif tags != stored["tags"]:
                    changed.append((onu_id, {**stored, "tags": tags}))
            _write(changed, now)
            record_each(
                who,
                (
                    (
                        OnuCustomer(onu_id=onu_id, label=str(values["label"])),
                        Action.CHANGED,
                        changed_words({"tags": before.get(onu_id, _EMPTY)["tags"]}, {"tags": values["tags"]}),
                    )
                    for onu_id, values in changed
                ),
            )
            changed_ids += [onu_id for onu_id, _values in changed]
    return TagChange(changed_ids, full)


def tidy_tags(text: str) -> str:
    """Normalise tags: each once, in the given order, separated by a comma and a space."""
    return ", ".join(dict.fromkeys(" ".join(tag.split()) for tag in text.split(",") if tag.strip()))


def read_file(content: bytes) -> list[CustomerEntry]:
    """Read a CSV file or workbook; InventoryError lists every row that is wrong."""
    rows = read_rows(content)
    header_line, header = next(rows, (1, []))
    known = _columns_by_title()
    columns = [known.get(fold(name.strip()), "") for name in header]
    named = set(columns)
    has_key = SERIAL in named or MAC in named or {OLT, PLACE} <= named
    if not has_key or not named & set(FIELDS) or "" in named or len(named) != len(columns):
        reason = _("the header must be serial, mac, or olt and place, and some of %s, separated by commas")
        raise InventoryError([EntryProblem(header_line, reason % ",".join(FIELDS))])
    entries: list[CustomerEntry] = []
    problems: list[EntryProblem] = []
    for line, cells in rows:
        if len(cells) != len(columns):
            problems.append(misshapen(line, cells, columns))
            continue
        given = {name: unguard(cell.strip()) for name, cell in zip(columns, cells, strict=True)}
        try:
            entries.append(read_entry(line, given))
        except InventoryError as error:
            problems += error.problems
    problems += find_doubles(entries)
    if problems:
        raise InventoryError(sorted(problems, key=lambda problem: problem.line or 0))
    return entries


def read_entry(line: int | None, given: Mapping[str, Given]) -> CustomerEntry:
    """Read the key and the values of one customer; InventoryError lists what is wrong."""
    key = read_key({name: str(given.get(name) or "").strip() for name in KEYS})
    missing = (
        _("serial, mac, or olt and place are missing") if set(KEYS[1:]) & set(given) else _("the serial is missing")
    )
    problems = [] if key else [EntryProblem(line, missing, column=SERIAL)]
    values: dict[str, Given] = {}
    for name in FIELDS:
        if name in given:
            try:
                values[name] = _read_value(name, given[name])
            except ValueError as error:
                problems.append(EntryProblem(line, str(error), column=name))
    if (values.get("latitude") is None) != (values.get("longitude") is None):
        problems.append(EntryProblem(line, _("latitude and longitude belong together"), column="latitude"))
    if problems or key is None:
        raise InventoryError(problems)
    return CustomerEntry(line, key, values)


def find_doubles(entries: Iterable[CustomerEntry]) -> Iterator[EntryProblem]:
    lines: dict[CustomerKey, int | None] = {}
    for entry in entries:
        if entry.key in lines:
            words = {SERIAL: _("this serial is on line %s already"), MAC: _("this address is on line %s already")}
            reason = words.get(entry.key.kind, _("this place is on line %s already"))
            yield EntryProblem(entry.line, reason % lines[entry.key], column=entry.key.kind)
        lines.setdefault(entry.key, entry.line)


def _columns_by_title() -> dict[str, str]:
    """Map what a header may call a column: its name, or its words in either language."""
    found = {name: name for name in (*KEYS, *FIELDS)}
    for language in {"es", translation.get_language() or "es"}:
        with translation.override(language):
            titles = {name: _title(name) for name in FIELDS}
            titles |= {SERIAL: _("serial"), PLACE: _("Place"), "label": _("Customer")}
            found |= {fold(title): name for name, title in titles.items()}
    return found


def read_key(given: Mapping[str, str]) -> CustomerKey | None:
    """Return the first key that is given; a serial or an address in any notation, a place as lists print it."""
    if given[SERIAL]:
        serial = decode_serial(given[SERIAL].encode())
        return CustomerKey(SERIAL, serial if isinstance(serial, str) else given[SERIAL])
    if given[MAC]:
        mac = decode_mac(given[MAC].encode())
        return CustomerKey(MAC, mac if isinstance(mac, str) else given[MAC])
    place = given[PLACE].replace("-", "/").replace(" ", "")
    return CustomerKey(PLACE, place, given[OLT]) if given[OLT] and place else None


def _read_value(name: str, given: Given) -> Given:
    if name in COORDINATES:
        return read_coordinate(name, given)
    text = tidy_tags(str(given or "")) if name == "tags" else str(given or "").strip()
    if len(text) > _LENGTHS[name]:
        numbers = {"name": name, "limit": _LENGTHS[name]}
        raise ValueError(_("%(name)s is longer than %(limit)s characters") % numbers)
    return text


def read_coordinate(name: str, given: Given) -> float | None:
    """Read degrees, also with a decimal comma; None if there are none."""
    if given is None or given == "":
        return None
    try:
        degrees = float(str(given).replace(",", "."))
    except ValueError:
        degrees = float("nan")
    # NaN is not within any limits.
    if not abs(degrees) <= _LIMITS[name]:
        numbers = {"name": name, "limit": _LIMITS[name]}
        raise ValueError(_("%(name)s is a number of degrees from -%(limit)s to %(limit)s") % numbers)
    return round(degrees, COORDINATE_DECIMALS)


def _lay_over(entries: Sequence[CustomerEntry], scope: OltScope) -> Iterator[list[_CustomerDraft]]:
    """Yield what each entry makes of what is stored, in batches of few queries."""
    lines: dict[int, int | None] = {}
    for start in range(0, len(entries), BATCH):
        batch = entries[start : start + BATCH]
        found = find_onus([entry.key for entry in batch], scope)
        single = {key: ids[0] for key, ids in found.items() if len(ids) == 1}
        before = _load_stored(list(single.values()))
        drafts = []
        for entry in batch:
            onu_id = single.get(entry.key, 0)
            problem = "" if onu_id else why_no_onu(entry.key, len(found.get(entry.key, ())))
            if onu_id in lines:
                problem = _("this ONU is on line %s already") % lines[onu_id]
            elif onu_id:
                lines[onu_id] = entry.line
            stored = before.get(onu_id)
            drafts.append(_CustomerDraft(entry, onu_id, problem, stored, {**(stored or _EMPTY), **entry.values}))
        yield drafts


def why_no_onu(key: CustomerKey, count: int) -> str:
    if key.kind == SERIAL:
        return _("%s ONUs have this serial") % count if count else _("no ONU has this serial")
    if key.kind == MAC:
        return _("%s ONUs have this hardware address") % count if count else _("no ONU has this hardware address")
    return _("no ONU is at this place")


def find_onus(keys: Sequence[CustomerKey], scope: OltScope) -> dict[CustomerKey, list[int]]:
    """Return the ONUs of each key; if several have it, the present ones. At most four queries."""
    found: dict[CustomerKey, list[tuple[bool, int]]] = defaultdict(list)
    onus = scope.narrow(Onu.objects.order_by())
    for kind in (SERIAL, MAC):
        codes = [key.code for key in keys if key.kind == kind]
        if codes:
            # An empty address would not use the index of those that have one.
            rows = onus.filter(**{f"{kind}__in": codes}).exclude(**{kind: ""}).values_list(kind, "is_present", "id")
            for code, is_present, onu_id in rows:
                found[CustomerKey(kind, code)].append((is_present, onu_id))
    if places := [key for key in keys if key.kind == PLACE]:
        for key, onu_id in _find_at_places(places, scope):
            found[key].append((True, onu_id))
    return {
        key: [onu_id for is_present, onu_id in onus_of if is_present] or [onu_id for _, onu_id in onus_of]
        for key, onus_of in found.items()
    }


def _find_at_places(keys: Sequence[CustomerKey], scope: OltScope) -> Iterator[tuple[CustomerKey, int]]:
    """Find the ONUs that are present at places; two queries."""
    ports = scope.narrow(PonPort.objects.filter(olt__name__in={key.olt for key in keys}))
    columns = ("olt__name", "frame", "slot", "port", "id")
    port_ids = {(olt, f"{frame}/{slot}/{port}"): pk for olt, frame, slot, port, pk in ports.values_list(*columns)}
    wanted: dict[tuple[int, int], CustomerKey] = {}
    for key in keys:
        port, _slash, onu = key.code.rpartition("/")
        port_id = port_ids.get((key.olt, port))
        if port_id and onu.isascii() and onu.isdigit() and len(onu) <= MAX_NUMBER_DIGITS:
            wanted[port_id, int(onu)] = key
    at_ports = Onu.objects.filter(is_present=True, pon_port_id__in={port_id for port_id, _ in wanted})
    at_places = at_ports.filter(onu_id__in={number for _, number in wanted})
    for port_id, number, onu_id in at_places.values_list("pon_port_id", "onu_id", "id"):
        if (port_id, number) in wanted:
            yield wanted[port_id, number], onu_id


def _load_stored(onu_ids: Sequence[int]) -> dict[int, Values]:
    rows = OnuCustomer.objects.filter(onu_id__in=onu_ids).values("onu_id", *FIELDS)
    return {row.pop("onu_id"): row for row in rows}


def _write(changed: Iterable[tuple[int, Values]], now: datetime) -> None:
    rows = [(onu_id, *[values[name] for name in FIELDS], now) for onu_id, values in changed]
    insert_values(OnuCustomer, ["onu", *FIELDS, "updated_at"], rows, unique=["onu"])


def _plan(drafts: Sequence[_CustomerDraft]) -> ImportPlan:
    return ImportPlan(tuple(_planned(draft) for draft in drafts))


def _planned(draft: _CustomerDraft) -> PlannedRow:
    entry, name = draft.entry, str(draft.entry.key)
    if draft.problem:
        return PlannedRow(entry.line, name, RowVerdict.LEFT_OUT, problems=(draft.problem,))
    if not draft.is_changed:
        return PlannedRow(entry.line, name, RowVerdict.UNCHANGED)
    before = draft.before or _EMPTY
    changes = tuple(
        ColumnChange(column, _shown(before[column]), _shown(value), title=_title(column))
        for column, value in draft.after.items()
        if value != before[column]
    )
    verdict = RowVerdict.CHANGED if draft.before else RowVerdict.NEW
    return PlannedRow(entry.line, name, verdict, changes)


def _shown(value: Given) -> str:
    return "" if value is None else str(value)


def _title(column: str) -> str:
    return str(capfirst(getattr(OnuCustomer._meta.get_field(column), "verbose_name", column)))


def _sum_up(drafts: Sequence[_CustomerDraft]) -> Imported:
    left_out = tuple(EntryProblem(each.entry.line, each.problem) for each in drafts if each.problem)
    written = sum(draft.is_changed for draft in drafts)
    return Imported(written, len(drafts) - written - len(left_out), left_out)


def _changes(changed: Sequence[_CustomerDraft], source: str) -> Iterator[tuple[OnuCustomer, Action, str]]:
    for draft in changed:
        words = changed_words(draft.before or _EMPTY, draft.after)
        yield (
            OnuCustomer(onu_id=draft.onu_id, label=str(draft.after["label"])),
            Action.CHANGED if draft.before else Action.ADDED,
            " · ".join(filter(None, [source, str(draft.entry.key), words])),
        )

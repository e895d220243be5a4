"""Writes what people know of customers, from a CSV file by serial: all of a sound file, or nothing of a bad one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from facho.accounts.audit import Action, changed_words, console, record_each
from facho.hosts.csv import misshapen, read_rows, unguard
from facho.hosts.inventory import EntryProblem, InventoryError
from facho.infrastructure.bulk import insert_values
from facho.onus.models import Onu, OnuCustomer
from facho.polling.vendors.decoders import decode_serial

SERIAL = "serial"
FIELDS = ("label", "address", "phone", "notes", "tags")
BATCH = 500
_LENGTHS = {field.name: field.max_length or 0 for field in OnuCustomer._meta.concrete_fields}

Values = Mapping[str, str]
_EMPTY: Values = dict.fromkeys(FIELDS, "")


@dataclass(frozen=True, slots=True)
class Imported:
    """Counts of customers written and unchanged, and the rows skipped with their reason."""

    written: int
    unchanged: int
    left_out: tuple[EntryProblem, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    line: int
    serial: str
    values: Values


def import_customers(content: bytes, *, is_dry_run: bool = False, now: datetime, source: str = "") -> Imported:
    """Import customers from CSV; serials without an ONU are skipped and reported.

    Raises InventoryError listing every invalid row. A dry run does everything but write. Changes are audited as made on
    the console, with their source.
    """
    entries = _read_entries(content)
    written, unchanged, left_out = 0, 0, []
    with transaction.atomic():
        for start in range(0, len(entries), BATCH):
            batch = entries[start : start + BATCH]
            onu_ids, problems = _find_onus(batch)
            left_out += problems
            pairs = [(onu_ids[entry.serial], entry.values) for entry in batch if entry.serial in onu_ids]
            stored = OnuCustomer.objects.filter(onu_id__in=[onu_id for onu_id, _ in pairs]).values("onu_id", *FIELDS)
            before: dict[int, Values] = {row.pop("onu_id"): row for row in stored}
            # Apply the file's columns to the stored rows and return those that change.
            after = [(onu_id, {**before.get(onu_id, _EMPTY), **values}) for onu_id, values in pairs]
            changed = [(onu_id, values) for onu_id, values in after if values != before.get(onu_id, _EMPTY)]
            written, unchanged = written + len(changed), unchanged + len(pairs) - len(changed)
            if not is_dry_run:
                rows = [(onu_id, *[values[name] for name in FIELDS], now) for onu_id, values in changed]
                insert_values(OnuCustomer, ["onu", *FIELDS, "updated_at"], rows, unique=["onu"])
                serials = {onu_id: serial for serial, onu_id in onu_ids.items()}
                record_each(console(), _changes(changed, before, serials, source))
    return Imported(written, unchanged, tuple(left_out))


def tidy_tags(text: str) -> str:
    """Normalise tags: each once, in the given order, separated by a comma and a space."""
    return ", ".join(dict.fromkeys(" ".join(tag.split()) for tag in text.split(",") if tag.strip()))


def _read_entries(content: bytes) -> list[_Entry]:
    rows = read_rows(content)
    header_line, header = next(rows, (1, []))
    columns = [name.strip().lower() for name in header]
    known = {SERIAL, *FIELDS}
    if SERIAL not in columns or len(columns) < 2 or set(columns) - known or len(set(columns)) != len(columns):
        reason = _("the header must be serial and some of %s, separated by commas") % ",".join(FIELDS)
        raise InventoryError([EntryProblem(header_line, reason)])
    entries, problems = [], []
    for line, cells in rows:
        if len(cells) != len(columns):
            problems.append(misshapen(line, cells, columns))
            continue
        values = {name: unguard(cell.strip()) for name, cell in zip(columns, cells, strict=True)}
        tidy = {name: tidy_tags(text) if name == "tags" else text for name, text in values.items()}
        written = tidy.pop(SERIAL)
        serial = decode_serial(written.encode())
        entries.append(_Entry(line, str(serial) if written and isinstance(serial, str) else written, tidy))
    problems += _find_faults(entries)
    if problems:
        raise InventoryError(sorted(problems, key=lambda problem: problem.line or 0))
    return entries


def _find_faults(entries: Iterable[_Entry]) -> Iterator[EntryProblem]:
    lines: dict[str, int] = {}
    for entry in entries:
        if not entry.serial:
            yield EntryProblem(entry.line, _("the serial is missing"))
        elif entry.serial in lines:
            yield EntryProblem(entry.line, _("this serial is on line %s already") % lines[entry.serial])
        lines.setdefault(entry.serial, entry.line)
        for name, text in entry.values.items():
            if len(text) > _LENGTHS[name]:
                numbers = {"name": name, "limit": _LENGTHS[name]}
                yield EntryProblem(entry.line, _("%(name)s is longer than %(limit)s letters") % numbers)


def _find_onus(entries: Sequence[_Entry]) -> tuple[dict[str, int], list[EntryProblem]]:
    """Return the ONU of each serial; if several have it, the present one."""
    found: dict[str, list[tuple[bool, int]]] = defaultdict(list)
    rows = Onu.objects.filter(serial__in=[entry.serial for entry in entries]).values_list("serial", "is_present", "id")
    for serial, is_present, onu_id in rows:
        found[serial].append((is_present, onu_id))
    onu_ids, problems = {}, []
    for entry in entries:
        onus = found[entry.serial]
        candidates = [onu_id for is_present, onu_id in onus if is_present] or [onu_id for _, onu_id in onus]
        if len(candidates) == 1:
            onu_ids[entry.serial] = candidates[0]
        elif candidates:
            problems.append(EntryProblem(entry.line, _("%s ONUs have this serial") % len(candidates)))
        else:
            problems.append(EntryProblem(entry.line, _("no ONU has this serial")))
    return onu_ids, problems


def _changes(
    changed: Sequence[tuple[int, Values]], before: Mapping[int, Values], serials: Mapping[int, str], source: str
) -> Iterator[tuple[OnuCustomer, Action, str]]:
    for onu_id, values in changed:
        action = Action.CHANGED if onu_id in before else Action.ADDED
        words = changed_words(before.get(onu_id, _EMPTY), values)
        yield (
            OnuCustomer(onu_id=onu_id, label=values["label"]),
            action,
            " · ".join(filter(None, [source, serials[onu_id], words])),
        )

"""Writes what people know of customers, from a CSV file by serial: all of a sound file, or nothing of a bad one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import transaction
from django.utils.translation import gettext as _

from facho.hosts.csv_rows import misshapen, read_rows, unguard
from facho.hosts.inventory import InventoryError, Problem
from facho.onus.bulk import insert_values
from facho.onus.models import Onu, OnuCustomer
from facho.polling.vendors.decoders import decode_serial

SERIAL = "serial"
FIELDS = ("label", "address", "phone", "notes", "tags")
BATCH = 500
_LENGTHS = {field.name: field.max_length or 0 for field in OnuCustomer._meta.concrete_fields}

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Imported:
    """How many customers were written and how many were so already; who was left out, and why."""

    written: int
    unchanged: int
    left_out: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    line: int
    serial: str
    values: Values


def import_customers(content: bytes, *, is_dry_run: bool = False, now: datetime) -> Imported:
    """Write the columns that the file has, as they stand there; serials that lead to no ONU are left out and named.

    InventoryError with every problem when a row cannot be right. A dry run does all of it but the writing.
    """
    entries = _read_entries(content)
    written, unchanged, left_out = 0, 0, []
    with transaction.atomic():
        for batch in _batches(entries):
            onu_ids, problems = _find_onus(batch)
            left_out += problems
            pairs = [(onu_ids[entry.serial], entry.values) for entry in batch if entry.serial in onu_ids]
            changed = _changed(pairs)
            written, unchanged = written + len(changed), unchanged + len(pairs) - len(changed)
            if not is_dry_run:
                rows = [(onu_id, *[values[name] for name in FIELDS], now) for onu_id, values in changed]
                insert_values(OnuCustomer, ["onu", *FIELDS, "updated_at"], rows, unique=["onu"])
    return Imported(written, unchanged, tuple(left_out))


def tidy_tags(text: str) -> str:
    """Write tags one way: each once, in the order given, separated by a comma and a space."""
    return ", ".join(dict.fromkeys(" ".join(tag.split()) for tag in text.split(",") if tag.strip()))


def _read_entries(content: bytes) -> list[_Entry]:
    rows = read_rows(content)
    header_line, header = next(rows, (1, []))
    columns = [name.strip().lower() for name in header]
    _check_header(columns, header_line)
    entries, problems = [], []
    for line, cells in rows:
        if len(cells) != len(columns):
            problems.append(misshapen(line, cells, columns))
            continue
        values = {name: unguard(cell.strip()) for name, cell in zip(columns, cells, strict=True)}
        entries.append(_Entry(line, _tidy_serial(values.pop(SERIAL)), _tidy(values)))
    problems += _find_faults(entries)
    if problems:
        raise InventoryError(sorted(problems, key=lambda problem: problem.line or 0))
    return entries


def _check_header(columns: Sequence[str], line: int) -> None:
    known = {SERIAL, *FIELDS}
    if SERIAL not in columns or len(columns) < 2 or set(columns) - known or len(set(columns)) != len(columns):
        reason = _("the header must be serial and some of %s, separated by commas") % ",".join(FIELDS)
        raise InventoryError([Problem(line, reason)])


def _tidy(values: dict[str, str]) -> Values:
    return {name: tidy_tags(text) if name == "tags" else text for name, text in values.items()}


def _tidy_serial(text: str) -> str:
    """Spell a serial as polls do, whichever way it is printed on the device."""
    serial = decode_serial(text.encode())
    return text if not isinstance(serial, str) or not text else str(serial)


def _find_faults(entries: Iterable[_Entry]) -> Iterator[Problem]:
    lines: dict[str, int] = {}
    for entry in entries:
        if not entry.serial:
            yield Problem(entry.line, _("the serial is missing"))
        elif entry.serial in lines:
            yield Problem(entry.line, _("this serial is on line %s already") % lines[entry.serial])
        lines.setdefault(entry.serial, entry.line)
        for name, text in entry.values.items():
            if len(text) > _LENGTHS[name]:
                numbers = {"name": name, "limit": _LENGTHS[name]}
                yield Problem(entry.line, _("%(name)s is longer than %(limit)s letters") % numbers)


def _find_onus(entries: Sequence[_Entry]) -> tuple[dict[str, int], list[Problem]]:
    """Return the ONU of each serial; of several rows the present one is meant, where there is one."""
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
            problems.append(Problem(entry.line, _("%s ONUs have this serial") % len(candidates)))
        else:
            problems.append(Problem(entry.line, _("no ONU has this serial")))
    return onu_ids, problems


def _changed(pairs: Sequence[tuple[int, Values]]) -> list[tuple[int, Values]]:
    """Lay the file's columns over what is stored, and return who is another then."""
    stored = OnuCustomer.objects.filter(onu_id__in=[onu_id for onu_id, _ in pairs]).values("onu_id", *FIELDS)
    before = {row["onu_id"]: {name: row[name] for name in FIELDS} for row in stored}
    empty = dict.fromkeys(FIELDS, "")
    after = [(onu_id, {**before.get(onu_id, empty), **values}) for onu_id, values in pairs]
    return [(onu_id, values) for onu_id, values in after if values != before.get(onu_id, empty)]


def _batches(entries: Iterable[_Entry]) -> Iterator[list[_Entry]]:
    rest = iter(entries)
    while batch := list(islice(rest, BATCH)):
        yield batch

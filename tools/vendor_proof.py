"""Writes what follows from the vendor definitions: the lists of docs/vendors.md, and the extract of MIB objects.

Without an argument only the page is written; with the path of a table of MIB objects (family, oid,
module, name, type, unit, index, …, separated by tabs) the extract too.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from facho.polling.domain.hints import Meaning
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Confidence, Cost

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/vendors.md"
EXTRACT = ROOT / "tests/polling/vendors/data/mib_objects.tsv"
HEADER = ("name", "oid", "type", "enumeration", "unit", "index")
BEGIN, END = "<!-- begin: {} -->", "<!-- end: {} -->"
FAMILIES, UNPROVEN, NOTIFICATIONS = "families", "columns without proof", "notifications"
CAPTURE = "capture "
# Ends an enumeration that the table of MIB objects has in part only.
CUT = "…"
_ENUMERATION = re.compile(r"\{([^}]*)(\})?")
_ENTRY = re.compile(r"\(\s*(-?\d+)\s*\)")
# The standard objects that definitions name; tables of vendor MIBs leave them out.
STANDARD = {
    "SNMPv2-MIB::sysDescr": ("1.3.6.1.2.1.1.1", "OCTET STRING", "", "", ""),
    "SNMPv2-MIB::sysObjectID": ("1.3.6.1.2.1.1.2", "OBJECT IDENTIFIER", "", "", ""),
    "SNMPv2-MIB::sysUpTime": ("1.3.6.1.2.1.1.3", "TimeTicks", "", "centiseconds", ""),
    "SNMPv2-MIB::sysName": ("1.3.6.1.2.1.1.5", "OCTET STRING", "", "", ""),
    "IF-MIB::ifDescr": ("1.3.6.1.2.1.2.2.1.2", "OCTET STRING", "", "", "ifIndex"),
    "IF-MIB::ifType": ("1.3.6.1.2.1.2.2.1.3", "INTEGER", "", "", "ifIndex"),
    "IF-MIB::ifAdminStatus": ("1.3.6.1.2.1.2.2.1.7", "INTEGER", "1 2 3", "", "ifIndex"),
    "IF-MIB::ifOperStatus": ("1.3.6.1.2.1.2.2.1.8", "INTEGER", "1 2 3 4 5 6 7", "", "ifIndex"),
    "IF-MIB::ifName": ("1.3.6.1.2.1.31.1.1.1.1", "OCTET STRING", "", "", "ifIndex"),
    "IF-MIB::ifHCInOctets": ("1.3.6.1.2.1.31.1.1.1.6", "Counter64", "", "", "ifIndex"),
    "IF-MIB::ifHCOutOctets": ("1.3.6.1.2.1.31.1.1.1.10", "Counter64", "", "", "ifIndex"),
    "IF-MIB::ifHighSpeed": ("1.3.6.1.2.1.31.1.1.1.15", "Gauge32", "", "Mbit/s", "ifIndex"),
    "IF-MIB::ifAlias": ("1.3.6.1.2.1.31.1.1.1.18", "OCTET STRING", "", "", "ifIndex"),
}


def main(arguments: list[str]) -> int:
    for path in arguments[:1]:
        write_extract(Path(path))
    PAGE.write_text(with_lists(PAGE.read_text("utf-8")), "utf-8")
    columns = all_columns()
    print(f"{sum(bool(column.proof) for _, column in columns)} of {len(columns)} columns have a proof")
    return 0


def all_columns() -> list[tuple[str, Column]]:
    return [(found.key, column) for found in load_definitions().values() for column in found.columns.values()]


def write_extract(objects: Path) -> None:
    """Keep the objects that a column names as its proof, and no others."""
    named = {column.proof for _, column in all_columns() if column.proof and not column.proof.startswith(CAPTURE)}
    found = {name: (name, *values) for name, values in STANDARD.items() if name in named}
    with objects.open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    indexes = {row[1]: row[6] for row in rows if row[4] != "notification"}
    for row in rows:
        name = f"{row[2]}::{row[3]}"
        if name in named and "SEQUENCE" not in row[4]:
            entry = row[1].rpartition(".")[0]
            found.setdefault(name, (name, row[1], *_split_type(row[4]), row[5], indexes.get(entry, "")))
    lines = ["\t".join(fields) for fields in (HEADER, *(found[name] for name in sorted(found)))]
    EXTRACT.write_text("\n".join(lines) + "\n", "utf-8")


def _split_type(written: str) -> tuple[str, str]:
    """Return the plain type and the numbers of its enumeration, of a shortened one those that are left and CUT."""
    plain = written.split("{")[0].split("=")[-1].strip() or written.split("{")[0].strip()
    enumeration = _ENUMERATION.search(written)
    if enumeration is None:
        return plain, ""
    return plain, " ".join((*_ENTRY.findall(enumeration[1]), *([] if enumeration[2] else [CUT])))


def with_lists(page: str) -> str:
    """Return the page with the lists between their marks written again; ValueError if there are no marks."""
    lists = {
        FAMILIES: list_families(load_definitions().values()),
        UNPROVEN: list_unproven(all_columns()),
        NOTIFICATIONS: list_notifications(),
    }
    for name, text in lists.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = f"{before}{begin}\n{text}{end}{after}"
    return page


def list_families(families: Iterable[Definition]) -> str:
    """Write a table of the families, those that read no ONU last."""
    rows = []
    for family in sorted(families, key=lambda each: not each.onu_indexes):
        is_proven = any(column.proof for column in family.columns.values())
        confidence = family.confidence if is_proven else f"{family.confidence}, no MIB is public"
        minutes = family.polling.classes[Cost.LIVE].min_interval_seconds // 60
        pace = f"{minutes} min" if family.onu_indexes else "\N{EN DASH}"
        rows.append(f"| `{family.key}` | {family.title} | {confidence} | {pace} |")
    head = ["| Key | Devices | Confidence | Live optics, at most every |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def list_unproven(columns: Iterable[tuple[str, Column]]) -> str:
    """Write a table of families with their columns that rest on drivers alone."""
    by_family: dict[str, list[str]] = {}
    total = 0
    for key, column in columns:
        total += 1
        if not column.proof:
            by_family.setdefault(key, []).append(column.key)
    unproven = sum(map(len, by_family.values()))
    rows = [f"| `{key}` | {len(keys)} | {', '.join(keys)} |" for key, keys in by_family.items()]
    head = f"{unproven} of {total} columns rest on drivers, templates or scripts alone:\n\n"
    return head + "\n".join(["| Family | Columns | Without proof |", "|---|---|---|", *rows]) + "\n"


def list_notifications() -> str:
    """Write a table of families with what their notifications can say."""
    rows = []
    for found in load_definitions().values():
        rules = found.notifications
        if rules.rules:
            meanings = {meaning for rule in rules.rules.values() for meaning in rule.meanings} - {Meaning.OTHER}
            kinds = sum(max(1, sum(len(by.meanings) for by in rule.by)) for rule in rules.rules.values())
            counted = Counter(rule.confidence for rule in rules.rules.values())
            confidence = ", ".join(f"{counted[each]} {each}" for each in Confidence if counted[each])
            confidence = confidence if len(counted) > 1 else str(rules.confidence)
            words = ", ".join(meaning for meaning in Meaning if meaning in meanings) or "none is public"
            switched = "known" if rules.enable else "not known"
            rows.append(f"| `{found.key}` | {confidence} | {kinds} | {words} | {switched} |")
    head = ["| Family | Confidence | Kinds | Meanings | Lines that switch them on |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The inventory as a CSV file: text to entries with their lines, and back without secrets or formulas."""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.utils.translation import gettext as _

from facho.hosts.csv_rows import guard, misshapen, read_rows, unguard
from facho.hosts.import_plan import ImportPlan, bad_rows
from facho.hosts.inventory import AfterSave, Finish, InventoryError, Problem, Saved, import_olts, plan_import
from facho.hosts.models import SnmpVersion
from facho.hosts.olt_entry import COLUMNS, SECRET_COLUMNS, V3_COLUMNS, OltEntry
from facho.hosts.secrets import Secret

GROUP_COLUMNS = ("poller_group", "group")
REQUIRED_COLUMNS = tuple(name for name in COLUMNS if name not in (*V3_COLUMNS, *GROUP_COLUMNS))


def import_file(
    content: bytes,
    *,
    after_save: AfterSave | None = None,
    vendors: Collection[str] | None = None,
    shown: str | None = None,
    finish: Finish | None = None,
) -> Saved:
    """Import a whole file, or nothing of it when any row is bad, or when it is not what was `shown` before."""
    entries, problems = read_entries(content)
    return import_olts(entries, problems=problems, after_save=after_save, vendors=vendors, shown=shown, finish=finish)


def plan_file(content: bytes) -> ImportPlan:
    """Tell what importing a file would do; a file that cannot be read is a plan of what is wrong with it."""
    try:
        entries, problems = read_entries(content)
    except InventoryError as error:
        return ImportPlan(tuple(bad_rows(((each.line, each.reason) for each in error.problems), {})))
    return plan_import(entries, problems=problems)


def read_entries(content: bytes) -> tuple[list[OltEntry], list[Problem]]:
    """Read the rows that have the header's shape, and list those that have not; a wrong header ends it at once."""
    rows = read_rows(content)
    header_line, header = next(rows, (1, []))
    columns = [name.strip().lower() for name in header]
    _check_header(columns, header_line)
    entries: list[OltEntry] = []
    problems: list[Problem] = []
    try:
        for line, cells in rows:
            if len(cells) == len(columns):
                entries.append(_entry(line, dict(zip(columns, cells, strict=True))))
            else:
                problems.append(misshapen(line, cells, columns))
    except InventoryError as error:
        problems += error.problems
    return entries, problems


def write_entries(entries: Iterable[OltEntry]) -> str:
    """Write the file; the columns of secrets are there, and empty. Those that few need come only when an OLT does."""
    rows = list(entries)
    columns = _columns_for(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for entry in rows:
        writer.writerow(["" if name in SECRET_COLUMNS else guard(getattr(entry, name)) for name in columns])
    return text.getvalue()


def _columns_for(rows: Sequence[OltEntry]) -> tuple[str, ...]:
    v3 = V3_COLUMNS if any(entry.version == SnmpVersion.V3 for entry in rows) else ()
    groups = (name for name in GROUP_COLUMNS if any(getattr(entry, name) for entry in rows))
    return (*REQUIRED_COLUMNS, *v3, *groups)


def _check_header(columns: Sequence[str], line: int) -> None:
    if not columns:
        raise InventoryError([Problem(None, _("the file is empty"))])
    missing = [name for name in REQUIRED_COLUMNS if name not in columns]
    unknown = [name for name in columns if name not in COLUMNS]
    if missing or unknown or len(set(columns)) != len(columns):
        expected = ",".join(REQUIRED_COLUMNS)
        reason = _(
            "the header must be %(expected)s, separated by commas; for SNMPv3 also %(more)s;"
            " for a site also %(site)s; for a group of OLTs also %(group)s"
        )
        names = {"expected": expected, "more": ",".join(V3_COLUMNS), "site": "poller_group", "group": "group"}
        raise InventoryError([Problem(line, reason % names)])


def _entry(line: int, cells: Mapping[str, str]) -> OltEntry:
    def text(name: str) -> str:
        return unguard(cells.get(name, "").strip())

    def secret(name: str) -> Secret:
        # Taken as it stands: a space or an apostrophe may be part of it.
        return Secret(cells.get(name, ""))

    return OltEntry(
        name=text("name"),
        host=text("host"),
        port=text("port"),
        vendor=text("vendor"),
        version=text("version"),
        community=secret("community"),
        v3_user=text("v3_user"),
        v3_auth_protocol=text("v3_auth_protocol"),
        v3_auth_key=secret("v3_auth_key"),
        v3_priv_protocol=text("v3_priv_protocol"),
        v3_priv_key=secret("v3_priv_key"),
        poller_group=text("poller_group"),
        group=text("group"),
        line=line,
        takes_secrets_along=True,
    )

"""What importing OLTs would do, row by row, told before anything is written. Secrets are named, never shown."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from django.db.models import TextChoices
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.models import Olt

NOTHING = "-"


class Verdict(TextChoices):
    """What becomes of a row."""

    ERROR = "error", gettext_lazy("error")
    NEW = "new", gettext_lazy("new")
    CHANGED = "changed", gettext_lazy("changed")
    UNCHANGED = "unchanged", gettext_lazy("unchanged")


@dataclass(frozen=True, slots=True)
class Change:
    """A column with its text before and after; of a new OLT there is nothing before."""

    column: str
    before: str
    after: str

    @property
    def label(self) -> str:
        """The column as people call it."""
        return label_of(self.column)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A row of the file and what it would do."""

    line: int | None
    name: str
    verdict: Verdict
    changes: tuple[Change, ...] = ()
    secrets_set: tuple[str, ...] = ()
    secrets_kept: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def secret_words(self) -> list[str]:
        """Say which secrets are given and which stay as they are."""
        given = [_("%(secret)s: will be set") % {"secret": label_of(name)} for name in self.secrets_set]
        return given + [_("%(secret)s: stays") % {"secret": label_of(name)} for name in self.secrets_kept]

    @property
    def in_words(self) -> Iterator[str]:
        """Say everything that happens to the row, a part for each column."""
        for change in self.changes:
            before = "" if self.verdict is Verdict.NEW else f"{change.before or NOTHING} → "
            yield f"{change.label}: {before}{change.after or NOTHING}"
        yield from self.secret_words if self.verdict is not Verdict.UNCHANGED else ()
        yield from self.problems


@dataclass(frozen=True)
class ImportPlan:
    """What a whole file would do, and the groups of OLTs that it would make."""

    rows: tuple[PlannedRow, ...]
    new_groups: tuple[str, ...] = ()

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many rows have each verdict."""
        return Counter(row.verdict.value for row in self.rows)

    @property
    def is_good(self) -> bool:
        """Tell whether it may be carried out: one bad row keeps all others back."""
        return not self.counts[Verdict.ERROR]

    @property
    def fingerprint(self) -> str:
        """A text that is another one as soon as anything that was shown is no longer true."""
        return hashlib.sha256(repr((self.rows, self.new_groups)).encode()).hexdigest()

    def rows_of(self, *verdicts: Verdict) -> list[PlannedRow]:
        """Return the rows of these verdicts, as they stand in the file."""
        return [row for row in self.rows if row.verdict in verdicts]


def label_of(column: str) -> str:
    """Name a column of the inventory for people."""
    return str(capfirst(getattr(Olt._meta.get_field(column), "verbose_name", column)))


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    """List what differs; an address that is the host itself is not said twice."""
    changed = (Change(name, before.get(name, ""), text) for name, text in after.items() if before.get(name, "") != text)
    return tuple(change for change in changed if change.column != "address" or change.after != after["host"])


def bad_rows(problems: Iterable[tuple[int | None, str]], names: Mapping[int | None, str]) -> list[PlannedRow]:
    """Gather what is wrong with each line into a row."""
    by_line: dict[int | None, list[str]] = {}
    for line, reason in problems:
        by_line.setdefault(line, []).append(reason)
    return [
        PlannedRow(line, names.get(line, ""), Verdict.ERROR, problems=tuple(reasons))
        for line, reasons in by_line.items()
    ]

"""What an import would do, row by row, shown before anything is written. Secrets are named, never shown."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import TextChoices
from django.utils import translation
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.models import Olt

NOTHING = "-"
# An old and a new text of this length still fit a line.
MOST_LETTERS = 80


class RowVerdict(TextChoices):
    ERROR = "error", gettext_lazy("error")
    NEW = "new", gettext_lazy("new")
    CHANGED = "changed", gettext_lazy("changed")
    UNCHANGED = "unchanged", gettext_lazy("unchanged")
    # It has no counterpart to be written to; the others are imported without it.
    LEFT_OUT = "left_out", gettext_lazy("left out")


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column before and after; empty before for a new row. Without a title it is a column of OLTs."""

    column: str
    before: str
    after: str
    title: str = ""

    @property
    def label(self) -> str:
        return self.title or label_of(self.column)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    line: int | None
    name: str
    verdict: RowVerdict
    changes: tuple[ColumnChange, ...] = ()
    secrets_set: tuple[str, ...] = ()
    secrets_kept: tuple[str, ...] = ()
    secrets_erased: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def secret_words(self) -> list[str]:
        fates = (
            (_("%(secret)s: will be set"), self.secrets_set),
            (_("%(secret)s: stays"), self.secrets_kept),
            (_("%(secret)s: will be erased"), self.secrets_erased),
        )
        return [words % {"secret": label_of(name)} for words, names in fates for name in names]

    @property
    def in_words(self) -> Iterator[str]:
        for change in self.changes:
            before = "" if self.verdict is RowVerdict.NEW else f"{change.before or NOTHING} → "
            yield f"{change.label}: {before}{change.after or NOTHING}"
        yield from self.secret_words if self.verdict is not RowVerdict.UNCHANGED else ()
        yield from self.problems

    @property
    def audit_words(self) -> str:
        """Describe the changes for the audit log, in the installation's language; secrets are only named."""
        with translation.override(settings.LANGUAGE_CODE):
            changes = [f"{each.label}: {_cut(each.before)} → {_cut(each.after)}" for each in self.changes]
            secrets = ((self.secrets_set, _("changed")), (self.secrets_erased, _("erased, since host or port changed")))
            return ", ".join([*changes, *(f"{label_of(name)}: {what}" for names, what in secrets for name in names)])


@dataclass(frozen=True)
class ImportPlan:
    """The effect of a whole file, and the OLT groups it would create."""

    rows: tuple[PlannedRow, ...]
    new_groups: tuple[str, ...] = ()

    @cached_property
    def counts(self) -> Mapping[str, int]:
        return Counter(row.verdict.value for row in self.rows)

    @property
    def is_good(self) -> bool:
        """Whether it can be applied: one invalid row blocks all."""
        return not self.counts[RowVerdict.ERROR]

    @property
    def fingerprint(self) -> str:
        """A digest that changes as soon as anything shown is no longer true."""
        return hashlib.sha256(repr((self.rows, self.new_groups)).encode()).hexdigest()

    def rows_of(self, *verdicts: RowVerdict) -> list[PlannedRow]:
        return [row for row in self.rows if row.verdict in verdicts]


def _cut(text: str) -> str:
    return f"{text[: MOST_LETTERS - 1]}…" if len(text) > MOST_LETTERS else text or NOTHING


def label_of(column: str) -> str:
    return str(capfirst(getattr(Olt._meta.get_field(column), "verbose_name", column)))


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ColumnChange, ...]:
    """List the differences; an address equal to the host is left out."""
    changed = (
        ColumnChange(name, before.get(name, ""), text) for name, text in after.items() if before.get(name, "") != text
    )
    return tuple(change for change in changed if change.column != "address" or change.after != after["host"])


def bad_rows(problems: Iterable[tuple[int | None, str]], names: Mapping[int | None, str]) -> list[PlannedRow]:
    by_line: dict[int | None, list[str]] = {}
    for line, reason in problems:
        by_line.setdefault(line, []).append(reason)
    return [
        PlannedRow(line, names.get(line, ""), RowVerdict.ERROR, problems=tuple(reasons))
        for line, reasons in by_line.items()
    ]


def content_of(given: Mapping[str, Any], *, most_bytes: int, too_large: str) -> bytes:
    """Return what a form got as `file` or as `text`; ValidationError if it is not one of both, or too long."""
    file, text = given.get("file"), given.get("text")
    if bool(file) == bool(text):
        raise ValidationError(_("Provide either a file or its text."))
    content: bytes = file.read(most_bytes + 1) if file else str(text).encode()
    if len(content) > most_bytes:
        raise ValidationError(too_large)
    return content

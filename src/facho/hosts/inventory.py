"""Keeps the OLT inventory: everything an operator gave is checked, then all of it is saved, or nothing.

No credential is ever sent to another address: what an OLT lacks after a change has to be given again.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet, TextChoices
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.models import DEFAULT_SNMP_PORT, Olt, OltAddress, OltGroup, SnmpVersionChoice
from facho.hosts.olt_entry import (
    AUTO,
    CREDENTIAL_COLUMNS,
    NONE,
    SECRET_COLUMNS,
    Fault,
    OltEntry,
    find_faults,
    find_vendor,
    label_of,
    parse_port,
)
from facho.hosts.resolve import resolve_all
from facho.infrastructure.secrets import Secret, UndecryptableSecret
from facho.polling.domain.planning import DEFAULT_GROUP, NO_GROUP
from facho.polling.snmp.target import SUPPORTED
from facho.polling.vendors.loader import load_definitions


@dataclass(frozen=True, slots=True)
class PlacedSecrets:
    """The secret columns to write, and those erased with the old host or port."""

    columns: tuple[str, ...]
    erased: tuple[str, ...] = ()


def place_secrets(olt: Olt, before: OltAddress | None, given: Mapping[str, Secret | str]) -> PlacedSecrets:
    """Prepare the credentials of a changed OLT of `stored_olts` for saving.

    Every way of changing a connection goes through here; `given` are the CREDENTIAL_COLUMNS that were entered. With
    another host or port all other secrets are erased, also those of other SNMP versions: otherwise a user allowed to
    change the address but not read a secret could have it sent there. When a name resolves to a new address, the stored
    secrets stay.
    """
    for name, secret in given.items():
        setattr(olt, name, secret)
    written = [name for name in SECRET_COLUMNS if name in given]
    if before is None or before == olt.place:
        return PlacedSecrets(tuple(written))
    left = [name for name in stored_secrets(olt) if name not in given]
    if not before.is_left_for(olt.place):
        return PlacedSecrets((*written, *(name for name in left if _rebind(olt, name, before))))
    erased = [*left, *(["v3_user"] if olt.v3_user and "v3_user" not in given else [])]
    for name in erased:
        setattr(olt, name, "")
    return PlacedSecrets((*written, *left), tuple(erased))


def erased_words(columns: Iterable[str]) -> str:
    """Name the erased secrets for the audit log, in the installation's language; empty if none."""
    with translation.override(settings.LANGUAGE_CODE):
        names = ", ".join(label_of(name) for name in columns)
        return _("Erased, since host or port changed: %(secrets)s") % {"secrets": names} if names else ""


def stored_secrets(olt: Olt) -> list[str]:
    """Return the secrets an OLT of `stored_olts` has; a new one has none."""
    return [name for name in SECRET_COLUMNS if getattr(olt, f"has_{name}", False)]


def find_credential_faults(
    olt: Olt, *, given: Collection[str], stored: Collection[str], is_moved: bool
) -> Iterator[Fault]:
    """List the credentials an OLT lacks; stored ones do not count for another address, or it would get them."""

    def lacking(secret: str, name: str, missing: str) -> Iterator[Fault]:
        if secret not in (*given, *stored):
            yield Fault(secret, missing)
        elif secret not in given and is_moved:
            yield Fault(secret, _("%s: enter it again; the stored one is not sent to another address or port") % name)

    if olt.snmp_version != SnmpVersionChoice.V3:
        yield from lacking("community", _("community"), _("community is missing"))
        return
    if not olt.v3_user:
        yield Fault("v3_user", _("SNMPv3 needs a user"))
    if olt.v3_priv_protocol and not olt.v3_auth_protocol:
        yield Fault("v3_priv_protocol", _("privacy needs an authentication protocol"))
    yield from _combination_faults(olt.v3_auth_protocol, olt.v3_priv_protocol)
    if olt.v3_auth_protocol:
        yield from lacking("v3_auth_key", _("authentication key"), _("authentication key is missing"))
    if olt.v3_priv_protocol:
        yield from lacking("v3_priv_key", _("privacy key"), _("privacy key is missing"))


def _rebind(olt: Olt, name: str, before: OltAddress) -> bool:
    """Bind a secret to the new address of a name, unless it is unreadable or was for another address."""
    try:
        stored: Secret = Olt.objects.values_list(name, flat=True).get(pk=olt.pk)
    except UndecryptableSecret:
        return False
    if stored.place != str(before):
        return False
    setattr(olt, name, Secret(stored.reveal()))
    return True


def _combination_faults(auth_protocol: str, priv_protocol: str) -> Iterator[Fault]:
    """Name the authentication a privacy protocol requires; unknown protocols are reported elsewhere."""
    partners = [str(auth) for auth, priv in SUPPORTED.items() if priv_protocol in priv]
    if auth_protocol in SUPPORTED and partners and auth_protocol not in partners:
        names = {"priv": priv_protocol, "partners": ", ".join(partners)}
        reason = _("privacy protocol %(priv)s goes only with authentication by %(partners)s") % names
        yield Fault("v3_priv_protocol", reason)


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
            (_("%(secret)s: kept"), self.secrets_kept),
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


AfterSave = Callable[[Olt], None]
Finish = Callable[["Saved"], None]
# What saving may write: the engine writes the rest of the row at the same time.
_PLAIN_FIELDS = (
    "host",
    "address",
    "port",
    "vendor",
    "snmp_version",
    "v3_user",
    "v3_auth_protocol",
    "v3_priv_protocol",
    "poller_group",
    "trap_addresses",
)


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """Why an entry was refused, with its line in the file if there is one."""

    line: int | None
    reason: str
    # The OLT that is in the way: not everybody may see it.
    owner: str = ""
    # What is at fault, where it is one column alone.
    column: str = ""


class InventoryError(Exception):
    """Nothing was saved; lists every problem."""

    def __init__(self, problems: Iterable[EntryProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.reason for problem in self.problems))


class PlanChanged(Exception):
    """Nothing was saved: the plan differs from the one shown."""


@dataclass(frozen=True, slots=True)
class SavedRow:
    olt: Olt
    planned: PlannedRow

    @property
    def is_new(self) -> bool:
        return self.planned.verdict is RowVerdict.NEW


@dataclass(frozen=True, slots=True)
class Saved:
    added: tuple[str, ...]
    updated: tuple[str, ...]
    rows: tuple[SavedRow, ...] = field(default=(), compare=False)

    @property
    def audit_words(self) -> str:
        return " · ".join(row.planned.audit_words for row in self.rows)


@dataclass(frozen=True, slots=True)
class _EntryDraft:
    entry: OltEntry
    olt: Olt
    is_new: bool
    before: Mapping[str, str]
    group: str
    secrets: PlacedSecrets
    is_moved: bool


def add_olt(entry: OltEntry, *, after_save: AfterSave | None = None) -> Olt:
    """Add one OLT; an existing name is refused. `after_save` runs in the same transaction."""
    reason = _('there is already an OLT named "%s"') % entry.name
    known = InventoryError([EntryProblem(entry.line, reason, owner=entry.name, column="name")])

    def refuse_update(saved: Saved) -> None:
        if saved.updated:  # somebody added it since it was looked for
            raise known

    if Olt.objects.filter(name=entry.name).exists():
        raise known
    import_olts([entry], after_save=after_save, finish=refuse_update)
    return stored_olts().get(name=entry.name)


def import_olts(
    entries: Sequence[OltEntry],
    *,
    problems: Iterable[EntryProblem] = (),
    after_save: AfterSave | None = None,
    shown: str | None = None,
    finish: Finish | None = None,
) -> Saved:
    """Add new OLTs and update existing ones; problems found while reading are reported with ours.

    `after_save` runs for each OLT that is new or changed its vendor, `finish` once at the end, both in the transaction.
    It opens after names are resolved, so do not wrap this call in another one. With `shown`, the fingerprint of a plan,
    PlanChanged is raised and nothing saved if the plan differs.
    """
    addresses = _resolve(entries)
    with transaction.atomic():
        drafts = _lay_over(entries, addresses, is_locked=True)
        faults = [*problems, *_text_problems(entries), *_row_problems(drafts)]
        if shown is not None and shown != _plan(drafts, faults).fingerprint:
            raise PlanChanged
        if faults:
            raise InventoryError(sorted(faults, key=_line_of))
        rows = tuple(SavedRow(draft.olt, _planned(draft)) for draft in drafts)
        groups = _save_groups(drafts)
        for draft in drafts:
            draft.olt.group = groups.get(draft.group)
            _save(draft, after_save)
        saved = Saved(
            added=tuple(draft.olt.name for draft in drafts if draft.is_new),
            updated=tuple(draft.olt.name for draft in drafts if not draft.is_new),
            rows=tuple(row for row in rows if row.planned.verdict is not RowVerdict.UNCHANGED),
        )
        if finish:
            finish(saved)
    return saved


def plan_import(entries: Sequence[OltEntry], *, problems: Iterable[EntryProblem] = ()) -> ImportPlan:
    drafts = _lay_over(entries, _resolve(entries))
    return _plan(drafts, [*problems, *_text_problems(entries), *_row_problems(drafts)])


def export_entries() -> Iterator[OltEntry]:
    """Return every OLT as an entry that can be imported again, without secrets."""
    same = ("name", "host", "v3_user", "v3_auth_protocol", "v3_priv_protocol", "poller_group")
    for olt in stored_olts().select_related("group"):
        yield OltEntry(
            **{name: getattr(olt, name) for name in same},
            port=str(olt.port),
            vendor=olt.vendor or AUTO,
            version=olt.snmp_version,
            group=olt.group.name if olt.group else "",
            trap_addresses=olt.trap_addresses,
        )


def stored_olts() -> QuerySet[Olt]:
    """Select OLTs without their secrets, so that a lost key hides nothing else; `has_…` says which are set."""
    presence = {
        f"has_{name}": ExpressionWrapper(~Q(**{name: ""}), output_field=BooleanField()) for name in SECRET_COLUMNS
    }
    return Olt.objects.defer(*SECRET_COLUMNS).annotate(**presence).order_by("name")


def _text_problems(entries: Sequence[OltEntry]) -> Iterator[EntryProblem]:
    vendors, groups = load_definitions().keys(), settings.FACHO_POLLER_GROUPS
    for entry in entries:
        faults = find_faults(entry, vendors=vendors, groups=groups)
        yield from (EntryProblem(entry.line, fault.reason, column=fault.column) for fault in faults)


def _resolve(entries: Sequence[OltEntry]) -> Mapping[str, str]:
    """Look names up before the transaction: none is open during network access."""
    return resolve_all({entry.host for entry in entries if entry.host})


def _lay_over(
    entries: Sequence[OltEntry], addresses: Mapping[str, str], *, is_locked: bool = False
) -> list[_EntryDraft]:
    olts = stored_olts().select_for_update() if is_locked else stored_olts()
    rows = olts.in_bulk([entry.name for entry in entries], field_name="name")
    groups = dict(OltGroup.objects.values_list("id", "name"))
    return [_draft(entry, rows.get(entry.name), addresses.get(entry.host, ""), groups) for entry in entries]


def _draft(entry: OltEntry, row: Olt | None, address: str, groups: Mapping[int, str]) -> _EntryDraft:
    olt = row or Olt(name=entry.name, port=DEFAULT_SNMP_PORT)
    group = groups.get(olt.group_id or 0, "")
    before, place = (_texts(olt, group), olt.place) if row else ({"vendor": ""}, None)
    olt.host, olt.address = entry.host, address
    olt.port = parse_port(entry.port) or olt.port
    olt.vendor = (find_vendor(entry.vendor, load_definitions()) or "") if entry.vendor else olt.vendor
    olt.snmp_version = entry.version or olt.snmp_version
    olt.v3_auth_protocol = _protocol(entry.v3_auth_protocol, olt.v3_auth_protocol)
    olt.v3_priv_protocol = _protocol(entry.v3_priv_protocol, olt.v3_priv_protocol)
    if entry.poller_group:
        olt.poller_group = DEFAULT_GROUP if entry.poller_group == NO_GROUP else entry.poller_group
    if entry.trap_addresses:
        olt.trap_addresses = "" if entry.trap_addresses.lower() == NONE else entry.trap_addresses
    given = {name: getattr(entry, name) for name in CREDENTIAL_COLUMNS if getattr(entry, name)}
    return _EntryDraft(
        entry,
        olt,
        is_new=row is None,
        before=before,
        group=_group(entry.group, group, groups.values()),
        is_moved=place is not None and place.is_left_for(olt.place),
        secrets=place_secrets(olt, place, given),
    )


def _texts(olt: Olt, group: str) -> dict[str, str]:
    return {name: str(getattr(olt, name)) for name in _PLAIN_FIELDS} | {"group": group}


def _protocol(written: str, stored: str) -> str:
    if not written:
        return stored
    return "" if written.lower() == NONE else written.upper()


def _group(written: str, stored: str, known: Collection[str]) -> str:
    """Return the OLT group; one that differs only in case from an existing one is that one."""
    if not written:
        return stored
    if written in known:
        return written
    if written.lower() == NONE:
        return ""
    return next((name for name in known if name.lower() == written.lower()), written)


def _given_secrets(entry: OltEntry) -> list[str]:
    return [name for name in SECRET_COLUMNS if getattr(entry, name)]


def _row_problems(drafts: Sequence[_EntryDraft]) -> Iterator[EntryProblem]:
    seen: dict[str, _EntryDraft] = {}
    for draft in drafts:
        if seen.setdefault(draft.olt.name, draft) is not draft:
            yield EntryProblem(draft.entry.line, _('name "%s" appears twice') % draft.olt.name, column="name")
        if draft.entry.host and not draft.olt.address:
            reason = _('host "%s" does not resolve to an address') % draft.entry.host
            yield EntryProblem(draft.entry.line, reason, column="host")
        faults = find_credential_faults(
            draft.olt,
            given=_given_secrets(draft.entry),
            stored=stored_secrets(draft.olt),
            is_moved=draft.is_moved,
        )
        yield from (EntryProblem(draft.entry.line, fault.reason, column=fault.column) for fault in faults)
    yield from _same_devices(drafts)


def _same_devices(drafts: Sequence[_EntryDraft]) -> Iterator[EntryProblem]:
    """Refuse a second row for the same device: it would be polled twice."""
    stored = Olt.objects.filter(address__in={draft.olt.address for draft in drafts if draft.olt.address})
    taken = {(address, port): name for address, port, name in stored.values_list("address", "port", "name")}
    for draft in drafts:
        if not draft.olt.address:
            continue
        owner = taken.setdefault((draft.olt.address, draft.olt.port), draft.olt.name)
        if owner != draft.olt.name:
            place = {"owner": owner, "address": draft.olt.address, "port": draft.olt.port}
            reason = _('OLT "%(owner)s" already has address %(address)s port %(port)s') % place
            yield EntryProblem(draft.entry.line, reason, owner, column="host")


def _plan(drafts: Sequence[_EntryDraft], problems: Iterable[EntryProblem]) -> ImportPlan:
    names = {draft.entry.line: draft.olt.name for draft in drafts}
    bad = bad_rows(((problem.line, problem.reason) for problem in problems), names)
    bad_lines = {row.line for row in bad}
    rows = [*bad, *(_planned(draft) for draft in drafts if draft.entry.line not in bad_lines)]
    return ImportPlan(tuple(sorted(rows, key=_line_of)), _new_groups(drafts))


def _planned(draft: _EntryDraft) -> PlannedRow:
    changes, given = compare(draft.before, _texts(draft.olt, draft.group)), tuple(_given_secrets(draft.entry))
    kept = tuple(name for name in stored_secrets(draft.olt) if name not in (*given, *draft.secrets.erased))
    known = RowVerdict.CHANGED if changes or given else RowVerdict.UNCHANGED
    verdict = RowVerdict.NEW if draft.is_new else known
    erased = tuple(name for name in draft.secrets.erased if name in SECRET_COLUMNS)
    return PlannedRow(draft.entry.line, draft.olt.name, verdict, changes, given, kept, erased)


def _new_groups(drafts: Sequence[_EntryDraft]) -> tuple[str, ...]:
    wanted = dict.fromkeys(draft.group for draft in drafts if draft.group)
    known = set(OltGroup.objects.filter(name__in=wanted).values_list("name", flat=True))
    return tuple(name for name in wanted if name not in known)


def _save_groups(drafts: Sequence[_EntryDraft]) -> Mapping[str, OltGroup]:
    OltGroup.objects.bulk_create([OltGroup(name=name) for name in _new_groups(drafts)], ignore_conflicts=True)
    return OltGroup.objects.in_bulk([draft.group for draft in drafts if draft.group], field_name="name")


def _line_of(item: EntryProblem | PlannedRow) -> int:
    return item.line or 0


def _save(draft: _EntryDraft, after_save: AfterSave | None) -> None:
    columns = [*_PLAIN_FIELDS, "group", *draft.secrets.columns, "updated_at"]
    try:
        draft.olt.save(update_fields=None if draft.is_new else columns)
    except IntegrityError as error:  # what was free when it was checked
        reason = _("this name, or this address and port, was just taken")
        raise InventoryError([EntryProblem(draft.entry.line, reason)]) from error
    if after_save and (draft.is_new or draft.before["vendor"] != draft.olt.vendor):
        after_save(draft.olt)

"""Keeps the OLT inventory: everything an operator gave is checked, then all of it is saved, or nothing."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils.translation import gettext as _

from facho.hosts.import_plan import ImportPlan, PlannedRow, Verdict, bad_rows, compare
from facho.hosts.models import DEFAULT_SNMP_PORT, Olt, OltGroup, SnmpVersion
from facho.hosts.olt_entry import (
    AUTO,
    NONE,
    SECRET_COLUMNS,
    Fault,
    OltEntry,
    find_faults,
    find_vendor,
    parse_port,
)
from facho.hosts.resolve import resolve_all
from facho.polling.domain.poller_groups import DEFAULT_GROUP, NO_GROUP
from facho.polling.snmp.target import SUPPORTED
from facho.polling.vendors.loader import load_definitions

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
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an entry was refused; the line is that of the file, when there is one."""

    line: int | None
    reason: str
    # Another OLT that the reason names: not everybody may see it.
    owner: str = ""
    # What is at fault, where it is one column alone.
    column: str = ""


class InventoryError(Exception):
    """Nothing was saved; every problem is listed."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.reason for problem in self.problems))


class PlanChanged(Exception):
    """Nothing was saved: what would be done is no longer what was shown."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The names that were new and those that were known."""

    added: tuple[str, ...]
    updated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """An entry laid over its row, not yet saved."""

    entry: OltEntry
    olt: Olt
    is_new: bool
    before: Mapping[str, str]
    group: str

    @property
    def is_moved(self) -> bool:
        place = {"host": self.olt.host, "port": str(self.olt.port)}
        return not self.is_new and any(self.before[name] != text for name, text in place.items())

    @property
    def has_other_vendor(self) -> bool:
        return self.before["vendor"] != _texts(self.olt, self.group)["vendor"]


def add_olt(entry: OltEntry, *, after_save: AfterSave | None = None, vendors: Collection[str] | None = None) -> Olt:
    """Add one OLT; a known name is refused. `after_save` runs in the same transaction."""
    known = InventoryError([Problem(entry.line, _('there already is an OLT named "%s"') % entry.name, column="name")])

    def refuse_update(saved: Saved) -> None:
        if saved.updated:  # somebody added it since it was looked for
            raise known

    if Olt.objects.filter(name=entry.name).exists():
        raise known
    import_olts([entry], after_save=after_save, vendors=vendors, finish=refuse_update)
    return stored_olts().get(name=entry.name)


def import_olts(
    entries: Sequence[OltEntry],
    *,
    problems: Iterable[Problem] = (),
    after_save: AfterSave | None = None,
    vendors: Collection[str] | None = None,
    shown: str | None = None,
    finish: Finish | None = None,
) -> Saved:
    """Add new OLTs and update known ones. Problems that a reader found before are told together with ours.

    `after_save` runs for each OLT that is new or changed its vendor, `finish` once when all are saved; both in the
    transaction, which opens after names were looked up: open none around this. With `shown`, the fingerprint of a
    plan, nothing is saved unless it is still what would be done: PlanChanged then.
    """
    known, addresses = _look_up(entries, vendors)
    with transaction.atomic():
        drafts = _lay_over(entries, addresses, known, is_locked=True)
        faults = [*problems, *_text_problems(entries, known), *_row_problems(drafts)]
        if shown is not None and shown != _plan(drafts, faults).fingerprint:
            raise PlanChanged
        if faults:
            raise InventoryError(sorted(faults, key=_line_of))
        groups = _save_groups(drafts)
        for draft in drafts:
            draft.olt.group = groups.get(draft.group)
            _save(draft, after_save)
        saved = Saved(
            added=tuple(draft.olt.name for draft in drafts if draft.is_new),
            updated=tuple(draft.olt.name for draft in drafts if not draft.is_new),
        )
        if finish:
            finish(saved)
    return saved


def plan_import(entries: Sequence[OltEntry], *, problems: Iterable[Problem] = ()) -> ImportPlan:
    """Tell what `import_olts` would do with the same entries; nothing is written."""
    known, addresses = _look_up(entries, None)
    drafts = _lay_over(entries, addresses, known)
    return _plan(drafts, [*problems, *_text_problems(entries, known), *_row_problems(drafts)])


def export_entries() -> Iterator[OltEntry]:
    """Give every OLT as an entry that can be imported again; secrets stay behind."""
    for olt in stored_olts().select_related("group"):
        yield OltEntry(
            name=olt.name,
            host=olt.host,
            port=str(olt.port),
            vendor=olt.vendor or AUTO,
            version=olt.snmp_version,
            v3_user=olt.v3_user,
            v3_auth_protocol=olt.v3_auth_protocol,
            v3_priv_protocol=olt.v3_priv_protocol,
            poller_group=olt.poller_group,
            group=olt.group.name if olt.group else "",
        )


def stored_olts() -> QuerySet[Olt]:
    """Select OLTs without their secrets, so that a lost key hides nothing else; `has_…` says which are set."""
    presence = {
        f"has_{name}": ExpressionWrapper(~Q(**{name: ""}), output_field=BooleanField()) for name in SECRET_COLUMNS
    }
    return Olt.objects.defer(*SECRET_COLUMNS).annotate(**presence).order_by("name")


def stored_secrets(olt: Olt) -> list[str]:
    """Name the secrets that an OLT of `stored_olts` has; a new one has none."""
    return [name for name in SECRET_COLUMNS if getattr(olt, f"has_{name}", False)]


def find_credential_faults(
    olt: Olt, *, given: Collection[str], stored: Collection[str], is_moved: bool
) -> Iterator[Fault]:
    """Say what an OLT lacks to speak its version, with secrets that are given and that are stored.

    What is stored is not sent to another address: whoever may change one but not read the other would read it there.
    """

    def lacking(secret: str, name: str, missing: str) -> Iterator[Fault]:
        if secret not in (*given, *stored):
            yield Fault(secret, missing)
        elif secret not in given and is_moved:
            yield Fault(secret, _("%s: write it again, a stored one is not sent to another address or port") % name)

    if olt.snmp_version != SnmpVersion.V3:
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


def _combination_faults(auth_protocol: str, priv_protocol: str) -> Iterator[Fault]:
    """Say with what a privacy protocol goes; protocols that exist nowhere are told by the text's own rules."""
    partners = [str(auth) for auth, priv in SUPPORTED.items() if priv_protocol in priv]
    if auth_protocol in SUPPORTED and partners and auth_protocol not in partners:
        names = {"priv": priv_protocol, "partners": ", ".join(partners)}
        reason = _("privacy protocol %(priv)s goes only with authentication by %(partners)s") % names
        yield Fault("v3_priv_protocol", reason)


def _text_problems(entries: Sequence[OltEntry], vendors: Collection[str]) -> Iterator[Problem]:
    groups = settings.FACHO_POLLER_GROUPS
    for entry in entries:
        faults = find_faults(entry, vendors=vendors, groups=groups)
        yield from (Problem(entry.line, fault.reason, column=fault.column) for fault in faults)


def _look_up(entries: Sequence[OltEntry], vendors: Collection[str] | None) -> tuple[Collection[str], Mapping[str, str]]:
    """Find what is asked of others, before any transaction: none is open while the network is used."""
    known = load_definitions().keys() if vendors is None else vendors
    return known, resolve_all({entry.host for entry in entries if entry.host})


def _lay_over(
    entries: Sequence[OltEntry], addresses: Mapping[str, str], vendors: Collection[str], *, is_locked: bool = False
) -> list[_Draft]:
    olts = stored_olts().select_for_update() if is_locked else stored_olts()
    rows = olts.in_bulk([entry.name for entry in entries], field_name="name")
    groups = dict(OltGroup.objects.values_list("id", "name"))
    return [_draft(entry, rows.get(entry.name), addresses.get(entry.host, ""), vendors, groups) for entry in entries]


def _draft(
    entry: OltEntry, row: Olt | None, address: str, vendors: Collection[str], groups: Mapping[int, str]
) -> _Draft:
    olt = row or Olt(name=entry.name, port=DEFAULT_SNMP_PORT)
    group = groups.get(olt.group_id or 0, "")
    before = _texts(olt, group) if row else {"vendor": ""}
    olt.host, olt.address = entry.host, address
    olt.port = parse_port(entry.port) or olt.port
    olt.vendor = (find_vendor(entry.vendor, vendors) or "") if entry.vendor else olt.vendor
    olt.snmp_version = entry.version or olt.snmp_version
    olt.v3_user = entry.v3_user or olt.v3_user
    olt.v3_auth_protocol = _protocol(entry.v3_auth_protocol, olt.v3_auth_protocol)
    olt.v3_priv_protocol = _protocol(entry.v3_priv_protocol, olt.v3_priv_protocol)
    olt.poller_group = _poller_group(entry.poller_group, olt.poller_group)
    for name in _given_secrets(entry):
        setattr(olt, name, getattr(entry, name))
    return _Draft(entry, olt, row is None, before, _group(entry.group, group, groups.values()))


def _texts(olt: Olt, group: str) -> dict[str, str]:
    """Write down what saving may change, as people read it."""
    return {name: str(getattr(olt, name)) for name in _PLAIN_FIELDS} | {"group": group}


def _protocol(written: str, stored: str) -> str:
    if not written:
        return stored
    return "" if written.lower() == NONE else written.upper()


def _poller_group(written: str, stored: str) -> str:
    if not written:
        return stored
    return DEFAULT_GROUP if written == NO_GROUP else written


def _group(written: str, stored: str, known: Collection[str]) -> str:
    """Name the group of OLTs; one that differs from a known one by its case alone is that one."""
    if not written:
        return stored
    if written in known:
        return written
    if written.lower() == NONE:
        return ""
    return next((name for name in known if name.lower() == written.lower()), written)


def _given_secrets(entry: OltEntry) -> list[str]:
    return [name for name in SECRET_COLUMNS if getattr(entry, name)]


def _row_problems(drafts: Sequence[_Draft]) -> Iterator[Problem]:
    """Say what is wrong with entries beside each other and beside what is stored."""
    for draft in drafts:
        if draft.entry.host and not draft.olt.address:
            reason = _('host "%s" does not resolve to an address') % draft.entry.host
            yield Problem(draft.entry.line, reason, column="host")
        faults = find_credential_faults(
            draft.olt,
            given=_given_secrets(draft.entry),
            stored=stored_secrets(draft.olt),
            is_moved=draft.is_moved and not draft.entry.takes_secrets_along,
        )
        yield from (Problem(draft.entry.line, fault.reason, column=fault.column) for fault in faults)
    yield from _same_names(drafts)
    yield from _same_devices(drafts)


def _same_names(drafts: Sequence[_Draft]) -> Iterator[Problem]:
    seen: dict[str, _Draft] = {}
    for draft in drafts:
        first = seen.setdefault(draft.olt.name, draft)
        if first is not draft:
            yield Problem(draft.entry.line, _('name "%s" appears twice') % draft.olt.name, column="name")


def _same_devices(drafts: Sequence[_Draft]) -> Iterator[Problem]:
    """Refuse a second row for one device, which would be a second claim on it."""
    stored = Olt.objects.filter(address__in={draft.olt.address for draft in drafts if draft.olt.address})
    taken = {(address, port): name for address, port, name in stored.values_list("address", "port", "name")}
    for draft in drafts:
        if not draft.olt.address:
            continue
        owner = taken.setdefault((draft.olt.address, draft.olt.port), draft.olt.name)
        if owner != draft.olt.name:
            place = {"owner": owner, "address": draft.olt.address, "port": draft.olt.port}
            reason = _('OLT "%(owner)s" already has address %(address)s port %(port)s') % place
            yield Problem(draft.entry.line, reason, owner, column="host")


def _plan(drafts: Sequence[_Draft], problems: Iterable[Problem]) -> ImportPlan:
    names = {draft.entry.line: draft.olt.name for draft in drafts}
    bad = bad_rows(((problem.line, problem.reason) for problem in problems), names)
    bad_lines = {row.line for row in bad}
    rows = [*bad, *(_planned(draft) for draft in drafts if draft.entry.line not in bad_lines)]
    return ImportPlan(tuple(sorted(rows, key=_line_of)), _new_groups(drafts))


def _planned(draft: _Draft) -> PlannedRow:
    changes, given = compare(draft.before, _texts(draft.olt, draft.group)), tuple(_given_secrets(draft.entry))
    kept = tuple(name for name in stored_secrets(draft.olt) if name not in given)
    known = Verdict.CHANGED if changes or given else Verdict.UNCHANGED
    verdict = Verdict.NEW if draft.is_new else known
    return PlannedRow(draft.entry.line, draft.olt.name, verdict, changes, given, kept)


def _new_groups(drafts: Sequence[_Draft]) -> tuple[str, ...]:
    wanted = dict.fromkeys(draft.group for draft in drafts if draft.group)
    known = set(OltGroup.objects.filter(name__in=wanted).values_list("name", flat=True))
    return tuple(name for name in wanted if name not in known)


def _save_groups(drafts: Sequence[_Draft]) -> Mapping[str, OltGroup]:
    """Make the groups that nobody has made yet, and return all that the drafts name."""
    OltGroup.objects.bulk_create([OltGroup(name=name) for name in _new_groups(drafts)], ignore_conflicts=True)
    return OltGroup.objects.in_bulk([draft.group for draft in drafts if draft.group], field_name="name")


def _line_of(item: Problem | PlannedRow) -> int:
    return item.line or 0


def _save(draft: _Draft, after_save: AfterSave | None) -> None:
    columns = [*_PLAIN_FIELDS, "group", *_given_secrets(draft.entry), "updated_at"]
    try:
        draft.olt.save(update_fields=None if draft.is_new else columns)
    except IntegrityError as error:  # what was free when it was checked
        reason = _("somebody else has just taken this name, or this address and port")
        raise InventoryError([Problem(draft.entry.line, reason)]) from error
    if after_save and (draft.is_new or draft.has_other_vendor):
        after_save(draft.olt)

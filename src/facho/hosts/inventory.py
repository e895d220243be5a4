"""Keeps the OLT inventory: everything an operator gave is checked, then all of it is saved, or nothing."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils.translation import gettext as _

from facho.hosts.models import DEFAULT_SNMP_PORT, Olt, SnmpVersion
from facho.hosts.olt_entry import (
    AUTO,
    NONE,
    SECRET_COLUMNS,
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


class InventoryError(Exception):
    """Nothing was saved; every problem is listed."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.reason for problem in self.problems))


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
    has_other_vendor: bool


def add_olt(entry: OltEntry, *, after_save: AfterSave | None = None, vendors: Collection[str] | None = None) -> Olt:
    """Add one OLT; a known name is refused. `after_save` runs in the same transaction."""
    if Olt.objects.filter(name=entry.name).exists():
        raise InventoryError([Problem(entry.line, _('there already is an OLT named "%s"') % entry.name)])
    import_olts([entry], after_save=after_save, vendors=vendors)
    return stored_olts().get(name=entry.name)


def import_olts(
    entries: Sequence[OltEntry],
    *,
    problems: Iterable[Problem] = (),
    after_save: AfterSave | None = None,
    vendors: Collection[str] | None = None,
) -> Saved:
    """Add new OLTs and update known ones. Problems that a reader found before are told together with ours.

    `after_save` runs for each OLT that is new or changed its vendor, in the same transaction.
    """
    known = load_definitions().keys() if vendors is None else vendors
    faults = [*problems, *_text_problems(entries, known)]
    # Before the transaction: none is open while the network is used.
    addresses = resolve_all({entry.host for entry in entries if entry.host})
    with transaction.atomic():
        drafts = _lay_over(entries, addresses, known)
        faults += _row_problems(drafts)
        if faults:
            raise InventoryError(sorted(faults, key=lambda problem: problem.line or 0))
        for draft in drafts:
            _save(draft, after_save)
    return Saved(
        added=tuple(draft.olt.name for draft in drafts if draft.is_new),
        updated=tuple(draft.olt.name for draft in drafts if not draft.is_new),
    )


def export_entries() -> Iterator[OltEntry]:
    """Give every OLT as an entry that can be imported again; secrets stay behind."""
    for olt in stored_olts():
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
        )


def stored_olts() -> QuerySet[Olt]:
    """Select OLTs without their secrets, so that a lost key hides nothing else; `has_…` says which are set."""
    presence = {
        f"has_{name}": ExpressionWrapper(~Q(**{name: ""}), output_field=BooleanField()) for name in SECRET_COLUMNS
    }
    return Olt.objects.defer(*SECRET_COLUMNS).annotate(**presence).order_by("name")


def find_credential_faults(olt: Olt, *, given: Collection[str]) -> Iterator[str]:
    """Say what an OLT of `stored_olts`, or a new one, lacks to speak its version; `given` are secrets to be saved."""

    def has(secret: str) -> bool:
        return secret in given or getattr(olt, f"has_{secret}", False)

    if olt.snmp_version != SnmpVersion.V3:
        if not has("community"):
            yield _("community is missing")
        return
    if not olt.v3_user:
        yield _("SNMPv3 needs a user")
    if olt.v3_priv_protocol and not olt.v3_auth_protocol:
        yield _("privacy needs an authentication protocol")
    yield from _combination_faults(olt.v3_auth_protocol, olt.v3_priv_protocol)
    if olt.v3_auth_protocol and not has("v3_auth_key"):
        yield _("authentication key is missing")
    if olt.v3_priv_protocol and not has("v3_priv_key"):
        yield _("privacy key is missing")


def _combination_faults(auth_protocol: str, priv_protocol: str) -> Iterator[str]:
    """Say with what a privacy protocol goes; protocols that exist nowhere are told by the text's own rules."""
    partners = [str(auth) for auth, priv in SUPPORTED.items() if priv_protocol in priv]
    if auth_protocol in SUPPORTED and partners and auth_protocol not in partners:
        yield _("privacy protocol %(priv)s goes only with authentication by %(partners)s") % {
            "priv": priv_protocol,
            "partners": ", ".join(partners),
        }


def _text_problems(entries: Sequence[OltEntry], vendors: Collection[str]) -> Iterator[Problem]:
    groups = settings.FACHO_POLLER_GROUPS
    for entry in entries:
        yield from (Problem(entry.line, fault) for fault in find_faults(entry, vendors=vendors, groups=groups))


def _lay_over(entries: Sequence[OltEntry], addresses: Mapping[str, str], vendors: Collection[str]) -> list[_Draft]:
    rows = stored_olts().in_bulk([entry.name for entry in entries], field_name="name")
    return [_draft(entry, rows.get(entry.name), addresses.get(entry.host, ""), vendors) for entry in entries]


def _draft(entry: OltEntry, row: Olt | None, address: str, vendors: Collection[str]) -> _Draft:
    olt = row or Olt(name=entry.name, port=DEFAULT_SNMP_PORT)
    vendor_before = olt.vendor
    olt.host, olt.address = entry.host, address
    olt.port = parse_port(entry.port) or olt.port
    olt.vendor = (find_vendor(entry.vendor, vendors) or "") if entry.vendor else olt.vendor
    olt.snmp_version = entry.version or olt.snmp_version
    olt.v3_user = entry.v3_user or olt.v3_user
    olt.v3_auth_protocol = _protocol(entry.v3_auth_protocol, olt.v3_auth_protocol)
    olt.v3_priv_protocol = _protocol(entry.v3_priv_protocol, olt.v3_priv_protocol)
    olt.poller_group = _group(entry.poller_group, olt.poller_group)
    for name in _given_secrets(entry):
        setattr(olt, name, getattr(entry, name))
    return _Draft(entry, olt, is_new=row is None, has_other_vendor=olt.vendor != vendor_before)


def _protocol(written: str, stored: str) -> str:
    if not written:
        return stored
    return "" if written.lower() == NONE else written.upper()


def _group(written: str, stored: str) -> str:
    if not written:
        return stored
    return DEFAULT_GROUP if written == NO_GROUP else written


def _given_secrets(entry: OltEntry) -> list[str]:
    return [name for name in SECRET_COLUMNS if getattr(entry, name)]


def _row_problems(drafts: Sequence[_Draft]) -> Iterator[Problem]:
    """Say what is wrong with entries beside each other and beside what is stored."""
    for draft in drafts:
        if draft.entry.host and not draft.olt.address:
            yield Problem(draft.entry.line, _('host "%s" does not resolve to an address') % draft.entry.host)
        faults = find_credential_faults(draft.olt, given=_given_secrets(draft.entry))
        yield from (Problem(draft.entry.line, fault) for fault in faults)
    yield from _same_names(drafts)
    yield from _same_devices(drafts)


def _same_names(drafts: Sequence[_Draft]) -> Iterator[Problem]:
    seen: dict[str, _Draft] = {}
    for draft in drafts:
        first = seen.setdefault(draft.olt.name, draft)
        if first is not draft:
            yield Problem(draft.entry.line, _('name "%s" appears twice') % draft.olt.name)


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
            yield Problem(draft.entry.line, _('OLT "%(owner)s" already has address %(address)s port %(port)s') % place)


def _save(draft: _Draft, after_save: AfterSave | None) -> None:
    if draft.is_new:
        draft.olt.save()
    else:
        draft.olt.save(update_fields=[*_PLAIN_FIELDS, *_given_secrets(draft.entry), "updated_at"])
    if after_save and (draft.is_new or draft.has_other_vendor):
        after_save(draft.olt)

"""What the devices of NetBox mean for the OLTs: a plan, which a dry run shows and which is then carried out as shown.

New and moved OLTs go the way of every import. Nothing is deleted, and credentials never come from NetBox.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import chain
from typing import Any

from django.conf import settings
from django.db.models import Q, TextChoices
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from facho.accounts.audit import Action, changed_words, console, record_each
from facho.alerts.links import load_public_address
from facho.hosts.csv import misshapen, read_rows
from facho.hosts.inventory import (
    EntryProblem,
    InventoryError,
    PlanChanged,
    RowVerdict,
    Saved,
    import_olts,
    plan_import,
    stored_olts,
)
from facho.hosts.models import Olt, Reachability
from facho.hosts.olt_entry import COLUMNS, SECRET_COLUMNS, V3_COLUMNS, OltEntry
from facho.infrastructure.secrets import Secret
from facho.neighbours.models import NetBoxLink
from facho.neighbours.netbox import NetBoxAway, NetBoxDevice, fetch_devices, save_fields
from facho.onus.shown_state import count_present
from facho.onus.words import ShownState
from facho.snmp_jobs.application import apply_ready_made_jobs

ADDED_STATUS = "active"
# The device is there, or will be again.
KEPT_STATUSES = ("active", "staged", "failed", "offline")
# Must be set by hand: a missing device may only mean that our token lost a permission.
ENDED_STATUS = "decommissioning"
NETWORK = "network"
CREDENTIALS = ("version", "community", *V3_COLUMNS)
MAX_CREDENTIALS_BYTES = 1_000_000
NETBOX = "NetBox"


class SyncVerdict(TextChoices):
    ERROR = "error", gettext_lazy("error")
    NEW = "new", gettext_lazy("new")
    CHANGED = "changed", gettext_lazy("changed")
    LINKED = "linked", gettext_lazy("linked")
    DISABLED = "disabled", gettext_lazy("disabled")
    # Not disabled: it was not asked for, or nobody said that the device is out of service.
    GONE = "gone", pgettext_lazy("a device in NetBox", "gone")
    LEFT_OUT = "left_out", gettext_lazy("left out")
    WRITTEN = "written", gettext_lazy("written to NetBox")


@dataclass(frozen=True, slots=True)
class SyncRow:
    """One thing that is done or said about a device; the name is that of the OLT where there is one."""

    device_id: int
    name: str
    verdict: SyncVerdict
    words: str


@dataclass(frozen=True, slots=True)
class SyncPlan:
    rows: tuple[SyncRow, ...]
    entries: tuple[OltEntry, ...] = ()
    # Of what the entries will do, so that nothing else is done.
    fingerprint: str = ""
    # OLT id and device id of what was found to be the same.
    links: tuple[tuple[int, int], ...] = ()
    ended_olts: tuple[int, ...] = ()
    # Device id and the custom fields that differ.
    changes: tuple[tuple[int, Mapping[str, Any]], ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether every device could be taken as it is."""
        return all(row.verdict is not SyncVerdict.ERROR for row in self.rows)


@dataclass(frozen=True, slots=True)
class NetworkDefaults:
    """What new OLTs of a network get; its name and host stay empty."""

    network: IPv4Network | IPv6Network
    entry: OltEntry


@dataclass(frozen=True, slots=True)
class DeviceMatch:
    device: NetBoxDevice
    olt: Olt | None
    is_linked: bool = False


def plan_sync(*, disables: bool) -> SyncPlan:
    """Ask NetBox, and plan; with `disables`, OLTs that somebody took out of service there are disabled."""
    defaults, devices = load_defaults(), fetch_devices()
    wanted = [device for device in devices if device.is_asked_for]
    if not wanted:
        text = _("NetBox shows no device with these roles: %s. Check that the token may view devices.")
        raise NetBoxAway(text % ", ".join(settings.FACHO_NETBOX_ROLES))
    text = _("role %(role)s, site %(site)s: not those of the settings")
    rows = [
        _row(device, SyncVerdict.LEFT_OUT, text % {"role": device.role, "site": device.site})
        for device in devices
        if not device.is_asked_for
    ]
    matches, clashes = match_devices(wanted)
    entries: list[OltEntry] = []
    for match in matches:
        item = judge(match, defaults, disables=disables)
        if isinstance(item, OltEntry):
            entries.append(item)
        elif item:
            rows.append(item)
        if match.olt and not match.is_linked:
            rows.append(_row(match.device, SyncVerdict.LINKED, _("is %s in NetBox") % match.device.name, match.olt))
    planned, good, fingerprint = plan_entries(entries)
    missing = NetBoxLink.objects.filter(olt__enabled=True).exclude(device_id__in=[device.id for device in wanted])
    text = _("NetBox does not show this device any more")
    gone = (SyncRow(*each, SyncVerdict.GONE, text) for each in missing.values_list("device_id", "olt__name"))
    rows += [*clashes, *planned, *gone]
    pairs = [(match.olt, match.device) for match in matches if match.olt]
    changes = list(find_differences(pairs))
    rows += [
        _row(device, SyncVerdict.WRITTEN, changed_words(device.custom_fields, fields), olt)
        for olt, device, fields in changes
    ]
    ended = {row.device_id for row in rows if row.verdict is SyncVerdict.DISABLED}
    return SyncPlan(
        rows=tuple(sorted(rows, key=lambda row: (row.device_id, row.verdict is SyncVerdict.WRITTEN))),
        entries=good,
        fingerprint=fingerprint,
        links=tuple((olt.pk, device.id) for olt, device in pairs),
        ended_olts=tuple(olt.pk for olt, device in pairs if device.id in ended),
        changes=tuple((device.id, fields) for _olt, device, fields in changes),
    )


def apply_sync(plan: SyncPlan, *, now: datetime) -> None:
    """Do what the plan says, in one transaction; PlanChanged and nothing done if it is not true any more."""

    def finish(saved: Saved) -> None:
        who = console()
        ended = list(Olt.objects.filter(id__in=plan.ended_olts, enabled=True).defer(*SECRET_COLUMNS))
        Olt.objects.filter(id__in=[olt.pk for olt in ended]).update(enabled=False, updated_at=now)
        imported = (
            (row.olt, Action.ADDED if row.is_new else Action.CHANGED, f"{NETBOX} · {row.planned.audit_words}")
            for row in saved.rows
        )
        disabled = ((olt, Action.CHANGED, f"{NETBOX} · {ENDED_STATUS} · {_('Disabled.')}") for olt in ended)
        record_each(who, chain(imported, disabled))
        _save_links({**dict(plan.links), **{row.olt.pk: row.planned.line or 0 for row in saved.rows}})

    def after_save(olt: Olt) -> None:
        apply_ready_made_jobs(olt, now=now)

    try:
        import_olts(plan.entries, after_save=after_save, shown=plan.fingerprint, finish=finish)
    except InventoryError as error:
        raise PlanChanged from error


def write_back(plan: SyncPlan) -> None:
    """Write what differs into NetBox; outside of any transaction."""
    save_fields(plan.changes)


def load_defaults() -> list[NetworkDefaults]:
    """Read what new OLTs get, by network; InventoryError lists what is wrong with the file."""
    path = settings.FACHO_NETBOX_CREDENTIALS_FILE
    if path is None:
        return []
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NetBoxAway(_("The file %(path)s cannot be read.") % {"path": path}) from error
    if len(content) > MAX_CREDENTIALS_BYTES:
        raise InventoryError([EntryProblem(None, _("the file is too large"))])
    rows = read_rows(content)
    line, header = next(rows, (1, []))
    columns = [name.strip().lower() for name in header]
    allowed = (NETWORK, *(name for name in COLUMNS if name not in ("name", "host")))
    if NETWORK not in columns or len(set(columns)) != len(columns) or not set(columns) <= set(allowed):
        text = _("the header must have %(network)s, and besides only: %(others)s")
        names = {"network": NETWORK, "others": ", ".join(allowed[1:])}
        raise InventoryError([EntryProblem(line, text % names)])
    found, problems = [], []
    for line, cells in rows:
        try:
            if len(cells) != len(columns):
                problems.append(misshapen(line, cells, columns))
            else:
                values: dict[str, Any] = {
                    # Secrets are taken as written: a space may be part of one.
                    name: Secret(text) if name in SECRET_COLUMNS else text.strip()
                    for name, text in zip(columns, cells, strict=True)
                }
                network = ip_network(values.pop(NETWORK))
                found.append(NetworkDefaults(network, OltEntry(name="", host="", **values)))
        except ValueError:
            problems.append(EntryProblem(line, _("this is not a network such as 10.20.0.0/16")))
    if problems:
        raise InventoryError(problems)
    return found


def match_devices(devices: Sequence[NetBoxDevice]) -> tuple[list[DeviceMatch], list[SyncRow]]:
    """Find the OLT of each device: the one of the last time, else by name, else by address."""
    olts = {olt.pk: olt for olt in stored_olts().select_related("model__brand")}
    by_name = {olt.name: olt for olt in olts.values()}
    by_address: dict[str, list[Olt]] = {}
    for olt in olts.values():
        by_address.setdefault(olt.address, []).append(olt)
    links = dict(NetBoxLink.objects.values_list("device_id", "olt_id"))
    taken = {links[device.id]: device.id for device in devices if device.id in links}
    matches, clashes = [], []
    for device in devices:
        if device.id in links:
            matches.append(DeviceMatch(device, olts.get(links[device.id]), is_linked=True))
            continue
        if device.status not in KEPT_STATUSES:
            # The one that replaced it may have its name and address.
            matches.append(DeviceMatch(device, None))
            continue
        at_address = by_address.get(device.address, [])
        found = by_name.get(device.name) or (at_address[0] if len(at_address) == 1 else None)
        if found and found.pk in taken:
            text = _("OLT %(olt)s is already device %(device)s") % {"olt": found.name, "device": taken[found.pk]}
            clashes.append(_row(device, SyncVerdict.ERROR, text))
            continue
        if found:
            taken[found.pk] = device.id
        matches.append(DeviceMatch(device, found))
    return matches, clashes


def judge(match: DeviceMatch, defaults: Sequence[NetworkDefaults], *, disables: bool) -> OltEntry | SyncRow | None:
    """Return the entry to import, or what is said about a device; None when all is as it should be."""
    device, olt = match.device, match.olt
    status = _("status %s") % (device.status or "?")
    if olt is None and device.status != ADDED_STATUS:
        return _row(device, SyncVerdict.LEFT_OUT, status)
    if olt is not None and device.status not in KEPT_STATUSES:
        is_ended = disables and device.status == ENDED_STATUS
        verdict = SyncVerdict.DISABLED if is_ended else SyncVerdict.GONE
        return _row(device, verdict, status, olt) if olt.enabled else None
    # A name that leads to this address says the same.
    if olt is not None and olt.address == device.address:
        return None
    return _enter(device, olt, defaults)


def _enter(device: NetBoxDevice, olt: Olt | None, defaults: Sequence[NetworkDefaults]) -> OltEntry | SyncRow:
    """Write a new or moved OLT as an import would have it; of one that moved nothing else changes."""
    if not device.address:
        return _row(device, SyncVerdict.ERROR, _("it has no primary IP address"), olt)
    fitting = [each for each in defaults if ip_address(device.address) in each.network]
    if not fitting:
        text = _("no network of FACHO_NETBOX_CREDENTIALS_FILE has %s, so its credentials are unknown")
        return _row(device, SyncVerdict.ERROR, text % device.address, olt)
    # That of the smallest network.
    given = max(fitting, key=lambda each: each.network.prefixlen).entry
    if olt is None:
        return replace(given, name=device.name, host=device.address, line=device.id)
    only = {name: getattr(given, name) for name in CREDENTIALS}
    return OltEntry(name=olt.name, host=device.address, line=device.id, **only)


def plan_entries(entries: Sequence[OltEntry]) -> tuple[list[SyncRow], tuple[OltEntry, ...], str]:
    """Plan them as any import, and leave out what is wrong: one device does not keep the others away."""
    plan = plan_import(entries)
    bad = plan.rows_of(RowVerdict.ERROR)
    lines = {row.line for row in bad}
    good = tuple(entry for entry in entries if entry.line not in lines)
    final = plan_import(good) if bad else plan
    shown = (*bad, *final.rows_of(RowVerdict.NEW, RowVerdict.CHANGED))
    rows = [SyncRow(row.line or 0, row.name, SyncVerdict(row.verdict), "; ".join(row.in_words)) for row in shown]
    return rows, good, final.fingerprint


def find_differences(
    pairs: Sequence[tuple[Olt, NetBoxDevice]],
) -> Iterator[tuple[Olt, NetBoxDevice, Mapping[str, Any]]]:
    """Yield the custom fields that differ; NetBoxAway when NetBox does not have one: old ones keep it unseen."""
    names = dict(settings.FACHO_NETBOX_FIELDS)
    if not names or not pairs:
        return
    unknown = {field for _olt, device in pairs for field in names.values() if field not in device.custom_fields}
    if unknown:
        text = _("NetBox has no custom field %s for devices: create it there; docs/neighbours.md has its type.")
        raise NetBoxAway(text % ", ".join(sorted(unknown)))
    counts, address = count_present(), load_public_address()
    for olt, device in pairs:
        known = _known_of(olt, counts, address)
        wanted = {field: known[value] for value, field in names.items()}
        differing = {field: each for field, each in wanted.items() if not _is_same(device.custom_fields[field], each)}
        if differing:
            yield olt, device, differing


def _known_of(olt: Olt, counts: Mapping[tuple[int, str], int], address: str) -> dict[str, Any]:
    answers = {Reachability.UP.value: True, Reachability.DOWN.value: False}
    totals = [counts.get((olt.pk, state), 0) for state in ShownState.values]
    last = olt.last_answer_at
    return {
        "reachable": answers.get(olt.reachability) if olt.enabled else None,
        "model": str(olt.model) if olt.model else None,
        "system": olt.sys_descr or None,
        "onus_online": counts.get((olt.pk, ShownState.ONLINE), 0),
        "onus_total": sum(totals),
        "last_answer": last.replace(microsecond=0).isoformat() if last else None,
        "link": address + reverse("olt", args=[olt.pk]) if address else None,
    }


def _is_same(stored: Any, wanted: Any) -> bool:
    """Compare values, not their notation: NetBox writes times in a form of its own, and clears texts to nothing."""
    if isinstance(stored, str) and isinstance(wanted, str):
        with suppress(ValueError, TypeError):
            return datetime.fromisoformat(stored) == datetime.fromisoformat(wanted)
    return bool((None if stored == "" else stored) == wanted)


def _row(device: NetBoxDevice, verdict: SyncVerdict, words: str, olt: Olt | None = None) -> SyncRow:
    return SyncRow(device.id, olt.name if olt else device.name, verdict, words)


def _save_links(links: Mapping[int, int]) -> None:
    known = dict(NetBoxLink.objects.values_list("olt_id", "device_id"))
    new = {olt_id: device_id for olt_id, device_id in links.items() if known.get(olt_id) != device_id}
    NetBoxLink.objects.filter(Q(olt_id__in=new) | Q(device_id__in=new.values())).delete()
    NetBoxLink.objects.bulk_create(NetBoxLink(olt_id=olt_id, device_id=each) for olt_id, each in new.items())

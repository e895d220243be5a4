"""Updates the ONUs of an OLT from an identity walk, as planned by the presence rules."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from facho.hosts.models import Olt
from facho.hosts.store import mark_discovered
from facho.infrastructure.bulk import insert_values, update_values
from facho.onus.events import save_events
from facho.onus.models import OltMemory, Onu, OnuReading, PonPort, RunStateChoice
from facho.onus.outages import end_abandoned_outages
from facho.onus.present_onus import PLACE, load_known
from facho.polling.domain.onu_presence import KnownOnu, OnuIdentity, PresencePlan, Walk, plan_presence
from facho.polling.domain.onu_state import OnuPlace, PortPlace
from facho.polling.vendors.loader import load_definitions

logger = logging.getLogger(__name__)

# Twice what the largest chassis is sold for; absent ONUs count until they are deleted. An agent that goes beyond makes
# ONUs up.
MAX_ONUS = 32_768
MAX_PORTS = 2_048
_KNOWN_ONU = ("pon_port", "onu_id", "serial", "mac", "misses", "missed_at", "is_present", "absent_since")
_NEW_ONU = (
    *("olt", "pon_port", "onu_id", "serial", "mac", "is_present", "first_seen_at", "misses"),
    *("description", "name", "model", "firmware", "admin_state"),
)
_NEW_READING = ("onu", "run_state", "last_down_cause", "flap_changes")


def save_inventory(olt_id: int, walk: Walk, *, now: datetime) -> None:
    """Store an identity walk: new, moved, gone, returned and duplicate ONUs."""
    olt = Olt.objects.select_related("memory").only("vendor", "discovered_at", "memory").get(id=olt_id)
    memory = getattr(olt, "memory", None) or OltMemory(olt_id=olt_id)
    known = load_known(olt_id)
    walk = _within_bounds(olt_id, known, walk)
    plan = plan_presence(known, walk, now=now, is_first=memory.walked_at is None, held_since=memory.held_at)
    if plan.is_held:
        logger.warning("inventory.held olt=%s found=%s", olt_id, len(walk.found))
    places = [onu.place for onu in (*known, *plan.updated)] + [place for place, _ in plan.new]
    port_ids = _save_ports(olt, {place[:3] for place in places}, found={place[:3] for place in walk.found})
    _save_known({onu.onu_id: onu for onu in known}, plan.updated, port_ids, now)
    new_ids = _save_new(olt_id, plan, port_ids, now)
    save_events(olt_id, plan.events, port_ids=port_ids, new_ids=new_ids)
    _save_memory(memory, walk, is_held=plan.is_held, now=now)
    if walk.is_complete and olt.discovered_at is None:
        mark_discovered(olt_id, now)
    if plan.updated:
        end_abandoned_outages(olt_id, now=now)


def _within_bounds(olt_id: int, known: Sequence[KnownOnu], walk: Walk) -> Walk:
    """Drop new places beyond an OLT's maximum; a truncated walk proves no absence."""
    places, ports = {onu.place for onu in known}, {onu.place[:3] for onu in known}
    room, kept = MAX_ONUS - len(known), dict[OnuPlace, OnuIdentity]()
    for place, who in walk.found.items():
        if place not in places:
            if room <= 0 or (place[:3] not in ports and len(ports) >= MAX_PORTS):
                continue
            room -= 1
            ports.add(place[:3])
        kept[place] = who
    if len(kept) == len(walk.found):
        return walk
    logger.warning("inventory.too_large olt=%s left_out=%s", olt_id, len(walk.found) - len(kept))
    return replace(walk, found=kept, is_complete=False, complete_ports=frozenset())


def _save_ports(olt: Olt, places: set[PortPlace], *, found: set[PortPlace]) -> dict[PortPlace, int]:
    definition = load_definitions().get(olt.vendor)
    are_told = definition is None or definition.tells_ports
    ports = {_place_of(port): port for port in PonPort.objects.filter(olt_id=olt.id).order_by()}
    missing = [
        PonPort(olt_id=olt.id, frame=frame, slot=slot, port=port, is_known=are_told)
        for frame, slot, port in sorted(places - ports.keys())
    ]
    PonPort.objects.bulk_create(missing)
    # An OLT may turn out to be of another family.
    changed = [ports[place].id for place in found & ports.keys() if ports[place].is_known is not are_told]
    if changed:
        PonPort.objects.filter(id__in=changed).update(is_known=are_told)
    return {_place_of(port): port.id for port in (*ports.values(), *missing)}


def _place_of(port: PonPort) -> PortPlace:
    return (port.frame, port.slot, port.port)


def _save_known(
    before: Mapping[int, KnownOnu], updated: Sequence[KnownOnu], port_ids: Mapping[PortPlace, int], now: datetime
) -> None:
    """Update rows, those leaving a place first: a place holds one present ONU."""
    moved = {onu.onu_id for onu in updated if onu.place != before[onu.onu_id].place}
    leaving = [onu for onu in updated if before[onu.onu_id].is_present and (onu.onu_id in moved or not onu.is_present)]
    update_values(Onu, ["is_present", "absent_since"], [(onu.onu_id, False, now) for onu in leaving])
    rows = []
    for onu in updated:
        who = (onu.serial, onu.mac, onu.misses, onu.missed_at)
        absent_since = None if onu.is_present else now
        rows.append((onu.onu_id, port_ids[onu.place[:3]], onu.place[3], *who, onu.is_present, absent_since))
    update_values(Onu, _KNOWN_ONU, rows)
    # Its former state is not its current one.
    returned = [onu.onu_id for onu in updated if onu.is_present and not before[onu.onu_id].is_present]
    update_values(
        OnuReading, ["run_state", "state_since"], [(onu_id, RunStateChoice.UNKNOWN.value, None) for onu_id in returned]
    )
    # The light differs at another place.
    update_values(
        OnuReading, ["power_reference_cdbm", "power_reference_at"], [(onu_id, None, None) for onu_id in moved]
    )


def _save_new(olt_id: int, plan: PresencePlan, port_ids: Mapping[PortPlace, int], now: datetime) -> dict[OnuPlace, int]:
    if not plan.new:
        return {}
    rows = [
        (olt_id, port_ids[place[:3]], place[3], serial, mac, True, now, 0, *[""] * 5)
        for place, (serial, mac) in plan.new
    ]
    insert_values(Onu, _NEW_ONU, rows)
    present = Onu.objects.filter(olt_id=olt_id, is_present=True).order_by().values_list(*PLACE, "id")
    ids = {(frame, slot, port, number): onu_id for frame, slot, port, number, onu_id in present}
    new_ids = {place: ids[place] for place, _ in plan.new}
    insert_values(
        OnuReading, _NEW_READING, [(onu_id, RunStateChoice.UNKNOWN.value, "", 0) for onu_id in new_ids.values()]
    )
    return new_ids


def _save_memory(memory: OltMemory, walk: Walk, *, is_held: bool, now: datetime) -> None:
    walked_at, held_at = memory.walked_at, memory.held_at
    if is_held:
        held_at = held_at or now
    elif walk.is_complete:
        walked_at, held_at = now, None
    row = (memory.olt_id, walked_at, held_at)
    insert_values(OltMemory, ["olt", "walked_at", "held_at"], [row], unique=["olt"])

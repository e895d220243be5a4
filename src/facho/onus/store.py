"""Stores what a run learned about ONUs: reads the current rows, compares, and writes only what changed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from facho.onus.bulk import update_rows
from facho.onus.models import Onu, OnuData, OnuReading, PonPort, RunState
from facho.polling.vendors.index import Place

# A complete walk may still miss an ONU that is just being re-registered.
MISSES_UNTIL_ABSENT = 2
BATCH = 500

# What the columns hold; a device may send any 32 bits as an index.
MAX_NUMBER, MAX_ONU_ID, MAX_DISTANCE_M = 32_767, 2_147_483_647, 2_147_483_647
MAX_SERIAL_LENGTH = 32
MAX_POWER_DBM = 300.0


PortPlace = tuple[int, int, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading:
    """Decoded values of one ONU by their column key; only what was read is in it."""

    place: Place
    values: Mapping[str, object]
    raw: Mapping[str, str]


def load_places(olt_id: int) -> list[Place]:
    """Return where the OLT's present ONUs are, in walking order."""
    onus = Onu.objects.filter(olt_id=olt_id, is_present=True)
    fields = ("pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id")
    return [Place(*row) for row in onus.order_by(*fields).values_list(*fields)]


def is_storable(place: Place) -> bool:
    """Tell whether a place that a device named fits our columns; no chassis has numbers beyond them."""
    return max(place.frame, place.slot, place.port) <= MAX_NUMBER and place.onu <= MAX_ONU_ID


def save_inventory(olt_id: int, serials: Mapping[Place, str], *, is_complete: bool, now: datetime) -> dict[str, int]:
    """Bring the OLT's ONUs in line with a walk of their serials; only a complete walk can make one absent."""
    ports = _save_ports(olt_id, {place[:3] for place in serials})
    known = _load_onus(olt_id)
    moves = _match(known, serials)
    _vacate(known, serials, moves, now)
    _place(moves, ports)
    new = _add(olt_id, [place for place in serials if place not in moves], serials, ports, now)
    absent = _count_misses(known, moves, now) if is_complete else 0
    return {"onus": len(serials), "new": new, "absent": absent}


def save_readings(olt_id: int, readings: Sequence[Reading], *, now: datetime) -> int:
    """Store descriptions, states, light and raw values of present ONUs; returns how many ONUs changed."""
    onus = {onu_place(onu): onu for onu in _load_onus(olt_id) if onu.is_present}
    pairs = [(onus[reading.place], reading) for reading in readings if reading.place in onus]
    described = [onu for onu, reading in pairs if _apply_description(onu, reading)]
    update_rows(described, ["description"])
    changed = [onu.reading for onu, reading in pairs if _apply_reading(onu.reading, reading, now)]
    update_rows(changed, _READING_FIELDS)
    _save_raw(pairs, now)
    return len({onu.id for onu in described} | {reading.onu_id for reading in changed})


def onu_place(onu: Onu) -> Place:
    """Return the place of an ONU whose port is loaded."""
    return Place(onu.pon_port.frame, onu.pon_port.slot, onu.pon_port.port, onu.onu_id)


def _load_onus(olt_id: int) -> list[Onu]:
    return list(Onu.objects.filter(olt_id=olt_id).select_related("pon_port", "reading"))


def _save_ports(olt_id: int, places: Iterable[PortPlace]) -> dict[PortPlace, PonPort]:
    ports = {(p.frame, p.slot, p.port): p for p in PonPort.objects.filter(olt_id=olt_id)}
    missing = [PonPort(olt_id=olt_id, frame=f, slot=s, port=p) for f, s, p in sorted(set(places) - set(ports))]
    PonPort.objects.bulk_create(missing)
    return ports | {(p.frame, p.slot, p.port): p for p in missing}


def _match(known: Sequence[Onu], serials: Mapping[Place, str]) -> dict[Place, Onu]:
    """Pair each place of the walk with the ONU that is there: by serial where it is unambiguous, else by place."""
    by_serial = _unambiguous((onu.serial, onu) for onu in known)
    walked = _unambiguous((serial, place) for place, serial in serials.items())
    matched = {place: by_serial[serial] for serial, place in walked.items() if serial in by_serial}
    taken = {onu.id for onu in matched.values()}
    for onu in known:
        place = onu_place(onu)
        is_same = onu.is_present and place in serials and serials[place] in (onu.serial, "")
        if is_same and place not in matched and onu.id not in taken:
            matched[place] = onu
            taken.add(onu.id)
    return matched


def _unambiguous(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return what has a serial that nobody else has."""
    found: dict[str, T] = {}
    doubled: set[str] = set()
    for serial, value in pairs:
        doubled.update({serial} & found.keys())
        found[serial] = value
    return {serial: value for serial, value in found.items() if serial and serial not in doubled}


def _vacate(known: Sequence[Onu], serials: Mapping[Place, str], moves: Mapping[Place, Onu], now: datetime) -> None:
    """Free the places that others take: of ONUs that move, and of those that were replaced by another."""
    stays = {onu.id for place, onu in moves.items() if onu_place(onu) == place and onu.is_present}
    found = {onu.id for onu in moves.values()}
    leaving = [o for o in known if o.is_present and o.id not in stays and (o.id in found or onu_place(o) in serials)]
    for onu in leaving:
        onu.is_present, onu.absent_since = False, now
    update_rows(leaving, ["is_present", "absent_since"])


def _place(moves: Mapping[Place, Onu], ports: Mapping[PortPlace, PonPort]) -> None:
    moved = []
    for place, onu in moves.items():
        if onu.is_present and onu_place(onu) == place and not onu.misses:
            continue
        onu.pon_port, onu.onu_id = ports[place[:3]], place.onu
        onu.is_present, onu.absent_since, onu.misses = True, None, 0
        moved.append(onu)
    update_rows(moved, ["pon_port", "onu_id", "is_present", "absent_since", "misses"])


def _add(
    olt_id: int,
    places: Sequence[Place],
    serials: Mapping[Place, str],
    ports: Mapping[PortPlace, PonPort],
    now: datetime,
) -> int:
    rows = [
        Onu(olt_id=olt_id, pon_port=ports[p[:3]], onu_id=p.onu, serial=serials[p], first_seen_at=now) for p in places
    ]
    Onu.objects.bulk_create(rows, batch_size=BATCH)
    OnuReading.objects.bulk_create([OnuReading(onu=onu) for onu in rows], batch_size=BATCH)
    return len(rows)


def _count_misses(known: Sequence[Onu], moves: Mapping[Place, Onu], now: datetime) -> int:
    seen = {onu.id for onu in moves.values()}
    missing = [onu for onu in known if onu.is_present and onu.id not in seen]
    for onu in missing:
        onu.misses += 1
        if onu.misses >= MISSES_UNTIL_ABSENT:
            onu.is_present, onu.absent_since = False, now
    update_rows(missing, ["misses", "is_present", "absent_since"])
    return sum(not onu.is_present for onu in missing)


_READING_FIELDS = ["run_state", "last_down_cause", "distance_m", "rx_power_cdbm", "state_since", "power_at"]


def _apply_description(onu: Onu, reading: Reading) -> bool:
    text = reading.values.get("onu.description")
    if not isinstance(text, str) or text[:255] == onu.description:
        return False
    onu.description = text[:255]
    return True


def _apply_reading(row: OnuReading, reading: Reading, now: datetime) -> bool:
    values = reading.values
    before = (row.run_state, row.last_down_cause, row.distance_m, row.rx_power_cdbm)
    if (state := values.get("onu.run_state")) is not None and row.run_state != str(state):
        row.run_state, row.state_since = RunState(str(state)), now
    if (cause := values.get("onu.last_down_cause")) is not None:
        row.last_down_cause = str(cause)[:20]
    distance = values.get("onu.distance")
    if isinstance(distance, int | float) and 0 <= distance <= MAX_DISTANCE_M:
        row.distance_m = int(distance)
    if "onu.rx_power" in values:
        row.rx_power_cdbm = _hundredths(values["onu.rx_power"])
        row.power_at = now
    return before != (row.run_state, row.last_down_cause, row.distance_m, row.rx_power_cdbm)


def _hundredths(power_dbm: object) -> int | None:
    """Return a power as its column holds it; what no light can have is no power."""
    if not isinstance(power_dbm, int | float) or abs(power_dbm) > MAX_POWER_DBM:
        return None
    return round(power_dbm * 100)


def _save_raw(pairs: Sequence[tuple[Onu, Reading]], now: datetime) -> None:
    """Keep the latest raw value per ONU and OID; one read, one upsert of what changed."""
    wanted = {(onu.id, oid): value[:255] for onu, reading in pairs for oid, value in reading.raw.items()}
    oids = {oid for _, oid in wanted}
    stored = OnuData.objects.filter(onu_id__in=[onu.id for onu, _ in pairs], oid__in=oids)
    current = {(onu_id, oid): value for onu_id, oid, value in stored.values_list("onu_id", "oid", "value")}
    rows = [
        OnuData(onu_id=onu_id, oid=oid, value=value, updated_at=now)
        for (onu_id, oid), value in wanted.items()
        if current.get((onu_id, oid)) != value
    ]
    OnuData.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["onu", "oid"],
        update_fields=["value", "updated_at"],
    )

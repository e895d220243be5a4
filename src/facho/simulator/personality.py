"""Makes an OLT of a family out of its vendor definition: its identity and every column it can be asked for.

Nothing here knows a brand: what is sent is what the definition can encode.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, TypeVar

from facho.polling.snmp.ber import Tag
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID, SYS_UP_TIME, Oid
from facho.polling.vendors.column import Column as VendorColumn
from facho.polling.vendors.definition import OLT_NAME, Definition
from facho.polling.vendors.index import SUB_ID_BITS, Index, LearnedIndex, NameForm, Place
from facho.polling.vendors.vocabulary import Cost, LinkState, Reject, Scope
from facho.simulator.readings import (
    BOARD_READINGS,
    OLT_READINGS,
    PORT_READINGS,
    Candidates,
    Moment,
    OnuReading,
    PortReading,
    hardware_address,
    plain_reading,
)
from facho.simulator.responder import ColumnKind, MibColumn, MibRows, MibView, Typed
from facho.simulator.world import MAX_ONUS_PER_PORT, OltWorld, SimulatedOnu, SimulatedPort

PON_PORT = "onu.pon_port"
# Far above the interfaces of any OLT, which are numbered from 1.
FIRST_ONU = 1_000


class RowNumbers:
    """Row numbers for families without an index formula; later rows get higher numbers on any port."""

    def __init__(self, ports: list[Place]) -> None:
        self._numbers: dict[Place, Oid] = {place: (number,) for number, place in enumerate(ports, start=1)}
        self._free = count(FIRST_ONU)

    def of(self, owner: SimulatedOnu | SimulatedPort) -> Oid:
        place = owner.place
        if place not in self._numbers:
            self._numbers[place] = (next(self._free),)
        return self._numbers[place]

    def by(self, index: Index) -> Callable[[SimulatedOnu], Oid]:
        if not isinstance(index, LearnedIndex):
            return lambda onu: index.encode(onu.place if "port" in index.fields else portless(onu.place))
        return self.of if index.forms else lambda onu: index.spell(onu.serial)


def portless(place: Place) -> Place:
    """Return the place of an ONU by its number alone, on an OLT that numbers them across its ports."""
    return Place(onu=place.port * MAX_ONUS_PER_PORT + place.onu)


NO_OBJECT_ID: Oid = (0, 0)
VERSIONS = ("V1.2.3", "1.2.3")


@dataclass(frozen=True, slots=True)
class SystemIdentity:
    object_id: Oid
    description: str


def identity_of(definition: Definition, number: int) -> SystemIdentity:
    """Choose a model of the family, a different one for each OLT number."""
    rules = definition.recognition
    ids = tuple(rules.models) or rules.prefixes or (NO_OBJECT_ID,)
    object_id = ids[number % len(ids)]
    model = rules.models.get(object_id, definition.title)
    description = f"{definition.brand} {model}"
    if rules.description is not None:
        # A text the family's pattern accepts: a model name, or the pattern's literal part.
        literal = rules.description.pattern.strip("^$").replace("\\", "")
        description = next((text for text in (model, literal) if rules.description.search(text)), description)
    patterns = [column.rule.pattern for column in definition.columns.values() if column.oid == SYS_DESCR[:-1]]
    return SystemIdentity(object_id, " ".join((description, *filter(None, map(_text_of, patterns)))))


def _text_of(pattern: str) -> str:
    """Return a text with a version where the pattern looks for one; empty if there is none so plain."""
    texts = (f"{pattern.partition('(')[0]}{version}" for version in VERSIONS)
    return next((text for text in texts if re.search(pattern, text)), "")


AUTOFIND: Mapping[str, OnuReading] = {
    "autofind.serial": lambda onu: (onu.serial, hardware_address(onu.serial)),
    "autofind.model": lambda onu: (onu.model,),
    "autofind.sw_version": lambda onu: (f"V{onu.salt % 3 + 1}.{onu.salt % 7}",),
    "autofind.slot": lambda onu: (onu.place.slot,),
    "autofind.port": lambda onu: (onu.place.port,),
}


class WaitingRoom:
    """ONUs waiting for authorisation, in order of arrival; the id in their place is their row number."""

    def __init__(self, moment: Moment) -> None:
        self.onus: list[SimulatedOnu] = []
        self._time = moment.onu_reading("onu.last_up")
        self._rows: dict[str, MibRows[SimulatedOnu]] = {}
        self._numbers = 0

    def rows(self, index: Index) -> MibRows[SimulatedOnu]:
        if index.name not in self._rows:
            self._rows[index.name] = MibRows(lambda onu: index.encode(onu.place), self.onus)
        return self._rows[index.name]

    def reading(self, key: str) -> Callable[[SimulatedOnu], Candidates] | None:
        return self._time if key == "autofind.time" else AUTOFIND.get(key)

    def add(self, onu: SimulatedOnu) -> None:
        self._numbers += 1
        onu.place = onu.place._replace(onu=self._numbers)
        self.onus.append(onu)
        for rows in self._rows.values():
            rows.insert(onu)

    def remove(self, onu: SimulatedOnu) -> None:
        self.onus.remove(onu)
        for rows in self._rows.values():
            rows.remove(onu)

    def count(self, port: Place) -> int:
        return sum(onu.place.pon == port for onu in self.onus)


UPLINKS = 2
# Of Ethernet in IANA's list.
ETHERNET_TYPE = 6


class Interface(NamedTuple):
    """One interface; `port` is its PON port, None for an uplink."""

    number: Oid
    place: Place
    port: SimulatedPort | None = None

    @property
    def name(self) -> str:
        return f"ethernet{self.place.frame}/{self.place.slot}/{self.place.port}"


UPLINK: Mapping[str, Callable[[Interface], Candidates]] = {
    "if.name": lambda uplink: (uplink.name,),
    "if.descr": lambda uplink: (uplink.name,),
    "if.type": lambda uplink: (ETHERNET_TYPE,),
    "if.admin": lambda uplink: (LinkState.UP,),
    "if.oper": lambda uplink: (LinkState.UP,),
}


def build_interfaces(world: OltWorld, definition: Definition) -> list[Interface]:
    """Number interfaces as the family does, or consecutively."""
    encode = next(filter(None, map(_port_encoder, definition.indexes.values())), None)
    ports = [
        Interface(encode(place) if encode else (number,), place, port)
        for number, (place, port) in enumerate(world.ports.items(), start=1)
    ]
    return [*ports, *_uplinks(definition, world, taken=len(ports))]


def interface_reading(key: str) -> Callable[[Interface], Candidates] | None:
    """Return the reader of a key such as `if.name`, None if neither ports nor uplinks have it."""
    of_port, of_uplink = PORT_READINGS.get(key), UPLINK.get(key)
    if of_port is None or of_uplink is None:
        return None
    return lambda interface: of_port(interface.port) if interface.port else of_uplink(interface)


def _uplinks(definition: Definition, world: OltWorld, *, taken: int) -> list[Interface]:
    slot = world.shape.first_slot + world.shape.cards
    places = [Place(world.shape.frame, slot, port) for port in range(UPLINKS)]
    formula = next((index for index in definition.indexes.values() if _has_places(index)), None)
    if formula is not None:
        return [Interface(formula.encode(place), place) for place in places]
    return [Interface((number,), place) for number, place in enumerate(places, start=taken + 1)]


def _has_places(index: Index) -> bool:
    return index.scope is Scope.INTERFACE and index.length == 1 and "slot" in index.fields


def _port_encoder(index: Index) -> Callable[[Place], Oid] | None:
    if isinstance(index, LearnedIndex):
        return None
    if index.scope is Scope.PON and index.length == 1:
        return index.encode
    # Ports and uplinks in one space of numbers.
    if _has_places(index) and not index.fixed:
        return index.encode
    if index.scope is not Scope.ONU or index.length == 1 or "port" not in index.fields:
        return None
    if index.fields["port"].shift < SUB_ID_BITS * (index.length - 1):
        return None
    lowest = index.fields["onu"].values.start
    return lambda place: index.encode(place._replace(onu=lowest))[:1]


Owner = TypeVar("Owner")

SCALAR_INDEX: Oid = (0,)
MAX_INTEGER32 = 2**31 - 1
# The fans or power supplies of a chassis, by their numbers.
PARTS = (Place(slot=1, port=1), Place(slot=2, port=2))
IMPOSSIBLE: tuple[Typed, ...] = ((Tag.INTEGER, 2_147_483_646), (Tag.OCTET_STRING, b"\xff\xfe"))


class Personality:
    """The MIB of one world as a family presents it; updated row by row."""

    def __init__(
        self, world: OltWorld, definition: Definition, identity: SystemIdentity, moment: Moment, *, standard: Definition
    ) -> None:
        self._world = world
        self._moment = moment
        self._numbers = RowNumbers(list(world.ports))
        self._onu_rows: dict[str, MibRows[Any]] = {}
        self._port_rows: dict[str, MibRows[SimulatedPort]] = {}
        self._place_rows: dict[str, MibRows[Place]] = {}
        self._scalar_rows: MibRows[OltWorld] = MibRows(lambda _: SCALAR_INDEX, [world])
        self._interface_rows: MibRows[Interface] = MibRows(
            lambda each: each.number, build_interfaces(world, definition)
        )
        self._interface_of = {each.place: each for each in self._interface_rows.owners if each.port}
        self.waiting = WaitingRoom(moment)
        self._definition = definition
        columns = {column.prefix: column for column in self._system_columns(identity)}
        for vendor_column in (*definition.columns.values(), *standard.columns_of(Scope.INTERFACE)):
            built = columns.get(vendor_column.oid)
            if vendor_column.shares is None and built is None:
                columns[vendor_column.oid] = self._build(vendor_column)
            elif built is not None and vendor_column.index.scope is Scope.PON:
                columns[vendor_column.oid] = self._with_ports(built, self._port_column(vendor_column))
        self.view = MibView(list(columns.values()))
        world.listeners.append(self)

    def refresh_uptime(self) -> None:
        """Encode sysUpTime again: it differs in every answer."""
        self._scalar_rows.forget(self._world)

    def onu_changed(self, onu: SimulatedOnu) -> None:
        for rows in self._onu_rows.values():
            rows.forget(onu)

    def onu_added(self, onu: SimulatedOnu) -> None:
        for rows in self._onu_rows.values():
            rows.insert(onu)

    def onu_removed(self, onu: SimulatedOnu) -> None:
        for rows in self._onu_rows.values():
            rows.remove(onu)

    def port_changed(self, port: SimulatedPort) -> None:
        for rows in self._port_rows.values():
            rows.forget(port)
        self._interface_rows.forget(self._interface_of[port.place])

    def let_wait(self, onu: SimulatedOnu) -> None:
        self.waiting.add(onu)
        self.port_changed(self._world.port_of(onu))

    def authorise(self, onu: SimulatedOnu) -> None:
        self.waiting.remove(onu)
        self._world.bring_back(onu, onu.place.pon)

    def _system_columns(self, identity: SystemIdentity) -> list[MibColumn[OltWorld]]:
        values: dict[Oid, Callable[[OltWorld], Typed]] = {
            SYS_DESCR: lambda _: (Tag.OCTET_STRING, identity.description.encode()),
            SYS_OBJECT_ID: lambda _: (Tag.OBJECT_IDENTIFIER, identity.object_id),
            SYS_UP_TIME: lambda world: (Tag.TIMETICKS, self._moment.uptime_ticks),
            SYS_NAME: lambda world: (Tag.OCTET_STRING, world.name.encode()),
        }
        return [MibColumn(oid[:-1], self._scalar_rows, read) for oid, read in values.items()]

    def _build(self, column: VendorColumn) -> MibColumn[Any]:
        scope = column.index.scope
        if scope is Scope.ONU:
            return self._onu_column(column)
        if scope is Scope.PON:
            return self._port_column(column)
        if scope is Scope.INTERFACE:
            read = self._reading(column, interface_reading(column.key), lambda each: hash(each.place) & 0xFFFF)
            return MibColumn(column.oid, self._interface_rows, read, _kind(column))
        if scope in (Scope.BOARD, Scope.PART):
            return self._place_column(column)
        if scope is Scope.AUTOFIND:
            read_waiting = self._reading(column, self.waiting.reading(column.key), lambda onu: onu.salt)
            return MibColumn(column.oid, self.waiting.rows(column.index), read_waiting, _kind(column))
        read_olt = self._reading(column, OLT_READINGS.get(column.key), lambda _: 0)
        return MibColumn(column.oid, self._scalar_rows, read_olt, _kind(column))

    def _onu_column(self, column: VendorColumn) -> MibColumn[Any]:
        index = column.index
        # Return how a column names ONUs and ports, for families that identify rows by name.
        learned = [index for index in self._definition.indexes.values() if isinstance(index, LearnedIndex)]
        forms = {index.scope: index.forms[0] for index in learned if index.forms and index.learned_from == column.key}
        if forms:
            return self._naming_column(column, forms)
        rows = self._onu_rows.get(index.name)
        if rows is None:
            rows = self._onu_rows[index.name] = MibRows(self._numbers.by(index), self._world.onus)
        # A column that fills in for another has the same value.
        reading = self._onu_reading(column.row_rule.fills or column.key)
        read = _with_sentinels(column, self._reading(column, reading, lambda onu: onu.salt))
        shared = [other for other in self._definition.columns.values() if other.shares == column.key]
        agreeing = self._agreeing(column, read, shared)
        garbled = impossible_value(column, *shared)
        return MibColumn(column.oid, rows, lambda onu: garbled if onu.is_garbled else agreeing(onu), _kind(column))

    def _naming_column(
        self, column: VendorColumn, forms: dict[Scope, NameForm]
    ) -> MibColumn[SimulatedOnu | SimulatedPort]:
        ports = self._world.ports.values() if Scope.PON in forms else ()
        rows = self._onu_rows[f"{column.key} names"] = MibRows(self._numbers.of, [*ports, *self._world.onus])

        def read(owner: SimulatedOnu | SimulatedPort) -> Typed:
            scope = Scope.PON if isinstance(owner, SimulatedPort) else Scope.ONU
            return column.encode(forms[scope].write(owner.place))

        return MibColumn(column.oid, rows, read, _kind(column))

    def _onu_reading(self, key: str) -> Callable[[SimulatedOnu], Candidates] | None:
        # Where a family has no description, operators put it into the name or the id.
        if key == OLT_NAME or (key == "onu.name" and not self._definition.has_column("onu.description")):
            key = "onu.description"
        # What is configured stays while the ONU is away.
        if key == PON_PORT and self._definition.column(key).cost is Cost.CONFIG:
            return lambda onu: (onu.place.port,)
        return self._moment.onu_reading(key)

    def _agreeing(
        self, column: VendorColumn, read: Callable[[SimulatedOnu], Typed | None], others: list[VendorColumn]
    ) -> Callable[[SimulatedOnu], Typed | None]:
        """Of several meanings in one value, send the most specific that does not contradict the column."""
        if not others:
            return read
        readings = [self._reading(other, self._onu_reading(other.key), lambda onu: onu.salt) for other in others]

        def read_agreeing(onu: SimulatedOnu) -> Typed | None:
            plain = read(onu)
            wanted = column.decode(*plain) if plain else None
            values = (reading(onu) for reading in readings)
            return next((typed for typed in values if typed and column.decode(*typed) == wanted), plain)

        return read_agreeing

    def _port_column(self, column: VendorColumn) -> MibColumn[SimulatedPort]:
        index = column.index
        rows = self._port_rows.get(index.name)
        if rows is None:
            port_number = self._numbers.of if isinstance(index, LearnedIndex) else lambda port: index.encode(port.place)
            rows = self._port_rows[index.name] = MibRows(port_number, self._world.ports.values())
        known: PortReading | None = PORT_READINGS.get(column.key)
        if column.key == "pon.autofind_count":
            known = lambda port: (self.waiting.count(port.place),)  # noqa: E731
        read = self._reading(column, known, lambda port: hash(port.place) & 0xFFFF)
        return MibColumn(column.oid, rows, read, _kind(column))

    def _with_ports(self, onus: MibColumn[Any], ports: MibColumn[SimulatedPort]) -> MibColumn[Any]:
        """Join the rows of ONUs and of PON ports that one standard column has."""
        owners = [*self._world.ports.values(), *self._world.onus]
        rows: MibRows[Any] = MibRows(
            lambda owner: (ports if isinstance(owner, SimulatedPort) else onus).rows.index_of(owner), owners
        )
        self._onu_rows[f"{onus.prefix} with ports"] = self._port_rows[f"{onus.prefix} with ports"] = rows
        return MibColumn(
            onus.prefix,
            rows,
            lambda owner: (ports if isinstance(owner, SimulatedPort) else onus).read(owner),
            onus.kind,
        )

    def _place_column(self, column: VendorColumn) -> MibColumn[Place]:
        index = column.index
        rows = self._place_rows.get(index.name)
        if rows is None:
            places = PARTS if index.scope is Scope.PART else self._world.shape.boards
            rows = self._place_rows[index.name] = MibRows(index.encode, places)
        read = self._reading(column, BOARD_READINGS.get(column.key), lambda place: place.slot)
        return MibColumn(column.oid, rows, read, _kind(column))

    def _reading(
        self, column: VendorColumn, known: Callable[[Owner], Candidates] | None, salt_of: Callable[[Owner], int]
    ) -> Callable[[Owner], Typed | None]:
        def read(owner: Owner) -> Typed | None:
            if known is not None:
                return encode_first(column, known(owner))
            return encode_first(column, plain_reading(column, salt=salt_of(owner), at=self._world.now))

        return read


def encode_first(column: VendorColumn, candidates: Candidates) -> Typed | None:
    """Encode the first candidate the column can carry; None if it can carry none."""
    for candidate in candidates:
        try:
            return column.encode(candidate)
        except ValueError:
            continue
    return None


def _with_sentinels(
    column: VendorColumn, read: Callable[[SimulatedOnu], Typed | None]
) -> Callable[[SimulatedOnu], Typed | None]:
    # A number that an Integer32 cannot carry is sent unsigned.
    typed = [
        (Tag.GAUGE32 if isinstance(raw, int) and raw > MAX_INTEGER32 else column.rule.tag, raw)
        for raw in column.rule.sentinels
    ]
    if column.unit is None or not typed:
        return read
    return lambda onu: read(onu) if onu.sentinel is None else typed[onu.sentinel % len(typed)]


def impossible_value(*columns: VendorColumn) -> Typed:
    """Return a value that is invalid in all columns of one OID, of their own type if possible."""
    refusals = (Reject.UNKNOWN_ENUM, Reject.OUT_OF_RANGE, Reject.WRONG_TYPE)
    return next(typed for typed in IMPOSSIBLE if all(column.decode(*typed).reason in refusals for column in columns))


def _kind(column: VendorColumn) -> ColumnKind:
    if column.rule.tag is Tag.COUNTER64:
        return ColumnKind.COUNTER64
    if column.cost is Cost.LIVE:
        return ColumnKind.LIVE
    return ColumnKind.DRIFTING if column.cost is Cost.COUNTER else ColumnKind.FIXED

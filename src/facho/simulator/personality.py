"""Makes an OLT of a family out of its vendor definition: its identity and every column it can be asked for.

Nothing here knows a brand: what is sent is what the definition can encode.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from facho.polling.snmp.ber import Tag
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID, SYS_UP_TIME, Oid
from facho.polling.vendors.column import Column as VendorColumn
from facho.polling.vendors.definition import OLT_NAME, Definition
from facho.polling.vendors.index import Index, Place
from facho.polling.vendors.learned_index import LearnedIndex, NameForm
from facho.polling.vendors.values import Reject
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.simulator.identity import Identity
from facho.simulator.interfaces import Interface, build_interfaces, interface_reading
from facho.simulator.mib import Column, ColumnKind, MibView, Rows, Typed
from facho.simulator.onu import Onu
from facho.simulator.readings import Candidates, Moment, board_reading, plain_reading, port_reading
from facho.simulator.row_numbers import RowNumbers
from facho.simulator.waiting import WaitingRoom
from facho.simulator.world import OltWorld, PonPort

Owner = TypeVar("Owner")

SCALAR_INDEX: Oid = (0,)
# The fans or power supplies of a chassis, by their numbers.
PARTS = (Place(slot=1, port=1), Place(slot=2, port=2))
IMPOSSIBLE: tuple[Typed, ...] = ((Tag.INTEGER, 2_147_483_646), (Tag.OCTET_STRING, b"\xff\xfe"))


class Personality:
    """The MIB of one world as a family shows it; follows the world's changes row by row."""

    def __init__(
        self, world: OltWorld, definition: Definition, identity: Identity, moment: Moment, *, standard: Definition
    ) -> None:
        self._world = world
        self._moment = moment
        self._numbers = RowNumbers(list(world.ports))
        self._onu_rows: dict[str, Rows[Any]] = {}
        self._port_rows: dict[str, Rows[PonPort]] = {}
        self._place_rows: dict[str, Rows[Place]] = {}
        self._scalar_rows: Rows[OltWorld] = Rows(lambda _: SCALAR_INDEX, [world])
        self._interface_rows: Rows[Interface] = Rows(lambda each: each.number, build_interfaces(world, definition))
        self._interface_of = {each.place: each for each in self._interface_rows.owners if each.port}
        self.waiting = WaitingRoom(moment)
        self._definition = definition
        columns = {column.prefix: column for column in self._system_columns(identity)}
        for vendor_column in (*definition.columns.values(), *standard.columns_of(Scope.INTERFACE)):
            if vendor_column.shares is None and vendor_column.oid not in columns:
                columns[vendor_column.oid] = self._build(vendor_column)
        self.view = MibView(list(columns.values()))
        world.listeners.append(self)

    def refresh_uptime(self) -> None:
        """Encode sysUpTime anew: it is the one value that is different at every question."""
        self._scalar_rows.forget(self._world)

    def onu_changed(self, onu: Onu) -> None:
        for rows in self._onu_rows.values():
            rows.forget(onu)

    def onu_added(self, onu: Onu) -> None:
        for rows in self._onu_rows.values():
            rows.insert(onu)

    def onu_removed(self, onu: Onu) -> None:
        for rows in self._onu_rows.values():
            rows.remove(onu)

    def port_changed(self, port: PonPort) -> None:
        for rows in self._port_rows.values():
            rows.forget(port)
        self._interface_rows.forget(self._interface_of[port.place])

    def let_wait(self, onu: Onu) -> None:
        """Let an ONU wait for its authorisation."""
        self.waiting.add(onu)
        self.port_changed(self._world.port_of(onu))

    def authorise(self, onu: Onu) -> None:
        """Serve an ONU that waited: it gets an id on its port."""
        self.waiting.remove(onu)
        self._world.bring_back(onu, onu.place.pon)

    def _system_columns(self, identity: Identity) -> list[Column[OltWorld]]:
        values: dict[Oid, Callable[[OltWorld], Typed]] = {
            SYS_DESCR: lambda _: (Tag.OCTET_STRING, identity.description.encode()),
            SYS_OBJECT_ID: lambda _: (Tag.OBJECT_IDENTIFIER, identity.object_id),
            SYS_UP_TIME: lambda world: (Tag.TIMETICKS, self._moment.uptime_ticks),
            SYS_NAME: lambda world: (Tag.OCTET_STRING, world.name.encode()),
        }
        return [Column(oid[:-1], self._scalar_rows, read) for oid, read in values.items()]

    def _build(self, column: VendorColumn) -> Column[Any]:
        scope = column.index.scope
        if scope is Scope.ONU:
            return self._onu_column(column)
        if scope is Scope.PON:
            return self._port_column(column)
        if scope is Scope.INTERFACE:
            return self._interface_column(column)
        if scope in (Scope.BOARD, Scope.PART):
            return self._place_column(column)
        if scope is Scope.AUTOFIND:
            return self._autofind_column(column)
        return Column(column.oid, self._scalar_rows, self._reading(column, None, lambda _: 0), _kind(column))

    def _onu_column(self, column: VendorColumn) -> Column[Any]:
        index = column.index
        forms = self._forms_in(column.key)
        if forms:
            return self._naming_column(column, forms)
        rows = self._onu_rows.get(index.name)
        if rows is None:
            rows = self._onu_rows[index.name] = Rows(self._numbers.by(index), self._world.onus)
        read = self._reading(column, self._onu_reading(column.key), lambda onu: onu.salt)
        shared = [other for other in self._definition.columns.values() if other.shares == column.key]
        agreeing = self._agreeing(column, read, shared)
        garbled = impossible_value(column, *shared)
        return Column(column.oid, rows, lambda onu: garbled if onu.is_garbled else agreeing(onu), _kind(column))

    def _forms_in(self, key: str) -> dict[Scope, NameForm]:
        """Return how a column names ONUs and ports, where the family's rows are known by their names."""
        learned = [index for index in self._definition.indexes.values() if isinstance(index, LearnedIndex)]
        return {index.scope: index.forms[0] for index in learned if index.forms and index.learned_from == key}

    def _naming_column(self, column: VendorColumn, forms: dict[Scope, NameForm]) -> Column[Onu | PonPort]:
        """Name ONUs and ports side by side, as interfaces are named; the OLT knows their names whatever they tell."""
        ports = self._world.ports.values() if Scope.PON in forms else ()
        rows = self._onu_rows[f"{column.key} names"] = Rows(self._numbers.of, [*ports, *self._world.onus])

        def read(owner: Onu | PonPort) -> Typed:
            scope = Scope.PON if isinstance(owner, PonPort) else Scope.ONU
            return column.encode(forms[scope].write(owner.place))

        return Column(column.oid, rows, read, _kind(column))

    def _onu_reading(self, key: str) -> Callable[[Onu], Candidates] | None:
        # Where a family has no description, operators put it into the name or the id.
        if key == OLT_NAME or (key == "onu.name" and not self._definition.has_column("onu.description")):
            key = "onu.description"
        return self._moment.onu_reading(key)

    def _agreeing(
        self, column: VendorColumn, read: Callable[[Onu], Typed | None], others: list[VendorColumn]
    ) -> Callable[[Onu], Typed | None]:
        """Of several meanings in one value send the most telling one that does not contradict the column itself."""
        if not others:
            return read
        readings = [self._reading(other, self._onu_reading(other.key), lambda onu: onu.salt) for other in others]

        def read_agreeing(onu: Onu) -> Typed | None:
            plain = read(onu)
            wanted = column.decode(*plain) if plain else None
            told = (reading(onu) for reading in readings)
            return next((typed for typed in told if typed and column.decode(*typed) == wanted), plain)

        return read_agreeing

    def _port_column(self, column: VendorColumn) -> Column[PonPort]:
        index = column.index
        rows = self._port_rows.get(index.name)
        if rows is None:
            rows = self._port_rows[index.name] = Rows(self._port_number(index), self._world.ports.values())
        known = self._count_waiting if column.key == "pon.autofind_count" else port_reading(column.key)
        read = self._reading(column, known, lambda port: hash(port.place) & 0xFFFF)
        return Column(column.oid, rows, read, _kind(column))

    def _port_number(self, index: Index) -> Callable[[PonPort], Oid]:
        return self._numbers.of if isinstance(index, LearnedIndex) else lambda port: index.encode(port.place)

    def _count_waiting(self, port: PonPort) -> Candidates:
        return (self.waiting.count(port.place),)

    def _interface_column(self, column: VendorColumn) -> Column[Interface]:
        read = self._reading(column, interface_reading(column.key), lambda each: hash(each.place) & 0xFFFF)
        return Column(column.oid, self._interface_rows, read, _kind(column))

    def _place_column(self, column: VendorColumn) -> Column[Place]:
        index = column.index
        rows = self._place_rows.get(index.name)
        if rows is None:
            places = PARTS if index.scope is Scope.PART else self._world.shape.boards
            rows = self._place_rows[index.name] = Rows(index.encode, places)
        read = self._reading(column, board_reading(column.key), lambda place: place.slot)
        return Column(column.oid, rows, read, _kind(column))

    def _autofind_column(self, column: VendorColumn) -> Column[Onu]:
        read = self._reading(column, self.waiting.reading(column.key), lambda onu: onu.salt)
        return Column(column.oid, self.waiting.rows(column.index), read, _kind(column))

    def _reading(
        self, column: VendorColumn, known: Callable[[Owner], Candidates] | None, salt_of: Callable[[Owner], int]
    ) -> Callable[[Owner], Typed | None]:
        def read(owner: Owner) -> Typed | None:
            if known is not None:
                return encode_first(column, known(owner))
            return encode_first(column, plain_reading(column, salt=salt_of(owner), at=self._world.now))

        return read


def encode_first(column: VendorColumn, candidates: Candidates) -> Typed | None:
    """Encode the first candidate that the column can carry; None when it can carry none of them."""
    for candidate in candidates:
        try:
            return column.encode(candidate)
        except ValueError:
            continue
    return None


def impossible_value(*columns: VendorColumn) -> Typed:
    """Return a value that none of the columns of one OID can mean, of their own type where there is one."""
    return next(typed for typed in IMPOSSIBLE if all(_is_refused(column, typed) for column in columns))


def _is_refused(column: VendorColumn, typed: Typed) -> bool:
    return column.decode(*typed).reason in (Reject.UNKNOWN_ENUM, Reject.OUT_OF_RANGE, Reject.WRONG_TYPE)


def _kind(column: VendorColumn) -> ColumnKind:
    if column.rule.tag is Tag.COUNTER64:
        return ColumnKind.COUNTER64
    if column.cost is Cost.LIVE:
        return ColumnKind.LIVE
    return ColumnKind.DRIFTING if column.cost is Cost.COUNTER else ColumnKind.FIXED

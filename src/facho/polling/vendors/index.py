"""Table indexes as data: which bits of an OID suffix say frame, slot, port and ONU, both ways.

The sub-identifiers of a suffix are read as one number of 32 bits each, so that a packed ifIndex and a plain
sub-identifier are the same thing: a bit field. Every bit that is no field has to match, or the index is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from facho.polling.snmp.ber import Oid
from facho.polling.vendors.vocabulary import Scope

SUB_ID_BITS = 32
_MAX_SUB_ID = 0xFFFF_FFFF


class Place(NamedTuple):
    """Where a row belongs. Fields that its table's scope does not use are 0."""

    frame: int = 0
    slot: int = 0
    port: int = 0
    onu: int = 0

    @property
    def pon(self) -> "Place":
        """The PON port of an ONU's place."""
        return Place(self.frame, self.slot, self.port)


@dataclass(frozen=True, slots=True)
class BitField:
    """Bits of one sub-identifier: a field of the place (value = bits + add) or, without a name, a constant."""

    name: str | None
    shift: int = 0
    bits: int = SUB_ID_BITS
    add: int = 0
    const: int = 0
    low: int | None = None
    high: int | None = None

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    @property
    def values(self) -> range:
        """The values that this field can take in a valid index."""
        low = self.add if self.low is None else max(self.add, self.low)
        high = self.add + self.mask if self.high is None else min(self.add + self.mask, self.high)
        return range(low, high + 1)


@dataclass(frozen=True, slots=True)
class Index:
    """One index formula. `decode` gives None for any suffix that this formula cannot have made."""

    name: str
    scope: Scope
    length: int
    fields: Mapping[str, BitField]
    fixed: int
    decode: Callable[[Oid], Place | None] = field(repr=False, compare=False)

    def encode(self, place: Place) -> Oid:
        """Return the suffix of a place; ValueError when it does not fit the formula."""
        number = self.fixed
        for name, bits in self.fields.items():
            value = getattr(place, name)
            if value not in bits.values:
                raise ValueError(f"{name} {value} does not fit index {self.name}")
            number |= (value - bits.add) << bits.shift
        shifts = range((self.length - 1) * SUB_ID_BITS, -1, -SUB_ID_BITS)
        return tuple(number >> shift & _MAX_SUB_ID for shift in shifts)

    def encode_end(self, port: Place) -> Oid:
        """Return the highest suffix that an ONU of this port can have; ValueError when the port does not fit."""
        onu = self.fields.get("onu")
        return self.encode(port._replace(onu=onu.values[-1]) if onu else port)


def write_place(index: Index, place: Place) -> str:
    """Write where a row belongs as the pages do: an ONU and a PON port in full, others by what their index has."""
    if index.scope in (Scope.ONU, Scope.PON):
        return "/".join(map(str, place if index.scope is Scope.ONU else place[:3]))
    return "/".join(str(value) for name, value in zip(Place._fields, place, strict=True) if name in index.fields)


def build_index(name: str, scope: Scope, components: Sequence[Sequence[BitField]]) -> Index:
    """Compile a formula from the bit fields of each sub-identifier; ValueError when they contradict each other."""
    free, fixed = (1 << SUB_ID_BITS * len(components)) - 1, 0
    fields: dict[str, BitField] = {}
    for bits in _absolute(components):
        area = bits.mask << bits.shift
        if area & ~free:
            raise ValueError(f"bits {bits.shift}..{bits.shift + bits.bits - 1} are used twice")
        free &= ~area
        if bits.name is None:
            fixed |= bits.const << bits.shift
        elif bits.name in fields:
            raise ValueError(f"field {bits.name} appears twice")
        else:
            fields[bits.name] = bits
    variable = sum(bits.mask << bits.shift for bits in fields.values())
    must_match = (1 << SUB_ID_BITS * len(components)) - 1 - variable
    decode = _decoder(len(components), fields, must_match, fixed)
    return Index(name, scope, len(components), fields, fixed, decode)


def _absolute(components: Sequence[Sequence[BitField]]) -> list[BitField]:
    """Move each field to its place in the number that the whole suffix makes."""
    moved = []
    for position, fields in enumerate(reversed(components)):
        for bits in fields:
            if bits.shift + bits.bits > SUB_ID_BITS or bits.const > bits.mask:
                raise ValueError(f"field {bits.name or bits.const} does not fit a sub-identifier")
            shift = bits.shift + position * SUB_ID_BITS
            moved.append(BitField(bits.name, shift, bits.bits, bits.add, bits.const, bits.low, bits.high))
    return moved


def _decoder(length: int, fields: Mapping[str, BitField], must_match: int, fixed: int) -> Callable[[Oid], Place | None]:
    unused = BitField(None, bits=0)
    frame, slot, port, onu = (fields.get(name, unused) for name in Place._fields)
    # Locals of a closure are the fastest constants there are: this runs once for every row of every walk.
    frame_shift, frame_mask, frame_add = frame.shift, frame.mask, frame.add
    slot_shift, slot_mask, slot_add = slot.shift, slot.mask, slot.add
    port_shift, port_mask, port_add = port.shift, port.mask, port.add
    onu_shift, onu_mask, onu_add = onu.shift, onu.mask, onu.add
    limits = tuple(
        (Place._fields.index(name), bits.values) for name, bits in fields.items() if len(bits.values) <= bits.mask
    )

    def decode(suffix: Oid) -> Place | None:
        if len(suffix) != length:
            return None
        number = 0
        for sub_id in suffix:
            if sub_id > _MAX_SUB_ID:
                return None
            number = number << 32 | sub_id
        if number & must_match != fixed:
            return None
        place = Place(
            (number >> frame_shift & frame_mask) + frame_add,
            (number >> slot_shift & slot_mask) + slot_add,
            (number >> port_shift & port_mask) + port_add,
            (number >> onu_shift & onu_mask) + onu_add,
        )
        for position, allowed in limits:
            if place[position] not in allowed:
                return None
        return place

    return decode

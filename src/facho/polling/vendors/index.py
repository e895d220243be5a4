"""Table indexes as data: which bits of an OID suffix say frame, slot, port and ONU, both ways.

The sub-identifiers of a suffix are read as one number of 32 bits each, so that a packed ifIndex and a plain
sub-identifier are the same thing: a bit field. Every bit that is no field has to match, or the index is refused.

Where the numbers mean nothing by themselves, a column of the device identifies each row. Devices renumber such rows at
any time, so a LearnedIndex is learned when an operation begins and is never stored.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from string import Formatter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import NOWHERE, pack_place, pack_places
from facho.polling.snmp.ber import Oid
from facho.polling.snmp.walk import ColumnRows
from facho.polling.vendors.decoders import decode_serial, encode_serial
from facho.polling.vendors.vocabulary import Reject, Scope, Typed

SUB_ID_BITS = 32
_MAX_SUB_ID = 0xFFFF_FFFF
# Numbers among the texts of an index; no chassis counts further.
_SPELLED_BITS = 15
_MAX_SPELLED = (1 << _SPELLED_BITS) - 1


class Place(NamedTuple):
    """The place of a row. Fields outside its table's scope are 0."""

    frame: int = 0
    slot: int = 0
    port: int = 0
    onu: int = 0

    @property
    def pon(self) -> "Place":
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
    # Not compared when read; `const` is what is sent.
    is_any: bool = False

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    @property
    def values(self) -> range:
        low = self.add if self.low is None else max(self.add, self.low)
        high = self.add + self.mask if self.high is None else min(self.add + self.mask, self.high)
        return range(low, high + 1)


class _SubId(NamedTuple):
    """What one sub-identifier must be: these bits of it, masked, are fixed."""

    mask: int
    fixed: int


class _Part(NamedTuple):
    """Where a part of the place is, and which of its values are true."""

    position: int
    shift: int
    mask: int
    add: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    scope: Scope
    length: int
    fields: Mapping[str, BitField]
    fixed: int
    # Whether a place has one suffix, so that its row can be asked for.
    is_exact: bool = True
    sub_ids: tuple[_SubId, ...] = field(default=(), repr=False, compare=False)
    # Of frame, slot, port and ONU; None for what the index does not contain.
    parts: tuple[_Part | None, ...] = field(default=(), repr=False, compare=False)

    def decode(self, suffix: Oid) -> Place | None:
        """Return the place of a suffix, None if it does not match the formula."""
        if len(suffix) != self.length or max(suffix) > _MAX_SUB_ID:
            return None
        place, is_valid = self._read(suffix)
        return Place(*place) if is_valid else None

    def decode_all(self, rows: ColumnRows) -> NDArray[np.int64]:
        """Return the packed place of every row, NOWHERE for a suffix that does not match the formula."""
        is_long, sub_ids = suffixes_of_length(rows, self.length)
        place, is_valid = self._read(sub_ids.T.astype(np.int64))
        return spread(is_long, pack_places(place, is_valid))

    def _read(self, sub_ids: Any) -> tuple[list[Any], Any]:
        """Read a suffix, or the columns of many: the parts of the place, and whether they can be true."""
        place, is_valid = [], True
        for sub_id, expected in zip(sub_ids, self.sub_ids, strict=True):
            is_valid = is_valid & (sub_id & expected.mask == expected.fixed)
        for part in self.parts:
            value = 0
            if part is not None:
                value = (sub_ids[part.position] >> part.shift & part.mask) + part.add
                is_valid = is_valid & (value >= part.low) & (value <= part.high)
            place.append(value)
        return place, is_valid

    def encode(self, place: Place) -> Oid:
        """Return the suffix of a place; ValueError if it does not fit the formula."""
        number = self.fixed
        for name, bits in self.fields.items():
            value = getattr(place, name)
            if value not in bits.values:
                raise ValueError(f"{name} {value} does not fit index {self.name}")
            number |= (value - bits.add) << bits.shift
        shifts = range((self.length - 1) * SUB_ID_BITS, -1, -SUB_ID_BITS)
        return tuple(number >> shift & _MAX_SUB_ID for shift in shifts)

    def encode_end(self, port: Place) -> Oid:
        """Return the highest suffix of an ONU on this port; ValueError if the port does not fit."""
        onu = self.fields.get("onu")
        return self.encode(port._replace(onu=onu.values[-1]) if onu else port)


@dataclass(frozen=True, slots=True)
class EitherIndex(Index):
    """Several formulas of one length, no suffix and no place of which fits two; firmware decides which is in use."""

    formulas: tuple[Index, ...] = ()

    def decode(self, suffix: Oid) -> Place | None:
        found = (formula.decode(suffix) for formula in self.formulas)
        return next((place for place in found if place is not None), None)

    def decode_all(self, rows: ColumnRows) -> NDArray[np.int64]:
        """Return the packed places by the formula that each suffix matches; no place is less than NOWHERE."""
        places = np.full(len(rows), NOWHERE, np.int64)
        for formula in self.formulas:
            places = np.maximum(places, formula.decode_all(rows))
        return places

    def encode(self, place: Place) -> Oid:
        for formula in self.formulas[:-1]:
            if _has_no_more(formula, place) and all(
                getattr(place, name) in bits.values for name, bits in formula.fields.items()
            ):
                return formula.encode(place)
        return self.formulas[-1].encode(place)

    def encode_end(self, port: Place) -> Oid:
        ends: list[Oid] = []
        for formula in self.formulas:
            try:
                ends.extend([formula.encode_end(port)] if _has_no_more(formula, port) else ())
            except ValueError:
                continue
        if not ends:
            raise ValueError(f"{'/'.join(map(str, port[:3]))} does not fit index {self.name}")
        return max(ends)


def _has_no_more(formula: Index, place: Place) -> bool:
    """Return whether the place is 0 outside the fields of a formula."""
    return all(not value or name in formula.fields for name, value in zip(Place._fields, place, strict=True))


def build_either(name: str, scope: Scope, formulas: Sequence[Index]) -> EitherIndex:
    """Join formulas, the usual one first; ValueError if their suffixes differ in length."""
    first = formulas[0]
    if any(formula.length != first.length for formula in formulas):
        raise ValueError("the formulas differ in length")

    is_exact = all(formula.is_exact for formula in formulas)
    return EitherIndex(name, scope, first.length, first.fields, first.fixed, is_exact, formulas=tuple(formulas))


@dataclass(frozen=True, slots=True)
class BasedIndex(Index):
    """A formula of one sub-identifier whose rows are counted from another number than 0."""

    base: int = 0

    def encode(self, place: Place) -> Oid:
        return (Index.encode(self, place)[0] + self.base,)

    def _read(self, sub_ids: Any) -> tuple[list[Any], Any]:
        counted = sub_ids[0] - self.base
        place, is_valid = Index._read(self, [counted])
        return place, is_valid & (counted >= 0)


# A field with a step is read as if it began at this bit of its sub-identifier, below which the others are.
STEP_SHIFT = 20
STEP_BITS = SUB_ID_BITS - STEP_SHIFT


@dataclass(frozen=True, slots=True)
class SteppedIndex(Index):
    """A formula whose first sub-identifier counts a field in decimal steps: 1000003 is 1 and 3 by a step of 1000000."""

    step: int = 1

    def encode(self, place: Place) -> Oid:
        first, *rest = Index.encode(self, place)
        return ((first >> STEP_SHIFT) * self.step + (first & (1 << STEP_SHIFT) - 1), *rest)

    def _read(self, sub_ids: Any) -> tuple[list[Any], Any]:
        first = sub_ids[0] // self.step << STEP_SHIFT | sub_ids[0] % self.step
        place, is_valid = Index._read(self, [first, *sub_ids[1:]])
        return place, is_valid & (sub_ids[0] < self.step << STEP_BITS)


Formula = tuple[str, Scope, int, Mapping[str, BitField], int, bool, tuple[_SubId, ...], tuple[_Part | None, ...]]


def parts_of(index: Index) -> Formula:
    """Return the fields of a formula, to build another kind of index on it."""
    numbers = (index.name, index.scope, index.length, index.fields, index.fixed)
    return (*numbers, index.is_exact, index.sub_ids, index.parts)


def count_from(index: Index, base: int) -> BasedIndex:
    """Return the index with `base` added to its only sub-identifier; ValueError if it has several."""
    if index.length != 1:
        raise ValueError("rows are counted by one number only")
    return BasedIndex(*parts_of(index), base=base)


class SpelledPart(NamedTuple):
    """A part of an index that is spelled out: a number, or a text with its length before it unless it is the rest."""

    field: str
    is_text: bool = False
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class SpelledIndex(Index):
    """An index with texts in it, such as the name of a sensor; the place has the numbers among them, else 0."""

    spelling: tuple[SpelledPart, ...] = ()

    def read(self, suffix: Oid) -> list[str] | None:
        """Return the parts of a suffix as texts, None if it is spelled in another way."""
        parts, rest = [], suffix
        for part in self.spelling:
            if not rest:
                return None
            size = 1 if not part.is_text else len(rest) if part.is_rest else rest[0] + 1
            spelled, rest = rest[0 if part.is_rest or not part.is_text else 1 : size], rest[size:]
            if not spelled or (part.is_text and not all(0x20 <= letter < 0x7F for letter in spelled)):
                return None
            parts.append("".join(map(chr, spelled)) if part.is_text else str(spelled[0]))
        return parts if not rest else None

    def decode(self, suffix: Oid) -> Place | None:
        parts = self.read(suffix)
        if parts is None:
            return None
        fields = zip((part.field for part in self.spelling), parts, strict=True)
        return Place(**{name: int(text) for name, text in fields if text.isdecimal() and int(text) <= _MAX_SPELLED})

    def encode(self, place: Place) -> Oid:
        suffix: list[int] = []
        for part in self.spelling:
            number = getattr(place, part.field)
            letters = list(str(number).encode())
            suffix += [number] if not part.is_text else letters if part.is_rest else [len(letters), *letters]
        return tuple(suffix)


def build_spelled(name: str, scope: Scope, spelling: Sequence[SpelledPart]) -> SpelledIndex:
    """Build an index with texts; ValueError if a text has no end."""
    if any(part.is_rest for part in spelling[:-1]):
        raise ValueError("only the last text can be the rest of an index")
    fields = {part.field: BitField(part.field, bits=_SPELLED_BITS) for part in spelling}
    return SpelledIndex(name, scope, len(spelling), fields, 0, is_exact=False, spelling=tuple(spelling))


def write_row(index: Index, suffix: Oid, place: Place) -> str:
    """Format the place of a row, in the words of its index if it has some."""
    parts = index.read(suffix) if isinstance(index, SpelledIndex) else None
    return write_place(index, place) if parts is None else "/".join(parts)


def write_place(index: Index, place: Place) -> str:
    """Format a row's place: an ONU or PON port in full, others by the parts of their index."""
    if index.scope in (Scope.ONU, Scope.PON):
        return "/".join(map(str, place if index.scope is Scope.ONU else place[:3]))
    return "/".join(str(value) for name, value in zip(Place._fields, place, strict=True) if name in index.fields)


def build_index(name: str, scope: Scope, components: Sequence[Sequence[BitField]]) -> Index:
    """Compile a formula from the bit fields of each sub-identifier; ValueError if they contradict."""
    free, fixed, ignored = (1 << SUB_ID_BITS * len(components)) - 1, 0, 0
    fields: dict[str, BitField] = {}
    for bits in _absolute(components):
        area = bits.mask << bits.shift
        if area & ~free:
            raise ValueError(f"bits {bits.shift}..{bits.shift + bits.bits - 1} are used twice")
        free &= ~area
        if bits.name is None:
            fixed |= bits.const << bits.shift
            ignored |= area if bits.is_any else 0
        elif bits.name in fields:
            raise ValueError(f"field {bits.name} appears twice")
        else:
            fields[bits.name] = bits
    parts = tuple(_part(fields[name], len(components)) if name in fields else None for name in Place._fields)
    sub_ids = []
    for position in range(len(components)):
        shift = (len(components) - 1 - position) * SUB_ID_BITS
        variable = sum(part.mask << part.shift for part in parts if part and part.position == position)
        compared = _MAX_SUB_ID - variable & ~(ignored >> shift)
        sub_ids.append(_SubId(compared, fixed >> shift & compared))
    return Index(name, scope, len(components), fields, fixed, not ignored, tuple(sub_ids), parts)


def _part(bits: BitField, length: int) -> _Part:
    position, values = length - 1 - bits.shift // SUB_ID_BITS, bits.values
    return _Part(position, bits.shift % SUB_ID_BITS, bits.mask, bits.add, values[0], values[-1])


def suffixes_of_length(rows: ColumnRows, length: int) -> tuple[NDArray[np.bool_], NDArray[np.uint32]]:
    """Return which suffixes have so many sub-identifiers, and these, one row for each."""
    sizes = np.diff(rows.suffix_ends, prepend=0)
    is_long = sizes == length
    starts = rows.suffix_ends[is_long] - length
    return is_long, rows.suffix_ids[starts[:, np.newaxis] + np.arange(length)]


def spread(is_long: NDArray[np.bool_], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of rows of the right length among all rows; the others are NOWHERE."""
    everywhere = np.full(len(is_long), NOWHERE, np.int64)
    everywhere[is_long] = places
    return everywhere


def _absolute(components: Sequence[Sequence[BitField]]) -> list[BitField]:
    """Move each field to its position in the number the whole suffix makes."""
    moved = []
    for position, fields in enumerate(reversed(components)):
        for bits in fields:
            if bits.shift + bits.bits > SUB_ID_BITS or bits.const > bits.mask:
                raise ValueError(f"field {bits.name or bits.const} does not fit a sub-identifier")
            shift = bits.shift + position * SUB_ID_BITS
            moved.append(replace(bits, shift=shift))
    return moved


# No chassis counts further than that.
_NUMBER = r"(\d{1,5})"
_NUMBER_BITS = 15
# So many hexadecimal digits at the end of a serial tell the ONUs of one OLT apart.
_SERIAL_DIGITS = 6
# A slot, the length, and the octets of a serial.
_SLOT_AND_OCTETS = 10
_MAX_OCTET = 0xFF
_SERIAL = re.compile(rf"\w{{4,}}[0-9A-Fa-f]{{{_SERIAL_DIGITS}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NameForm:
    """A name form such as `GPON{slot}/{port}:{onu}`, both ways."""

    template: str
    fields: tuple[str, ...]
    pattern: re.Pattern[str]

    def read(self, name: str) -> Place | None:
        match = self.pattern.fullmatch(name)
        return Place(**dict(zip(self.fields, map(int, match.groups()), strict=True))) if match else None

    def write(self, place: Place) -> str:
        return self.template.format(**place._asdict())


def read_form(template: str) -> NameForm:
    """Compile a form; ValueError if it has an unknown field."""
    parts = list(Formatter().parse(template))
    fields = tuple(name for _, name, _, _ in parts if name is not None)
    if not fields or not set(fields) <= set(Place._fields) or len(set(fields)) < len(fields):
        raise ValueError(f"{template!r} must name some of {', '.join(Place._fields)}, each once")
    pattern = "".join(re.escape(text) + (_NUMBER if name is not None else "") for text, name, _, _ in parts)
    return NameForm(template, fields, re.compile(pattern, re.ASCII))


@dataclass(frozen=True, slots=True)
class LearnedIndex(Index):
    """An index that knows only the rows it has learned.

    With forms, the column has the names of the rows. Without, it has the number of their PON port, a lower one than the
    first while unknown, and the index itself spells the serial.
    """

    learned_from: str = ""
    forms: tuple[NameForm, ...] = ()
    first_port: int = 1
    suffixes: Mapping[Place, Oid] | None = None
    ends: Mapping[Place, Oid] = field(default_factory=dict)
    places: Mapping[Oid, Place] = field(default_factory=dict)

    def decode(self, suffix: Oid) -> Place | None:
        return self.places.get(suffix)

    def decode_all(self, rows: ColumnRows) -> NDArray[np.int64]:
        """Return the packed place of every row, NOWHERE for one that was not learned."""
        is_long, wanted = suffixes_of_length(rows, self.length)
        if not self.places:
            return np.full(len(rows), NOWHERE, np.int64)
        # The mapping is in the order of its suffixes.
        known, asked = _keys(np.array(list(self.places), np.uint32)), _keys(wanted)
        packed = np.array([pack_place(*place) for place in self.places.values()], np.int64)
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return spread(is_long, np.where(known[at] == asked, packed[at], NOWHERE))

    def encode(self, place: Place) -> Oid:
        """Return the suffix of a place, or an unused one for an ONU that left; ValueError before learning."""
        if self.suffixes is None:
            raise ValueError(f"the rows of index {self.name} are known by {self.learned_from} only")
        return self.suffixes.get(place, (0,) * self.length)

    def encode_end(self, port: Place) -> Oid:
        """Return the highest suffix on a port; ValueError if no ONU is known there."""
        if port.pon not in self.ends:
            raise ValueError(f"no row of index {self.name} is known on {'/'.join(map(str, port[:3]))}")
        return self.ends[port.pon]

    def learn(self, naming: Mapping[Oid, Typed], last: Mapping[int, Place]) -> "LearnedIndex":
        """Return the index learned from a device; `last` has the former place of ONUs whose port is unknown now."""
        suffixes: dict[Place, Oid] = {}
        ends: dict[Place, Oid] = {}
        for suffix, value in sorted(naming.items()):
            place = self._place(suffix, value, last)
            # Of two rows with one name the first one stands.
            if len(suffix) == self.length and place is not None and place not in suffixes:
                suffixes[place] = ends[place.pon] = suffix
        places = {suffix: place for place, suffix in suffixes.items()}
        return replace(
            self,
            suffixes=MappingProxyType(suffixes),
            ends=MappingProxyType(ends),
            places=MappingProxyType(places),
        )

    def _place(self, suffix: Oid, value: Typed, last: Mapping[int, Place]) -> Place | None:
        if self.forms:
            found = (form.read(str(value)) for form in self.forms)
            return next((place for place in found if place is not None), None)
        number = onu_number(serial_of(suffix) or "")
        if number is None or not isinstance(value, int):
            return None
        return Place(port=value, onu=number) if value >= self.first_port else last.get(number)

    def spell(self, serial: str) -> Oid:
        """Return the suffix of a serial; ValueError if this index cannot spell it."""
        octets = encode_serial(serial) if self.length == _SLOT_AND_OCTETS else b""
        return (1, len(octets), *octets) if octets else spell_serial(serial)


@dataclass(frozen=True, slots=True)
class NamedPortsIndex(Index):
    """A formula whose port bits are disputed: where the device names its ports, only these names count."""

    learned_from: str = ""
    forms: tuple[NameForm, ...] = ()
    # The number of a port in the formula by its number on the device, and the other way round.
    by_formula: Mapping[int, int] = field(default_factory=dict)
    on_device: Mapping[int, int] = field(default_factory=dict)

    def decode(self, suffix: Oid) -> Place | None:
        """Return the place by the name of its port, or by the formula if no port has one."""
        if self.by_formula and suffix:
            suffix = (self.by_formula.get(suffix[0], _MAX_SUB_ID + 1), *suffix[1:])
        return Index.decode(self, suffix)

    def encode(self, place: Place) -> Oid:
        """Return the suffix of a place, an unused one for a port that the device does not name."""
        first, *rest = Index.encode(self, place)
        return (self.on_device.get(first, 0) if self.by_formula else first, *rest)

    def learn(self, naming: Mapping[Oid, Typed], _last: Mapping[int, Place]) -> "NamedPortsIndex":
        """Return the index for a device, given the names of its interfaces."""
        lowest = {name: bits.values[0] for name, bits in self.fields.items()}
        by_formula: dict[int, int] = {}
        for suffix, value in sorted(naming.items()):
            found = (form.read(str(value)) for form in self.forms)
            place = next((place for place in found if place is not None), None)
            if len(suffix) == 1 and place is not None:
                # A port that does not fit the formula cannot be told by it.
                with suppress(ValueError):
                    port = Place(onu=lowest.get("onu", 0))._replace(frame=place.frame, slot=place.slot, port=place.port)
                    by_formula.setdefault(suffix[0], Index.encode(self, port)[0])
        on_device = {number: device for device, number in by_formula.items()}
        return replace(self, by_formula=MappingProxyType(by_formula), on_device=MappingProxyType(on_device))

    def _read(self, sub_ids: Any) -> tuple[list[Any], Any]:
        if not self.by_formula or isinstance(sub_ids[0], int):
            return Index._read(self, sub_ids)
        numbers, at = np.unique(sub_ids[0], return_inverse=True)
        first = np.array([self.by_formula.get(int(number), -1) for number in numbers], np.int64)[at]
        place, is_valid = Index._read(self, [first, *sub_ids[1:]])
        return place, is_valid & (first >= 0)


def name_ports(index: Index, learned_from: str, forms: Iterable[str]) -> NamedPortsIndex:
    """Return a formula that heeds the names of ports; ValueError if a form is invalid or tells no port."""
    compiled = tuple(map(read_form, forms))
    if not compiled or any("port" not in form.fields or "onu" in form.fields for form in compiled):
        raise ValueError("the names must tell ports")
    return NamedPortsIndex(*parts_of(index), learned_from=learned_from, forms=compiled)


def build_learned_index(
    name: str, scope: Scope, length: int, learned_from: str, forms: Iterable[str], *, first_port: int = 1
) -> LearnedIndex:
    compiled = tuple(map(read_form, forms))
    names = compiled[0].fields if compiled else ("port", "onu")
    # People count ports and ONUs from 1; a simulated device does as well.
    lowest = {"port": first_port, "onu": 1}
    fields = {each: BitField(each, bits=_NUMBER_BITS, low=lowest.get(each, 0)) for each in names}
    return LearnedIndex(
        name,
        scope,
        length,
        fields,
        0,
        learned_from=learned_from,
        forms=compiled,
        first_port=first_port,
    )


def _keys(suffixes: NDArray[np.uint32]) -> NDArray[np.bytes_]:
    """Return suffixes of one length as octets that sort like them."""
    return suffixes.astype(">u4").view(f"S{4 * suffixes.shape[1]}").ravel()


def onu_number(serial: str) -> int | None:
    """Return the number of an ONU without an id, derived from its serial; None for an invalid serial."""
    return int(serial[-_SERIAL_DIGITS:], 16) if _SERIAL.fullmatch(serial) else None


def serial_of(suffix: Oid) -> str | None:
    """Read the serial an index spells: length-prefixed text, or after slot 1 its eight octets."""
    if len(suffix) == _SLOT_AND_OCTETS and suffix[:2] == (1, 8) and max(suffix) <= _MAX_OCTET:
        serial = decode_serial(bytes(suffix[2:]))
        return serial if not isinstance(serial, Reject) else None
    if not suffix or suffix[0] != len(suffix) - 1 or not all(0x20 < letter < 0x7F for letter in suffix[1:]):
        return None
    return bytes(suffix[1:]).decode("ascii")


def spell_serial(serial: str) -> Oid:
    return (len(serial), *serial.encode("ascii"))

"""Table indexes as data: which bits of an OID suffix say frame, slot, port and ONU, both ways.

The sub-identifiers of a suffix are read as one number of 32 bits each, so that a packed ifIndex and a plain
sub-identifier are the same thing: a bit field. Every bit that is no field has to match, or the index is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import NOWHERE, pack_places
from facho.polling.snmp.ber import Oid
from facho.polling.snmp.columns import ColumnRows
from facho.polling.vendors.vocabulary import Scope

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
    """Tell whether the place is 0 outside the fields of a formula."""
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


def count_in_steps(index: Index, step: int) -> SteppedIndex:
    """Return the index whose first sub-identifier has its highest field in steps."""
    return SteppedIndex(*parts_of(index), step=step)


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
            said, rest = rest[0 if part.is_rest or not part.is_text else 1 : size], rest[size:]
            if not said or (part.is_text and not all(0x20 <= letter < 0x7F for letter in said)):
                return None
            parts.append("".join(map(chr, said)) if part.is_text else str(said[0]))
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

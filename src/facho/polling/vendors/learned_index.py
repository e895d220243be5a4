"""Indexes whose numbers mean nothing by themselves: a column of the device identifies each row.

Devices renumber such rows at any time, so they are learned when an operation begins and are never stored.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from string import Formatter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import NOWHERE, pack_place
from facho.polling.snmp.ber import Oid
from facho.polling.snmp.columns import ColumnRows
from facho.polling.vendors.decoders import decode_serial, encode_serial
from facho.polling.vendors.index import BitField, Index, Place, parts_of, spread, suffixes_of_length
from facho.polling.vendors.vocabulary import Reject, Scope, Typed

# No chassis counts further than that.
_NUMBER = r"(\d{1,5})"
_NUMBER_BITS = 15
# So many hexadecimal digits at the end of a serial tell the ONUs of one OLT apart.
_SERIAL_DIGITS = 6
# A slot, the length, and the octets of a serial.
_SLOT_AND_OCTETS = 10
_MAX_OCTET = 0xFF
_MAX_SUB_ID = 0xFFFF_FFFF
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

    def learn(self, told: Mapping[Oid, Typed], last: Mapping[int, Place]) -> "LearnedIndex":
        """Return the index learned from a device; `last` has the former place of ONUs whose port is unknown now."""
        suffixes: dict[Place, Oid] = {}
        ends: dict[Place, Oid] = {}
        for suffix, value in sorted(told.items()):
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

    def learn(self, told: Mapping[Oid, Typed], _last: Mapping[int, Place]) -> "NamedPortsIndex":
        """Return the index for a device, given the names of its interfaces."""
        lowest = {name: bits.values[0] for name, bits in self.fields.items()}
        by_formula: dict[int, int] = {}
        for suffix, value in sorted(told.items()):
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

"""Indexes whose numbers mean nothing by themselves: a column of the device tells what each row is.

Devices give such numbers out anew as they like, so they are learned when an operation begins and are never stored.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from string import Formatter
from types import MappingProxyType

from facho.polling.snmp.ber import Oid
from facho.polling.vendors.index import BitField, Index, Place
from facho.polling.vendors.values import Typed
from facho.polling.vendors.vocabulary import Scope

# No chassis counts further than that.
_NUMBER = r"(\d{1,5})"
_NUMBER_BITS = 15
# So many hexadecimal digits at the end of a serial tell the ONUs of one OLT apart.
_SERIAL_DIGITS = 6
_SERIAL = re.compile(rf"\w{{4,}}[0-9A-Fa-f]{{{_SERIAL_DIGITS}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NameForm:
    """A form of names such as `GPON{slot}/{port}:{onu}`, both ways."""

    template: str
    fields: tuple[str, ...]
    pattern: re.Pattern[str]

    def read(self, name: str) -> Place | None:
        """Return the place that a name means, None when it has another form."""
        match = self.pattern.fullmatch(name)
        return Place(**dict(zip(self.fields, map(int, match.groups()), strict=True))) if match else None

    def write(self, place: Place) -> str:
        """Name a place."""
        return self.template.format(**place._asdict())


def read_form(template: str) -> NameForm:
    """Compile a form; ValueError when it names something that no place has."""
    parts = list(Formatter().parse(template))
    fields = tuple(name for _, name, _, _ in parts if name is not None)
    if not fields or not set(fields) <= set(Place._fields) or len(set(fields)) < len(fields):
        raise ValueError(f"{template!r} must name some of {', '.join(Place._fields)}, each once")
    pattern = "".join(re.escape(text) + (_NUMBER if name is not None else "") for text, name, _, _ in parts)
    return NameForm(template, fields, re.compile(pattern, re.ASCII))


@dataclass(frozen=True, slots=True)
class LearnedIndex(Index):
    """An index that knows the rows it was told of, and none before that.

    With forms, the column has the names of the rows. Without, it has the number of their PON port, 0 while it is not
    known, and the index itself spells the serial.
    """

    learned_from: str
    forms: tuple[NameForm, ...] = ()
    suffixes: Mapping[Place, Oid] | None = None
    ends: Mapping[Place, Oid] = field(default_factory=dict)

    def encode(self, place: Place) -> Oid:
        """Return the suffix of a place, or one that no row has: who left meanwhile can still be asked for.

        ValueError as long as nothing is learned.
        """
        if self.suffixes is None:
            raise ValueError(f"the rows of index {self.name} are known by {self.learned_from} only")
        return self.suffixes.get(place, (0,) * self.length)

    def encode_end(self, port: Place) -> Oid:
        """Return the highest suffix on a port; ValueError when nobody was told to be there."""
        if port.pon not in self.ends:
            raise ValueError(f"no row of index {self.name} is known on {'/'.join(map(str, port[:3]))}")
        return self.ends[port.pon]

    def learn(self, told: Mapping[Oid, Typed], last: Mapping[int, Place]) -> "LearnedIndex":
        """Return the index as a device told it; `last` says where an ONU was whose port is not known now."""
        suffixes: dict[Place, Oid] = {}
        ends: dict[Place, Oid] = {}
        for suffix, value in sorted(told.items()):
            place = self._place(suffix, value, last)
            # Of two rows with one name the first one stands.
            if place is not None and place not in suffixes:
                suffixes[place] = ends[place.pon] = suffix
        places = {suffix: place for place, suffix in suffixes.items()}
        return replace(self, decode=places.get, suffixes=MappingProxyType(suffixes), ends=MappingProxyType(ends))

    def _place(self, suffix: Oid, value: Typed, last: Mapping[int, Place]) -> Place | None:
        if self.forms:
            found = (form.read(str(value)) for form in self.forms)
            return next((place for place in found if place is not None), None)
        number = onu_number(serial_of(suffix) or "")
        if number is None or not isinstance(value, int):
            return None
        return Place(port=value, onu=number) if value else last.get(number)


def build_learned_index(name: str, scope: Scope, length: int, learned_from: str, forms: Iterable[str]) -> LearnedIndex:
    """Build an index that has learned nothing yet; ValueError when a form cannot be used."""
    compiled = tuple(map(read_form, forms))
    names = compiled[0].fields if compiled else ("port", "onu")
    # People count ports and ONUs from 1; a simulated device does as well.
    fields = {each: BitField(each, bits=_NUMBER_BITS, low=int(each in ("port", "onu"))) for each in names}
    return LearnedIndex(name, scope, length, fields, 0, lambda _: None, learned_from, compiled)


def onu_number(serial: str) -> int | None:
    """Return the number by which an ONU without an id is known on its OLT, None for what is no serial."""
    return int(serial[-_SERIAL_DIGITS:], 16) if _SERIAL.fullmatch(serial) else None


def serial_of(suffix: Oid) -> str | None:
    """Read the text that an index spells, its length first."""
    if not suffix or suffix[0] != len(suffix) - 1 or not all(0x20 < letter < 0x7F for letter in suffix[1:]):
        return None
    return bytes(suffix[1:]).decode("ascii")


def spell_serial(serial: str) -> Oid:
    """Spell a text as an index, its length first."""
    return (len(serial), *serial.encode("ascii"))

"""Notifications as data: what each trap of a family means and where its place is, both ways.

Varbinds are found by OID prefix, never by position: agents put headers before them. Nothing here raises for what a
device sent, and only objects that a definition names are read, so passwords of ONUs are never touched.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import Formatter
from types import MappingProxyType
from typing import Protocol

from facho.polling.domain.hints import HintPlace, Meaning, Said
from facho.polling.snmp.ber import Oid, Tag, Value, VarBind
from facho.polling.snmp.oid import GENERIC_TRAPS, IF_ENTRY, SNMP_TRAP_COMMUNITY, format_oid
from facho.polling.vendors.decoders import clean_text, decode_mac, decode_serial, encode_serial
from facho.polling.vendors.index import Index, NameForm, Place, read_form
from facho.polling.vendors.schema import Section
from facho.polling.vendors.vocabulary import Confidence, Reject, Scope

# The longest known notification has 17 varbinds and a header of 12. The rest of a larger one is not looked through.
MOST_VARBINDS = 64
_MOST_PART = 0x7FFF_FFFF
# The end of what began; a definition with one notification for both has only the beginning.
ENDED: Mapping[Meaning, Meaning] = {
    Meaning.ONU_DOWN: Meaning.ONU_UP,
    Meaning.ONU_LOS: Meaning.ONU_UP,
    Meaning.ONU_DYING_GASP: Meaning.ONU_UP,
    Meaning.PON_LOS: Meaning.PON_UP,
    Meaning.PON_DOWN: Meaning.PON_UP,
    Meaning.BOARD_DOWN: Meaning.BOARD_UP,
}
_ENDS = frozenset(ENDED.values())
_PARTS = Place._fields
# A port may be written as 0/1.
_DIGITS = re.compile(r"(?:\d{1,5}/){0,3}(\d{1,5})", re.ASCII)
# What a notification of a subject has to name, and what makes it one of another subject.
_SUBJECTS: Mapping[str, tuple[set[str], set[str]]] = {
    "onu": ({"port", "onu"}, set()),
    "pon": ({"port"}, {"onu"}),
    "board": ({"slot"}, {"port", "onu"}),
}
_MOST_NAME_LETTERS = 100
_PLACEHOLDERS = frozenset({"address", "port", "community"})


class PlaceRule(Protocol):
    """One way to find the place in the varbinds of a notification."""

    def read(self, varbinds: Sequence[VarBind]) -> HintPlace | None: ...

    def write(self, place: Place) -> list[VarBind]:
        """Return the varbinds of a place; ValueError if they cannot hold it."""


@dataclass(frozen=True, slots=True)
class PartsRule:
    """Each part is the value of an object: a number, or a text of digits."""

    objects: Mapping[str, tuple[Oid, ...]]
    # Numbers that stand for nothing, such as ONU 255.
    none: Mapping[str, frozenset[int]] = field(default_factory=dict)
    are_texts: bool = False

    def read(self, varbinds: Sequence[VarBind]) -> HintPlace | None:
        parts = {name: _number(_value_of(varbinds, oids)) for name, oids in self.objects.items()}
        return _to_place(parts, self.none)

    def write(self, place: Place) -> list[VarBind]:
        found = []
        for name, oids in self.objects.items():
            value = getattr(place, name)
            tag, written = (Tag.OCTET_STRING, str(value).encode()) if self.are_texts else (Tag.INTEGER, value)
            found.append(((*oids[0], 0), int(tag), written))
        return found


@dataclass(frozen=True, slots=True)
class IndexRule:
    """An index of the family decodes a value, or what follows a column in the OID of a varbind."""

    objects: tuple[Oid, ...]
    index: Index
    is_suffix: bool
    # Where the number of the ONU is, if the index does not have it.
    onu: tuple[Oid, ...] = ()
    none: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def read(self, varbinds: Sequence[VarBind]) -> HintPlace | None:
        suffix = self._suffix(varbinds)
        place = self.index.decode(suffix) if suffix else None
        if place is None:
            return None
        parts: dict[str, int | None] = {name: getattr(place, name) for name in self.index.fields}
        if self.onu:
            parts["onu"] = _number(_value_of(varbinds, self.onu))
        return _to_place(parts, self.none)

    def _suffix(self, varbinds: Sequence[VarBind]) -> Oid | None:
        if self.is_suffix:
            ends = ((len(oid), _find(varbinds, (oid,))) for oid in self.objects)
            return next((found[0][at : at + self.index.length] for at, found in ends if found), None)
        value = _value_of(varbinds, self.objects)
        # Some agents send an ifIndex above 2^31 as a negative number.
        return (value + (1 << 32) if value < 0 else value,) if isinstance(value, int) and value >= -(1 << 31) else None

    def write(self, place: Place) -> list[VarBind]:
        suffix = self.index.encode(place if "onu" in self.index.fields else place.pon)
        oid = (*self.objects[0], *suffix)
        if self.is_suffix:
            return [(oid, int(Tag.OCTET_STRING), b"")]
        number = suffix[0] - (1 << 32) if suffix[0] >> 31 else suffix[0]
        found: list[VarBind] = [(oid, int(Tag.INTEGER), number)]
        if self.onu:
            found.append(((*self.onu[0], *suffix, place.onu), int(Tag.INTEGER), place.onu))
        return found


@dataclass(frozen=True, slots=True)
class NameRule:
    """A text of the family names the place, such as `GPON{slot}/{port}:{onu}`."""

    objects: tuple[Oid, ...]
    forms: tuple[NameForm, ...]

    def read(self, varbinds: Sequence[VarBind]) -> HintPlace | None:
        for oid in self.objects:
            value = _value_of(varbinds, (oid,))
            words = clean_text(value).split() if isinstance(value, bytes) else []
            for form, word in ((form, word) for form in self.forms for word in words):
                place = form.read(word)
                if place is not None:
                    return HintPlace(**{name: getattr(place, name) for name in form.fields})
        return None

    def write(self, place: Place) -> list[VarBind]:
        wanted = {name for name in ("port", "onu") if getattr(place, name) or name == "port"}
        for form in self.forms:
            if wanted == {"port", "onu"} & set(form.fields):
                return [((*self.objects[0], 0), int(Tag.OCTET_STRING), form.write(place).encode())]
        raise ValueError(f"no name has the parts of {place}")


@dataclass(frozen=True, slots=True)
class OctetsRule:
    """A text of octets, one for each part in this order."""

    objects: tuple[Oid, ...]
    parts: tuple[str, ...]
    none: Mapping[str, frozenset[int]] = field(default_factory=dict)
    length: int = 8

    def read(self, varbinds: Sequence[VarBind]) -> HintPlace | None:
        value = _value_of(varbinds, self.objects)
        if not isinstance(value, bytes) or len(value) != self.length:
            return None
        return _to_place(dict(zip(self.parts, value, strict=False)), self.none)

    def write(self, place: Place) -> list[VarBind]:
        octets = bytes(getattr(place, name) for name in self.parts)
        return [((*self.objects[0], 0), int(Tag.OCTET_STRING), octets.ljust(self.length, b"\0"))]


@dataclass(frozen=True, slots=True)
class MeaningRule:
    """The value of an object decides the meaning; with a base it is an OID, and the number after the base counts."""

    objects: tuple[Oid, ...]
    meanings: Mapping[int, Meaning]
    names: Mapping[int, str] = field(default_factory=dict)
    ends: frozenset[int] = frozenset()
    base: Oid = ()

    def number(self, varbinds: Sequence[VarBind]) -> int | None:
        value = _value_of(varbinds, self.objects)
        if not self.base:
            return _number(value)
        if not isinstance(value, tuple) or value[: len(self.base)] != self.base:
            return None
        rest = value[len(self.base) :]
        return rest[0] if rest and not any(rest[1:]) else None

    def write(self, number: int) -> VarBind:
        oid = (*self.objects[0], 0)
        if self.base:
            return oid, int(Tag.OBJECT_IDENTIFIER), (*self.base, number)
        return oid, int(Tag.INTEGER), number


@dataclass(frozen=True, slots=True)
class EndRule:
    """The value of an object says whether this is the end of what an earlier one began."""

    oid: Oid
    begins: tuple[int, ...]
    # Without any, every number that is no beginning.
    ends: tuple[int, ...] = ()

    def is_end(self, varbinds: Sequence[VarBind]) -> bool:
        number = _number(_value_of(varbinds, (self.oid,)))
        return number is not None and (number in self.ends if self.ends else number not in self.begins)

    def write(self) -> VarBind:
        """Return the varbind of a beginning."""
        return (*self.oid, 0), int(Tag.INTEGER), self.begins[0]


@dataclass(frozen=True, slots=True)
class NotificationRule:
    """What one notification means; `by` decides before `meaning`, which stands for one without such a value."""

    name: str
    meaning: Meaning = Meaning.OTHER
    is_end: bool = False
    places: tuple[PlaceRule, ...] = ()
    by: tuple[MeaningRule, ...] = ()
    end_rules: tuple[EndRule, ...] = ()
    confidence: Confidence = Confidence.HIGH

    @property
    def meanings(self) -> frozenset[Meaning]:
        return frozenset(meaning for rule in self.by for meaning in rule.meanings.values()) or frozenset({self.meaning})

    def explain(self, varbinds: Sequence[VarBind]) -> Said:
        name, meaning, is_end = self._kind(varbinds)
        if any(rule.is_end(varbinds) for rule in self.end_rules):
            meaning, is_end = ENDED.get(meaning, meaning), True
        found = (rule.read(varbinds) for rule in self.places)
        place = next((place for place in found if place is not None), HintPlace())
        return Said(name, meaning, place, is_end=is_end)

    def _kind(self, varbinds: Sequence[VarBind]) -> tuple[str, Meaning, bool]:
        is_decided = False
        for rule in self.by:
            number = rule.number(varbinds)
            if number is not None and number in rule.meanings:
                meaning = rule.meanings[number]
                return rule.names.get(number, self.name), meaning, meaning in _ENDS or number in rule.ends
            is_decided = is_decided or number is not None
        return self.name, Meaning.OTHER if is_decided else self.meaning, self.is_end

    def write(self, meaning: Meaning, place: Place, *, is_end: bool) -> list[VarBind] | None:
        """Return varbinds that say this; None if this notification cannot, ValueError if the place does not fit."""
        numbers = (
            (rule, number)
            for rule in self.by
            for number, each in rule.meanings.items()
            if each is meaning and (number in rule.ends or each in _ENDS) is is_end
        )
        chosen = next(numbers, None)
        if chosen is None and (self.by or (self.meaning, self.is_end) != (meaning, is_end)):
            return None
        varbinds = [varbind for rule in self.places[:1] for varbind in rule.write(place)]
        if chosen is not None:
            varbinds = _with_value(varbinds, chosen[0].write(chosen[1]), chosen[0].objects[0])
        return [*varbinds, *(rule.write() for rule in self.end_rules)]


def _with_value(varbinds: list[VarBind], decided: VarBind, oid: Oid) -> list[VarBind]:
    """Add the value that decides; where its own OID names the place, the value belongs there."""
    at = next((at for at, each in enumerate(varbinds) if each[0][: len(oid)] == oid), None)
    if at is None:
        return [*varbinds, decided]
    return [*varbinds[:at], (varbinds[at][0], *decided[1:]), *varbinds[at + 1 :]]


@dataclass(frozen=True, slots=True)
class NotificationRules:
    """The notifications of a family by OID, and what all of them share."""

    rules: Mapping[Oid, NotificationRule] = field(default_factory=dict)
    # Also in the form that RFC 3584 makes of SNMPv1, where that differs.
    by_oid: Mapping[Oid, NotificationRule] = field(default_factory=dict)
    # For the notifications under an OID that the definition does not know by number.
    by_prefix: Mapping[Oid, NotificationRule] = field(default_factory=dict)
    # Where linkDown and linkUp name a port or an ONU.
    link: tuple[PlaceRule, ...] = ()
    serials: tuple[Oid, ...] = ()
    macs: tuple[Oid, ...] = ()
    secrets: tuple[Oid, ...] = ()
    # Words between @ in the tail of a community that say that this is an end.
    tail_ends: frozenset[str] = frozenset()
    # What an operator types to switch notifications on; empty if unknown.
    enable: tuple[str, ...] = ()
    confidence: Confidence | None = None

    def find(self, oid: Oid) -> NotificationRule | None:
        rule = self.by_oid.get(oid) or self._standard(oid)
        if rule is None and self.by_prefix:
            prefixes = (oid[:length] for length in range(len(oid) - 1, 0, -1))
            rule = next((self.by_prefix[prefix] for prefix in prefixes if prefix in self.by_prefix), None)
        return rule

    def _standard(self, oid: Oid) -> NotificationRule | None:
        rule = STANDARD.get(oid)
        return replace(rule, places=self.link) if rule in _LINKS and rule is not None else rule

    def enabling(self, *, address: str, port: int, community: str) -> tuple[str, ...]:
        """Return the lines to type at the OLT so that it sends its notifications there."""
        return tuple(line.format(address=address, port=port, community=community) for line in self.enable)


class NotificationSource(Protocol):
    """A family of devices: its definition."""

    @property
    def notifications(self) -> NotificationRules: ...


_LINK_DOWN, _LINK_UP = NotificationRule("linkDown"), NotificationRule("linkUp", is_end=True)
_LINKS = (_LINK_DOWN, _LINK_UP)
STANDARD: Mapping[Oid, NotificationRule] = {
    (*GENERIC_TRAPS, 1): NotificationRule("coldStart", Meaning.DEVICE_RESTART),
    (*GENERIC_TRAPS, 2): NotificationRule("warmStart", Meaning.DEVICE_RESTART),
    (*GENERIC_TRAPS, 3): _LINK_DOWN,
    (*GENERIC_TRAPS, 4): _LINK_UP,
    (*GENERIC_TRAPS, 5): NotificationRule("authenticationFailure"),
}
NO_RULES = NotificationRules()


def explain(definition: NotificationSource | None, oid: Oid, varbinds: Sequence[VarBind], tail: bytes = b"") -> Said:
    """Return what a notification says; OTHER with the dotted OID as its name if no rule knows it.

    `tail` is what follows the community of some brands after an @.
    """
    rules = definition.notifications if definition is not None else NO_RULES
    rule = rules.find(oid)
    if rule is None:
        return Said(format_oid(oid), Meaning.OTHER)
    found = varbinds[:MOST_VARBINDS]
    message = replace(rule.explain(found), serial=_serial(rules, found))
    if not message.name:
        message = replace(message, name=format_oid(oid))
    if oid[:-1] == GENERIC_TRAPS and message.place.port is not None:
        down = Meaning.PON_DOWN if message.place.onu is None else Meaning.ONU_DOWN
        message = replace(message, meaning=ENDED[down] if message.is_end else down)
    if tail and not rules.tail_ends.isdisjoint(tail.decode("latin-1").split("@")):
        message = replace(message, meaning=ENDED.get(message.meaning, message.meaning), is_end=True)
    return message


def hide_secrets(definition: NotificationSource | None, varbinds: Sequence[VarBind]) -> tuple[VarBind, ...]:
    """Return the varbinds that may be stored and shown: no password of an ONU and no community."""
    rules = definition.notifications if definition is not None else NO_RULES
    hidden = (*rules.secrets, SNMP_TRAP_COMMUNITY)
    return tuple(each for each in varbinds if not any(each[0][: len(oid)] == oid for oid in hidden))


def compose(
    definition: NotificationSource | None, meaning: Meaning, place: Place, serial: str = "", *, is_end: bool = False
) -> tuple[Oid, tuple[VarBind, ...]] | None:
    """Return the OID and varbinds by which a family says this, an end by its own meaning; None if it cannot."""
    rules = definition.notifications if definition is not None else NO_RULES
    candidates = [*rules.rules.items(), *((oid, rule) for oid, rule in STANDARD.items() if rule not in _LINKS)]
    if meaning in (Meaning.PON_DOWN, Meaning.PON_UP):
        number = 4 if is_end else 3
        candidates += [((*GENERIC_TRAPS, number), NotificationRule("", meaning, is_end, rules.link[:1]))]
    for oid, rule in candidates:
        try:
            varbinds = rule.write(meaning, place, is_end=is_end)
        except ValueError:
            continue
        if varbinds is None:
            continue
        if serial and meaning is Meaning.ONU_DISCOVERED and rules.serials:
            varbinds.append(((*rules.serials[0], 0), int(Tag.OCTET_STRING), encode_serial(serial)))
        message = explain(definition, oid, varbinds)
        if message.meaning is meaning and message.is_end is is_end and _is_named(message.place, meaning, place):
            return oid, tuple(varbinds)
    return None


def _is_named(named: HintPlace, meaning: Meaning, place: Place) -> bool:
    """Whether a notification of this meaning names as much of the place as it should, and all of it rightly."""
    parts = {name: getattr(named, name) for name in _PARTS if getattr(named, name) is not None}
    subject = "pon" if meaning is Meaning.ONU_DISCOVERED else meaning.partition("_")[0]
    needed, left_out = _SUBJECTS.get(subject, (set(), set()))
    is_right = all(getattr(place, name) == value for name, value in parts.items())
    return is_right and needed <= set(parts) and left_out.isdisjoint(parts)


def _serial(rules: NotificationRules, varbinds: Sequence[VarBind]) -> str:
    for oids, decode in ((rules.serials, decode_serial), (rules.macs, decode_mac)):
        value = _value_of(varbinds, oids) if oids else None
        if isinstance(value, bytes):
            # Some brands write what the serial is known by before it: `1,ZTEG00000001`.
            serial = decode(value if len(value) == 8 else value.rpartition(b",")[2])
            if not isinstance(serial, Reject):
                return serial
    return ""


def _find(varbinds: Sequence[VarBind], oids: Iterable[Oid]) -> VarBind | None:
    for oid in oids:
        size = len(oid)
        for varbind in varbinds:
            if varbind[0][:size] == oid:
                return varbind
    return None


def _value_of(varbinds: Sequence[VarBind], oids: Iterable[Oid]) -> Value:
    found = _find(varbinds, oids)
    return found[2] if found else None


def _number(value: Value) -> int | None:
    if isinstance(value, bytes):
        match = _DIGITS.fullmatch(clean_text(value[:32]))
        return int(match[1]) if match else None
    return value if isinstance(value, int) else None


def _to_place(parts: Mapping[str, int | None], none: Mapping[str, frozenset[int]]) -> HintPlace | None:
    """Return the parts that a notification names; an ONU without its port is none."""
    found = {
        name: value
        for name, value in parts.items()
        if value is not None and 0 <= value <= _MOST_PART and value not in none.get(name, ())
    }
    if "port" in parts and "port" not in found:
        found.pop("onu", None)
    return HintPlace(**found) if found else None


def read_notifications(section: Section, indexes: Mapping[str, Index], confidence: Confidence) -> NotificationRules:
    """Read the `notifications` of a definition, which may have none; DefinitionError at the first fault."""
    usual = section.word("confidence", Confidence, confidence)
    places = _read_places(section.optional_section("places"), indexes)
    link = places.pop("link", None) or _links_by_index(indexes)
    entries = section.listed("said", required=False)
    used = {entry.data.get("place") for entry in entries}
    for name in places:
        if name not in used:
            raise section.error(f"places.{name}", "is used by no notification")
    reader = _EntryReader(places, usual)
    for entry in entries:
        reader.read(entry)
    enable = section.items("enable", str, required=False)
    for at, line in enumerate(enable):
        _check_line(section, f"enable[{at}]", line)
    loaded = NotificationRules(
        rules=MappingProxyType(reader.rules),
        by_oid=MappingProxyType(_with_v1_forms(reader.rules)),
        by_prefix=MappingProxyType(reader.prefixes),
        link=link,
        serials=_read_oids(section, "serials"),
        macs=_read_oids(section, "macs"),
        secrets=_read_oids(section, "secrets"),
        tail_ends=frozenset(section.items("tail_ends", str, required=False)),
        enable=enable,
        confidence=usual if entries else None,
    )
    section.close()
    return loaded


def _with_v1_forms(rules: Mapping[Oid, NotificationRule]) -> dict[Oid, NotificationRule]:
    """RFC 3584 makes `enterprise.0.specific` of SNMPv1; where the OID has no 0 there, both are the same."""
    forms = {(*oid[:-1], 0, oid[-1]): rule for oid, rule in rules.items() if oid[-2] != 0}
    return {**forms, **rules}


def _links_by_index(indexes: Mapping[str, Index]) -> tuple[PlaceRule, ...]:
    """Return the PON index of the family if it is an ifIndex: a bare port number is none."""
    packed = [
        index for index in indexes.values() if index.scope is Scope.PON and index.length == 1 and len(index.fields) > 1
    ]
    columns = (*((*IF_ENTRY, number) for number in (1, 8, 7, 2)),)
    return tuple(
        rule
        for index in packed
        for rule in (IndexRule(columns[:1], index, is_suffix=False), IndexRule(columns, index, is_suffix=True))
    )


def _read_places(section: Section, indexes: Mapping[str, Index]) -> dict[str, tuple[PlaceRule, ...]]:
    found = {}
    for name, written in section.pairs().items():
        ways = written if isinstance(written, list) else [written]
        if not ways:
            raise section.error(name, "must not be empty")
        paths = [section.at(name if way is written else f"{name}[{at}]") for at, way in enumerate(ways)]
        found[name] = tuple(
            _read_place(Section.of(way, section.source, path), indexes) for way, path in zip(ways, paths, strict=True)
        )
    return found


def _read_place(section: Section, indexes: Mapping[str, Index]) -> PlaceRule:
    left_out = section.optional_section("none")
    none = {
        _part_name(section, "none", name): frozenset(
            _whole(left_out, name, number) for number in (numbers if isinstance(numbers, list) else [numbers])
        )
        for name, numbers in left_out.pairs().items()
    }
    rule: PlaceRule
    if section.has("values") or section.has("digits"):
        key = "values" if section.has("values") else "digits"
        parts = section.section(key)
        objects = {_part_name(section, key, name): _read_oids(parts, name) for name in list(parts.data)}
        if not objects:
            raise section.error(key, "must not be empty")
        rule = PartsRule(objects, none, are_texts=key == "digits")
    elif section.has("suffix_of") or section.has("value"):
        is_suffix = section.has("suffix_of")
        oids, index = _read_oids(section, "suffix_of" if is_suffix else "value"), indexes.get(section.text("index"))
        if index is None:
            raise section.error("index", "names no index of this file")
        rule = IndexRule(oids, index, is_suffix, _read_oids(section, "onu"), none)
    elif section.has("text"):
        oids, names = _read_oids(section, "text"), section.items("names", str)
        with section.blaming("names"):
            rule = NameRule(oids, tuple(map(read_form, names)))
    else:
        parts_in_order = tuple(_part_name(section, "parts", name) for name in section.items("parts", str))
        rule = OctetsRule(_read_oids(section, "octets"), parts_in_order, none)
        if not rule.objects:
            raise section.error("octets", "is missing: a place has values, digits, suffix_of, value, text or octets")
    section.close()
    return rule


def _part_name(section: Section, key: str, name: object) -> str:
    if name not in _PARTS:
        raise section.error(f"{key}.{name}", f"is not one of {', '.join(_PARTS)}")
    return str(name)


def _read_oids(section: Section, key: str) -> tuple[Oid, ...]:
    """Read one OID or a list of them; none if the key is missing."""
    written = section.data.pop(key, [])
    each = written if isinstance(written, list) else [written]
    return tuple(section.to_oid(key, oid) for oid in each)


class _EntryReader:
    """Reads the entries of `said`, each of which may stand for many notifications."""

    def __init__(self, places: Mapping[str, tuple[PlaceRule, ...]], confidence: Confidence) -> None:
        self.rules: dict[Oid, NotificationRule] = {}
        self.prefixes: dict[Oid, NotificationRule] = {}
        self._places = places
        self._confidence = confidence

    def read(self, section: Section) -> None:
        rule = self._read_rule(section)
        if section.has("under"):
            oid = section.oid("under")
            if oid in self.prefixes:
                raise section.error("under", "appears twice")
            self.prefixes[oid] = rule
        else:
            base, names = section.oid("base"), section.section("names")
            if not names.data:
                raise section.error("names", "must not be empty")
            for number, name in names.pairs().items():
                oid = (*base, _whole(names, number, number))
                if oid in self.rules:
                    raise names.error(number, f"{format_oid(oid)} appears twice")
                self.rules[oid] = replace(rule, name=_word(names, number, name))
        section.close()

    def _read_rule(self, section: Section) -> NotificationRule:
        place = section.text("place", "")
        if place and place not in self._places:
            raise section.error("place", f"{place!r} is not one of the places of this file")
        by = tuple(map(_read_meanings, section.listed("by", required=False)))
        end_rules = tuple(map(_read_end, section.listed("ends_when", required=False)))
        return NotificationRule(
            name="",
            meaning=section.word("meaning", Meaning, Meaning.OTHER if by else None),
            is_end=section.take("ends", bool, default=False),
            places=self._places.get(place, ()),
            by=by,
            end_rules=end_rules,
            confidence=section.word("confidence", Confidence, self._confidence),
        )


def _read_meanings(section: Section) -> MeaningRule:
    oids, base = (section.oid("oid"),), section.oid("base") if section.has("base") else ()
    meanings: dict[int, Meaning] = {}
    names: dict[int, str] = {}
    values = section.section("values")
    for word, numbers in values.pairs().items():
        meaning = values.to_word(word, word, Meaning)
        if not isinstance(numbers, list | dict):
            raise values.error(word, "must be a list of numbers, or their names by number")
        for written in numbers:
            number = _whole(values, word, written)
            if number in meanings:
                raise values.error(word, f"{number} appears twice")
            meanings[number] = meaning
            if isinstance(numbers, dict):
                names[number] = _word(values, written, numbers[written])
    ends = frozenset(section.items("ends", int, required=False))
    if not ends <= set(meanings):
        raise section.error("ends", "has a number that has no meaning")
    section.close()
    return MeaningRule(oids, MappingProxyType(meanings), MappingProxyType(names), ends, base)


def _read_end(section: Section) -> EndRule:
    rule = EndRule(section.oid("oid"), section.items("begins", int), section.items("ends", int, required=False))
    if not rule.begins or set(rule.begins) & set(rule.ends):
        raise section.error("begins", "needs a number that is not among the ends")
    section.close()
    return rule


def _whole(section: Section, key: object, number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MOST_PART:
        raise section.error(key, f"must be a whole number, not {number!r}")
    return number


def _word(section: Section, key: object, name: object) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_NAME_LETTERS:
        raise section.error(key, f"must be a name of at most {_MOST_NAME_LETTERS} characters, not {name!r}")
    return name.strip()


def _check_line(section: Section, key: str, line: str) -> None:
    with section.blaming(key):
        names = {name for _, name, _, _ in Formatter().parse(line) if name is not None}
    if not names <= _PLACEHOLDERS:
        raise section.error(key, f"may have {', '.join(f'{{{name}}}' for name in sorted(_PLACEHOLDERS))} only")

"""Reads the columns of one table from a definition file."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from facho.polling.snmp.ber import Oid, Tag
from facho.polling.vendors.column import Column, ValueRule, build_decode, build_encode
from facho.polling.vendors.decoders import DECODERS, Decoder
from facho.polling.vendors.index import Index
from facho.polling.vendors.schema import Section
from facho.polling.vendors.vocabulary import PLAUSIBLE, VOCABULARIES, Confidence, Cost, Unit

# Wire types by their MIB names, each with the decoder that reads it unless the column names another.
_WIRE_TYPES: Mapping[str, tuple[Tag, str]] = MappingProxyType(
    {
        "Integer32": (Tag.INTEGER, "integer"),
        "Counter32": (Tag.COUNTER32, "integer"),
        "Counter64": (Tag.COUNTER64, "integer"),
        "Gauge32": (Tag.GAUGE32, "integer"),
        "TimeTicks": (Tag.TIMETICKS, "integer"),
        "OctetString": (Tag.OCTET_STRING, "text"),
        "ObjectIdentifier": (Tag.OBJECT_IDENTIFIER, "object_id"),
    }
)
_MEASURED = frozenset((Unit.DBM, Unit.VOLT, Unit.MILLIAMPERE, Unit.CELSIUS))
_UNLIMITED = (float("-inf"), float("inf"))


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """Reads columns that share a table's OID and index, with its cost and confidence where they name none."""

    table_oid: Oid
    index: Index
    cost: Cost
    confidence: Confidence

    def read(self, key: str, section: Section) -> Column:
        """Build the column of a key, closures included."""
        oid = (*self.table_oid, section.integer("id", low=1))
        unit = section.word("unit", Unit) if section.has("unit") else None
        rule = _read_rule(section, unit)
        column = Column(
            key=key,
            oid=oid,
            index=self.index,
            cost=section.word("cost", Cost, self.cost),
            confidence=section.word("confidence", Confidence, self.confidence),
            rule=rule,
            decode=build_decode(rule),
            encode=build_encode(rule),
            unit=unit,
            note=section.text("note", ""),
            shares=section.text("shares", "") or None,
        )
        section.close()
        return column


def _read_rule(section: Section, unit: Unit | None) -> ValueRule:
    tag, decoder = _read_type(section)
    low, high = _read_range(section, unit)
    words = _read_words(section, decoder)
    rule = ValueRule(
        tag=tag,
        decoder=decoder,
        sentinels=section.items("sentinels", int, required=False),
        scale=section.fraction("scale", 1),
        offset=section.fraction("offset", 0),
        low=low,
        high=high,
        words=words,
        is_measured=unit in _MEASURED,
    )
    _check_rule(section, rule)
    return rule


def _read_type(section: Section) -> tuple[Tag, Decoder]:
    name = section.text("type")
    if name not in _WIRE_TYPES:
        raise section.error("type", f"{name!r} is not one of {', '.join(_WIRE_TYPES)}")
    tag, default = _WIRE_TYPES[name]
    decoder = DECODERS.get(section.text("decoder", default))
    if decoder is None:
        raise section.error("decoder", f"is not one of {', '.join(DECODERS)}")
    if tag not in decoder.tags:
        raise section.error("decoder", f"{decoder.name!r} cannot read {name}")
    return tag, decoder


def _read_range(section: Section, unit: Unit | None) -> tuple[float, float]:
    if not section.has("range"):
        return PLAUSIBLE.get(unit, _UNLIMITED) if unit else _UNLIMITED
    limits = section.items("range", int)
    if len(limits) != 2 or limits[0] >= limits[1]:
        raise section.error("range", "must be a lower and an upper limit")
    return limits[0], limits[1]


def _read_words(section: Section, decoder: Decoder) -> Mapping[int | str, StrEnum]:
    if not section.has("vocabulary"):
        return MappingProxyType({})
    name = section.text("vocabulary")
    vocabulary = VOCABULARIES.get(name)
    if vocabulary is None:
        raise section.error("vocabulary", f"{name!r} is not one of {', '.join(VOCABULARIES)}")
    words: dict[int | str, StrEnum] = {}
    for raw, word in section.section("values").pairs().items():
        if decoder.is_numeric and type(raw) is not int:
            raise section.error(f"values.{raw}", "the value on the wire must be a whole number")
        if not decoder.is_numeric and (type(raw) is not str or raw != raw.lower()):
            raise section.error(f"values.{raw}", "the text on the wire must be written in lower case")
        words[raw] = section.to_word(f"values.{raw}", word, vocabulary)
    if not words:
        raise section.error("values", "must not be empty")
    return MappingProxyType(words)


def _check_rule(section: Section, rule: ValueRule) -> None:
    if rule.words and (rule.decoder.name not in ("integer", "text") or rule.scale != 1 or rule.offset != 0):
        raise section.error("values", "words are read from plain integers or texts")
    if not rule.decoder.is_numeric and (rule.sentinels or rule.scale != 1 or rule.offset != 0):
        raise section.error("decoder", f"{rule.decoder.name!r} gives no number: sentinels and scale mean nothing")
    if rule.scale <= 0:
        raise section.error("scale", "must be above 0")
    if set(rule.sentinels) & set(rule.words):
        raise section.error("sentinels", "a value is a word or a sentinel, not both")

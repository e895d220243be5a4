"""Makes a recording safe to give away: what tells customers, places or devices apart is replaced.

Safe by default: octets stay only in columns known to be harmless. Equal values stay equal, different ones differ,
and the form in which a device spells a value stays, so that the recording decodes as the device did.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count
from string import hexdigits

from facho.polling.snmp.ber import Oid, Tag, Value, VarBind
from facho.polling.snmp.oid import SYS_DESCR, SYS_OBJECT_ID, SYSTEM, is_under
from facho.polling.vendors.column import Column
from facho.polling.vendors.decoders import clean_text, decode_mac, decode_serial, encode_serial
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.learned_index import LearnedIndex, NameForm, serial_of, spell_serial
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.recognition import GENERIC_KEY

# Texts that a vendor chose, not an operator; every other column is disguised.
MAY_STAY = frozenset(
    {
        "sys.descr", "if.name", "if.descr", "board.type",
        "onu.vendor", "onu.model", "onu.hw_version", "onu.sw_version", "onu.sw_version_standby", "onu.fw_version",
        "autofind.model", "autofind.sw_version",
    }
)  # fmt: skip

_SERIALS = frozenset({"gpon_sn8", "gpon_sn_text"})
_MEASURES = frozenset({"date_and_time", "text_number"})
_PADDING = b"\x00 \t\r\n"
_BINARY = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f]")
# Units are shorter than this; a longer word among numbers may be a name.
_WORD = re.compile(rb"[A-Za-z\x80-\xff]{4}")
_TELLING_LENGTH = 4
# A text of fewer letters is no serial.
_SHORTEST_ODD_SERIAL = 12
_LONGER_THAN_MAC = 7
_LOCALLY_ADMINISTERED = b"\x02"
_TEST_NETWORKS = (b"\xc0\x00\x02", b"\xc6\x33\x64", b"\xcb\x00\x71")


def anonymise(rows: Iterable[VarBind], definition: Definition, *, salt: bytes) -> list[VarBind]:
    """Return the rows in order, disguised; the same rows and salt give the same result.

    Rows that neither the system group nor a column explains are left out, and so are rows whose index is not the
    column's and long enough to spell a text or an address.
    """
    ordered = sorted(rows, key=lambda row: row[0])
    columns = _Columns(definition)
    disguise = _Disguise(salt, _serial_tails(ordered, columns), _place_names(definition))
    disguised: dict[Oid, tuple[int, Value]] = {}
    for oid, tag, value in ordered:
        found = columns.at(oid)
        index = disguise.index(oid[len(found[0].oid) :], found[0]) if found else None
        if is_under(oid, SYSTEM):
            disguised[oid] = tag, disguise.value(found, tag, value)
        elif index is not None:
            disguised[found[0].oid + index] = tag, disguise.value(found, tag, value)
    if SYS_DESCR in disguised:
        disguised[SYS_DESCR] = disguised[SYS_DESCR][0], _scrub_description(ordered, disguised, definition)
    return sorted((oid, tag, value) for oid, (tag, value) in disguised.items())


class _Columns:
    """Finds the columns in which an OID lies: the family's, and the standard ones of every agent."""

    def __init__(self, definition: Definition) -> None:
        standard = load_definitions()[GENERIC_KEY]
        self._by_oid = _by_oid(standard) | _by_oid(definition)
        self._lengths = sorted({len(oid) for oid in self._by_oid})

    def at(self, oid: Oid) -> tuple[Column, ...]:
        for length in self._lengths:
            if oid[:length] in self._by_oid:
                return self._by_oid[oid[:length]]
        return ()


def _by_oid(definition: Definition) -> dict[Oid, tuple[Column, ...]]:
    found: dict[Oid, tuple[Column, ...]] = {}
    for column in definition.columns.values():
        found[column.oid] = (*found.get(column.oid, ()), column)
    return found


class _Disguise:
    """Replaces values; remembers by what, so that equal ones stay equal."""

    def __init__(self, salt: bytes, serial_tails: set[bytes], place_names: Sequence[NameForm]) -> None:
        self._salt = salt
        self._place_names = place_names
        # What no replacement may be: another replacement, or a true serial's tail.
        self._taken = set(serial_tails)
        self._replaced: dict[tuple[str, bytes], bytes] = {}
        self._texts: dict[bytes, bytes] = {}
        self._addresses: dict[bytes, bytes] = {}

    def value(self, columns: Sequence[Column], tag: int, value: Value) -> Value:
        """Numbers and object ids stay; octets stay when they say nothing, or are harmless in these columns."""
        if not isinstance(value, bytes) or not any(value):
            return value
        if tag == Tag.IP_ADDRESS:
            return self._address(value)
        if tag != Tag.OCTET_STRING or not columns:
            return self._anything(value)
        if all(_is_harmless(column, value) for column in columns) or self._names_place(value):
            return value
        decoder = columns[0].rule.decoder.name
        if decoder in _SERIALS:
            return self._serial(value)
        return self._mac(value) if decoder == "mac" else self._anything(value)

    def index(self, suffix: Oid, column: Column) -> Oid | None:
        """Return the index of a row, with another serial if it spells one; None when it may spell anything else."""
        serial = serial_of(suffix) if isinstance(column.index, LearnedIndex) and not column.index.forms else None
        if serial is not None:
            return spell_serial(self._serial(serial.encode()).decode())
        return None if _may_spell(suffix, column) else suffix

    def _names_place(self, raw: bytes) -> bool:
        return any(form.read(clean_text(raw)) for form in self._place_names)

    def _serial(self, raw: bytes) -> bytes:
        serial = decode_serial(raw)
        if type(serial) is not str:
            return self._anything(raw)
        octets = encode_serial(serial)
        if len(octets) != 8:
            return self._anything(raw).ljust(_SHORTEST_ODD_SERIAL, b".")
        new = self._serial_head(octets) + self._unique("serial", octets, 4)
        return new if len(raw) == 8 else _respell(raw, _spell_serial(clean_text(raw), new))

    def _serial_head(self, octets: bytes) -> bytes:
        """Keep the maker's letters; what stands there instead of them is disguised within its kind."""
        head = octets[:4]
        if head.isalpha():
            return head
        digest = self._digest("head", octets, 4)
        return digest[:2].hex().upper().encode() if head.isalnum() else bytes(byte | 0x80 for byte in digest)

    def _mac(self, raw: bytes) -> bytes:
        mac = decode_mac(raw)
        if type(mac) is not str:
            # Any six octets are a hardware address.
            return self._anything(raw).ljust(_LONGER_THAN_MAC, b".")
        new = _LOCALLY_ADMINISTERED + self._unique("mac", bytes.fromhex(mac.replace(":", "")), 5)
        return new if len(raw) == 6 else _respell(raw, _fill(clean_text(raw), new.hex()))

    def _address(self, raw: bytes) -> bytes:
        if raw not in self._addresses:
            # 762 addresses may be used in examples; a device with more has some of them twice.
            network, host = divmod(len(self._addresses) % (254 * len(_TEST_NETWORKS)), 254)
            self._addresses[raw] = _TEST_NETWORKS[network] + bytes((host + 1,))
        return self._addresses[raw]

    def _anything(self, raw: bytes) -> bytes:
        if _BINARY.search(raw):
            return self._digest("octets", raw, len(raw))
        if not any(char.isalnum() for char in clean_text(raw)):
            return raw
        return self._texts.setdefault(raw.strip(_PADDING), b"Text %d" % (len(self._texts) + 1))

    def _unique(self, kind: str, original: bytes, size: int) -> bytes:
        """Return octets that stand for these and for no others."""
        if (kind, original) not in self._replaced:
            tries = (self._digest(f"{kind} {attempt}", original, size) for attempt in count())
            new = next(octets for octets in tries if octets not in self._taken)
            self._taken.add(new)
            self._replaced[kind, original] = new
        return self._replaced[kind, original]

    def _digest(self, kind: str, original: bytes, size: int) -> bytes:
        return hashlib.shake_256(b"\x00".join((self._salt, kind.encode(), original))).digest(size)


def _is_harmless(column: Column, raw: bytes) -> bool:
    decoder = column.rule.decoder.name
    if decoder in _MEASURES:
        return isinstance(column.decode(Tag.OCTET_STRING, raw).value, datetime) or not _WORD.search(raw)
    if column.rule.words:
        return column.decode(Tag.OCTET_STRING, raw).value is not None
    return decoder == "text" and column.key in MAY_STAY


def _place_names(definition: Definition) -> tuple[NameForm, ...]:
    learned = (index for index in definition.indexes.values() if isinstance(index, LearnedIndex))
    return tuple(form for index in learned for form in index.forms)


def _may_spell(suffix: Oid, column: Column) -> bool:
    """Tell whether a foreign index has four small numbers in a row: letters, or an address."""
    if column.index.decode(suffix) is not None:
        return False
    small = "".join("x" if sub_id < 256 else " " for sub_id in suffix)
    return "x" * _TELLING_LENGTH in small


def _serial_tails(rows: Sequence[VarBind], columns: _Columns) -> set[bytes]:
    tails = set()
    for oid, _, value in rows:
        found = columns.at(oid)
        if found and found[0].rule.decoder.name in _SERIALS and isinstance(value, bytes):
            serial = decode_serial(value)
            tails.add(encode_serial(serial)[4:] if type(serial) is str else b"")
    return tails


def _spell_serial(text: str, octets: bytes) -> str:
    if len(text) == 12:
        return octets[:4].decode("ascii") + _fill(text[4:], octets[4:].hex())
    return _fill(text, octets.hex())


def _fill(text: str, digits: str) -> str:
    """Put other hexadecimal digits into a text, between the same separators and in the same case."""
    remaining = iter(digits.upper() if text == text.upper() else digits)
    return "".join(next(remaining) if char in hexdigits else char for char in text)


def _respell(raw: bytes, text: str) -> bytes:
    """Put a text where the old one stood; what the device padded it with stays."""
    old, new = clean_text(raw).encode(), text.encode()
    return raw.replace(old, new) if old in raw else new


def _scrub_description(
    rows: Sequence[VarBind], disguised: Mapping[Oid, tuple[int, Value]], definition: Definition
) -> Value:
    """Many agents repeat their name in their description: take it out, unless recognition lives on it."""
    system = {oid: value for oid, _, value in rows if is_under(oid, SYSTEM)}
    descr, object_id = disguised[SYS_DESCR][1], system.get(SYS_OBJECT_ID)
    if not isinstance(descr, bytes):
        return descr
    scrubbed = descr
    for oid, old in system.items():
        new = disguised[oid][1]
        name = old.strip(_PADDING) if isinstance(old, bytes) and old != new else b""
        if len(name) >= _TELLING_LENGTH and isinstance(new, bytes):
            scrubbed = scrubbed.replace(name, new)
    is_same = _verdict(definition, object_id, scrubbed) == _verdict(definition, object_id, descr)
    return scrubbed if is_same else descr


def _verdict(definition: Definition, object_id: Value, descr: bytes) -> tuple[object, str | None]:
    known, text = object_id if isinstance(object_id, tuple) else (), clean_text(descr)
    return definition.recognise(known, text), definition.model_name(known, text)

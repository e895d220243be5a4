"""Makes a recording safe to give away: what tells customers, places or devices apart is replaced.

Safe by default: octets stay only in columns known to be harmless. Equal values stay equal, different ones differ,
and the form in which a device spells a value stays, so that the recording decodes as the device did.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count
from string import hexdigits

from facho.polling.snmp.ber import Oid, Tag, Value, VarBind
from facho.polling.snmp.oid import SYS_DESCR, SYS_OBJECT_ID, SYSTEM, is_under
from facho.polling.vendors.column import Column
from facho.polling.vendors.decoders import INTEGER_TAGS, clean_text, decode_mac, decode_serial, encode_serial, parse_oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import LearnedIndex, NameForm, serial_of, spell_serial
from facho.polling.vendors.loader import GENERIC_KEY, load_definitions

# Texts that a vendor chose, not an operator; every other column is disguised.
MAY_STAY = frozenset(
    {
        "sys.descr", "if.name", "if.descr", "board.type", "chassis.version",
        "onu.vendor", "onu.model", "onu.hw_version", "onu.sw_version", "onu.sw_version_standby", "onu.fw_version",
        "autofind.model", "autofind.sw_version",
    }
)  # fmt: skip

_SERIALS = frozenset({"gpon_sn8", "gpon_sn_text", "gpon_sn_strict"})
_MEASURES = frozenset({"date_and_time", "text_number"})
_PADDING = b"\x00 \t\r\n"
_BINARY = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f]")
# Units are shorter than this; a longer word among numbers may be a name.
_WORD = re.compile(rb"[A-Za-z\x80-\xff]{4}")
_TELLING_LENGTH = 4
# A shorter text is not a serial.
_SHORTEST_ODD_SERIAL = 12
_LONGER_THAN_MAC = 7
_LOCALLY_ADMINISTERED = b"\x02"
_ADDRESS_LENGTH = 6
_LONGEST_SPELLED = 32
# A number with its unit, such as -21.50 dBm.
_MEASURE = re.compile(rb"[+-]?\d{1,5}(\.\d{1,4})?\s?[A-Za-z%/]{0,4}")
_LIKE_A_SERIAL = re.compile(rb"[A-Z]{4}")
_TEST_NETWORKS = (b"\xc0\x00\x02", b"\xc6\x33\x64", b"\xcb\x00\x71")


def anonymise(
    rows: Iterable[VarBind], definition: Definition, *, salt: bytes, unknown_below: Oid | None = None
) -> list[VarBind]:
    """Return the rows in order, anonymised; deterministic for the same rows and salt.

    Rows outside the system group and known columns are dropped, unless they are below an OID of which only the device
    knows the columns, as are rows with an unknown index long enough to spell a text or an address.
    """
    ordered = sorted(rows, key=lambda row: row[0])
    spelled = _spelled(ordered) if unknown_below else set()
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
        elif not found and unknown_below and is_under(oid, unknown_below):
            suffix = disguise.unknown_index(oid[len(unknown_below) :], spelled)
            disguised |= {unknown_below + suffix: (tag, disguise.unknown(tag, value))} if suffix else {}
    if SYS_DESCR in disguised:
        disguised[SYS_DESCR] = disguised[SYS_DESCR][0], _scrub_description(ordered, disguised, definition)
    return sorted((oid, tag, value) for oid, (tag, value) in disguised.items())


class _Columns:
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
    # A part of a standard text is kept or replaced with it.
    for column in (each for each in definition.columns.values() if not each.rule.pattern):
        found[column.oid] = (*found.get(column.oid, ()), column)
    return found


class _Disguise:
    """Replaces values consistently, so that equal ones stay equal."""

    def __init__(self, salt: bytes, serial_tails: set[bytes], place_names: Sequence[NameForm]) -> None:
        self._salt = salt
        self._place_names = place_names
        # What no replacement may be: another replacement, or a true serial's tail.
        self._taken = set(serial_tails)
        self._replaced: dict[tuple[str, bytes], bytes] = {}
        self._texts: dict[bytes, bytes] = {}
        self._addresses: dict[bytes, bytes] = {}

    def value(self, columns: Sequence[Column], tag: int, value: Value) -> Value:
        """Keep numbers and object ids; keep octets that are meaningless or harmless in these columns."""
        if not isinstance(value, bytes) or not any(value):
            return value
        if tag == Tag.IP_ADDRESS:
            if value not in self._addresses:
                # 762 addresses may be used in examples; a device with more has some of them twice.
                network, host = divmod(len(self._addresses) % (254 * len(_TEST_NETWORKS)), 254)
                self._addresses[value] = _TEST_NETWORKS[network] + bytes((host + 1,))
            return self._addresses[value]
        if tag != Tag.OCTET_STRING or not columns:
            return self._anything(value)
        text = clean_text(value)
        if all(_is_harmless(column, value) for column in columns) or any(form.read(text) for form in self._place_names):
            return value
        decoder = columns[0].rule.decoder.name
        if decoder in _SERIALS:
            return self._serial(value)
        return self._mac(value) if decoder == "mac" else self._anything(value)

    def unknown(self, tag: int, value: Value) -> Value:
        """Keep the form of a value of which nothing is known; a measure with its unit stays as it is."""
        if tag == Tag.OCTET_STRING and isinstance(value, bytes):
            if _MEASURE.fullmatch(value.strip(_PADDING)):
                return value
            if _LIKE_A_SERIAL.match(value) and len(value) in (8, 12):
                return self._serial(value)
        return self.value((), tag, value)

    def unknown_index(self, suffix: Oid, spelled: Collection[bytes]) -> Oid | None:
        """Return an index with another text if it ends in one, length first; None if it may spell anything else."""
        for at in range(len(suffix) - _TELLING_LENGTH):
            text = serial_of(suffix[at:])
            if text is not None:
                new = (
                    self._serial(text.encode())
                    if _LIKE_A_SERIAL.match(text.encode())
                    else self._anything(text.encode())
                )
                return suffix[:at] + spell_serial(new.decode())
        return None if _may_spell(suffix, spelled) else suffix

    def index(self, suffix: Oid, column: Column) -> Oid | None:
        """Return a row's index, with another serial if it spells one; None if it may spell anything else."""
        spelling = column.index if isinstance(column.index, LearnedIndex) and not column.index.forms else None
        serial = serial_of(suffix) if spelling else None
        if spelling is not None and serial is not None:
            return spelling.spell(self._serial(serial.encode()).decode())
        if column.index.decode(suffix) is not None:
            return suffix
        # Four small numbers in a row of an unknown index: letters, or an address.
        small = "".join("x" if sub_id < 256 else " " for sub_id in suffix)
        return None if "x" * _TELLING_LENGTH in small else suffix

    def _serial(self, raw: bytes) -> bytes:
        serial = decode_serial(raw)
        if type(serial) is not str:
            return self._anything(raw)
        octets = encode_serial(serial)
        if len(octets) != 8:
            return self._anything(raw).ljust(_SHORTEST_ODD_SERIAL, b".")
        # The vendor's letters stay; anything else there is replaced within its kind.
        head = octets[:4]
        if not head.isalpha():
            digest = self._digest("head", octets, 4)
            head = digest[:2].hex().upper().encode() if head.isalnum() else bytes(byte | 0x80 for byte in digest)
        new = head + self._unique("serial", octets, 4)
        if len(raw) == 8:
            return new
        text = clean_text(raw)
        if len(text) == 12 or text[4:5] == "-":
            return _respell(raw, new[:4].decode("ascii") + _fill(text[4:], new[4:].hex()))
        return _respell(raw, _fill(text, new.hex()))

    def _mac(self, raw: bytes) -> bytes:
        mac = decode_mac(raw)
        if type(mac) is not str:
            # Any six octets are a hardware address.
            return self._anything(raw).ljust(_LONGER_THAN_MAC, b".")
        new = _LOCALLY_ADMINISTERED + self._unique("mac", bytes.fromhex(mac.replace(":", "")), 5)
        return new if len(raw) == 6 else _respell(raw, _fill(clean_text(raw), new.hex()))

    def _anything(self, raw: bytes) -> bytes:
        if _BINARY.search(raw):
            return self._digest("octets", raw, len(raw))
        if not any(char.isalnum() for char in clean_text(raw)):
            return raw
        return self._texts.setdefault(raw.strip(_PADDING), b"Text %d" % (len(self._texts) + 1))

    def _unique(self, kind: str, original: bytes, size: int) -> bytes:
        if (kind, original) not in self._replaced:
            tries = (self._digest(f"{kind} {attempt}", original, size) for attempt in count())
            new = next(octets for octets in tries if octets not in self._taken)
            self._taken.add(new)
            self._replaced[kind, original] = new
        return self._replaced[kind, original]

    def _digest(self, kind: str, original: bytes, size: int) -> bytes:
        return hashlib.shake_256(b"\x00".join((self._salt, kind.encode(), original))).digest(size)


def _spelled(rows: Iterable[VarBind]) -> set[bytes]:
    """Return what an index of the same device may repeat: its texts and addresses."""
    raw = {value for _, _, value in rows if isinstance(value, bytes)}
    octets = raw | {value.strip(_PADDING) for value in raw}
    return {value for value in octets if _TELLING_LENGTH <= len(value) <= _LONGEST_SPELLED}


def _may_spell(suffix: Oid, spelled: Collection[bytes]) -> bool:
    """Tell whether the end of an OID could be letters or an address; a place is a few numbers, mostly small ones."""
    octets = bytes(min(sub_id, 255) for sub_id in suffix)
    end = [sub_id for sub_id in suffix[-_ADDRESS_LENGTH:] if 32 <= sub_id < 256]
    if len(end) >= _TELLING_LENGTH - 1:
        return True
    ends = range(_TELLING_LENGTH, len(octets) + 1)
    starts = (octets[at - size : at] for at in ends for size in range(_TELLING_LENGTH, min(at, _LONGEST_SPELLED) + 1))
    return any(part in spelled for part in starts)


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


def _serial_tails(rows: Sequence[VarBind], columns: _Columns) -> set[bytes]:
    tails = set()
    for oid, _, value in rows:
        found = columns.at(oid)
        if found and found[0].rule.decoder.name in _SERIALS and isinstance(value, bytes):
            serial = decode_serial(value)
            tails.add(encode_serial(serial)[4:] if type(serial) is str else b"")
    return tails


def _fill(text: str, digits: str) -> str:
    remaining = iter(digits.upper() if text == text.upper() else digits)
    return "".join(next(remaining) if char in hexdigits else char for char in text)


def _respell(raw: bytes, text: str) -> bytes:
    old, new = clean_text(raw).encode(), text.encode()
    return raw.replace(old, new) if old in raw else new


def _scrub_description(
    rows: Sequence[VarBind], disguised: Mapping[Oid, tuple[int, Value]], definition: Definition
) -> Value:
    """Remove the system name from the description, unless recognition depends on it."""
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


class RecordingError(ValueError):
    """A line of a recording that cannot be read; names the line."""

    code = "recording_invalid"


def read_recording(text: str) -> tuple[VarBind, ...]:
    """Return the values of a recording ordered by OID; empty lines and # comments are skipped."""
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            rows.append(_read_line(line))
        except ValueError as error:
            raise RecordingError(f"line {number}: {error}") from None
    return tuple(sorted(rows, key=lambda row: row[0]))


def write_recording(rows: Iterable[VarBind]) -> str:
    """Return the text of a recording; octets that are not plain text become hexadecimal."""
    lines = []
    for oid, tag, value in sorted(rows, key=lambda row: row[0]):
        suffix, text = "", str(value)
        if isinstance(value, tuple):
            text = ".".join(map(str, value))
        elif isinstance(value, bytes):
            is_plain = tag == Tag.OCTET_STRING and value.isascii() and value.decode("ascii").isprintable()
            suffix, text = ("", value.decode("ascii")) if is_plain else ("x", value.hex())
        lines.append(f"{'.'.join(map(str, oid))}|{tag:d}{suffix}|{text}\n")
    return "".join(lines)


def _read_line(line: str) -> VarBind:
    parts = line.split("|", 2)
    if len(parts) != 3:
        raise ValueError("not of the form oid|type|value")
    oid, kind, text = parts
    is_hex = kind.endswith("x")
    tag = Tag(int(kind.removesuffix("x")))
    if is_hex and tag not in (Tag.OCTET_STRING, Tag.OPAQUE, Tag.IP_ADDRESS):
        raise ValueError("only octets are written in hexadecimal")
    value: Value
    if is_hex:
        value = bytes.fromhex(text)
    elif tag in INTEGER_TAGS:
        value = int(text)
    elif tag is Tag.OBJECT_IDENTIFIER:
        value = parse_oid(text)
    elif tag is Tag.IP_ADDRESS:
        value = bytes(map(int, text.split(".")))
    elif tag is Tag.OCTET_STRING:
        value = text.encode()
    else:
        raise ValueError(f"type {tag} has no place in a recording")
    return parse_oid(oid), int(tag), value

"""Named decoders: pure functions from what arrived to a typed value, and back for a simulated device.

A decoder returns its value, or a Reject when the octets mean "no reading" or nothing at all. It never raises
for what a device sent.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from facho.polling.snmp.ber import Oid, Tag, Value
from facho.polling.vendors.vocabulary import Reject, Typed

MAX_TEXT_LENGTH = 255
# Agents swap the integer types freely; the number is what counts.
INTEGER_TAGS = frozenset(map(int, (Tag.INTEGER, Tag.COUNTER32, Tag.GAUGE32, Tag.TIMETICKS, Tag.COUNTER64)))
_OCTET_TAGS = frozenset((int(Tag.OCTET_STRING),))

_HEX_SERIAL = re.compile(r"[0-9A-Fa-f]{16}")
# Some devices write a dash after the vendor's letters.
_VENDOR_SERIAL = re.compile(r"([A-Za-z0-9]{4})-?([0-9A-Fa-f]{8})")
_DBM_IN_PARENTHESES = re.compile(r"\(\s*([-+]?\d+(?:\.\d+)?)\s*dBm", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_TEXT_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_MAX_NUMBER_TEXT = 64


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder with its inverse. `absent` is what a device sends for "no value", if the rule names it."""

    name: str
    python_type: type
    tags: frozenset[int]
    decode: Callable[[Any], Typed | Reject]
    encode: Callable[[Any], Value]
    is_numeric: bool = False
    # `decode` rejects nothing and takes an array of integers as well as one.
    is_arithmetic: bool = False
    # `decode` rejects nothing.
    reads_all: bool = False
    absent: Value = None


def clean_text(raw: bytes) -> str:
    """Turn octets into text that is safe to store and show: printable, single-line, bounded."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " if char.isspace() else "" for char in text)
    return text.strip()[:MAX_TEXT_LENGTH]


def decode_serial(raw: bytes) -> str | Reject:
    """Read a GPON serial, as 8 octets or as text, in one normal form."""
    if len(raw) == 8:
        return _serial_of_octets(raw)
    text = clean_text(raw)
    digits = text.replace(" ", "")
    if _HEX_SERIAL.fullmatch(digits):
        return _serial_of_octets(bytes.fromhex(digits))
    match = _VENDOR_SERIAL.fullmatch(text)
    if match:
        return (match[1] + match[2]).upper()
    if 12 <= len(text) <= 16:
        return text
    return Reject.MALFORMED if text else Reject.SENTINEL


def decode_strict_serial(raw: bytes) -> str | Reject:
    """Read a serial with the letters of a vendor; any other text is malformed, not an odd serial."""
    serial = decode_serial(raw)
    return serial if isinstance(serial, Reject) or _VENDOR_SERIAL.fullmatch(serial) else Reject.MALFORMED


def encode_serial(serial: str) -> bytes:
    if _HEX_SERIAL.fullmatch(serial):
        return bytes.fromhex(serial)
    match = _VENDOR_SERIAL.fullmatch(serial)
    if match:
        return match[1].encode("ascii") + bytes.fromhex(match[2])
    return serial.encode()


def _serial_of_octets(raw: bytes) -> str | Reject:
    if not any(raw):
        return Reject.SENTINEL
    vendor = raw[:4]
    # A vendor id that is not printable stays in hexadecimal: an ONU with an odd serial is still an ONU.
    head = vendor.decode().upper() if vendor.isalnum() else vendor.hex().upper()
    return head + raw[4:].hex().upper()


def decode_date_and_time(raw: bytes) -> datetime | Reject:
    """Read an SNMPv2-TC DateAndTime. Without a zone (8 octets) it is device time and stays naive."""
    if len(raw) not in (8, 11):
        return _decode_text_time(raw)
    year, month = raw[0] << 8 | raw[1], raw[2]
    if not year or not month:
        return Reject.SENTINEL
    try:
        moment = datetime(  # noqa: DTZ001 - 8 octets carry no zone, and the device's is not known here
            year, month, raw[3], raw[4], raw[5], min(raw[6], 59), min(raw[7], 9) * 100_000
        )
        if len(raw) == 8:
            return moment
        offset = timedelta(hours=raw[9], minutes=raw[10])
        return moment.replace(tzinfo=timezone(-offset if raw[8:9] == b"-" else offset) if offset else UTC)
    except ValueError:
        return Reject.MALFORMED


def encode_date_and_time(moment: datetime) -> bytes:
    """Return 8 octets for a naive time and 11 for an aware one; precision is 0.1 s."""
    octets = moment.year.to_bytes(2, "big") + bytes(
        (moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond // 100_000)
    )
    offset = moment.utcoffset()
    if offset is None:
        return octets
    minutes = int(offset.total_seconds()) // 60
    return octets + (b"-" if minutes < 0 else b"+") + bytes(divmod(abs(minutes), 60))


def _decode_text_time(raw: bytes) -> datetime | Reject:
    text = clean_text(raw)
    if not any(char in "123456789" for char in text):
        return Reject.SENTINEL
    if not _TEXT_TIME.fullmatch(text):
        return Reject.MALFORMED
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return Reject.MALFORMED


def decode_text_number(raw: bytes) -> float | Reject:
    """Read the number before dBm in parentheses, else the first number; text without a digit is rejected."""
    text = clean_text(raw[:_MAX_NUMBER_TEXT])
    match = _DBM_IN_PARENTHESES.search(text)
    if match:
        return float(match[1])
    match = _NUMBER.search(text)
    return float(match[0]) if match else Reject.SENTINEL


def decode_mac(raw: bytes) -> str | Reject:
    octets = raw
    if len(raw) != 6:
        digits = re.sub(r"[-:. ]", "", clean_text(raw))
        if not re.fullmatch(r"[0-9A-Fa-f]{12}", digits):
            return Reject.MALFORMED if raw else Reject.SENTINEL
        octets = bytes.fromhex(digits)
    return octets.hex(":").upper() if any(octets) else Reject.SENTINEL


def decode_milliwatts(raw: int) -> float | Reject:
    """Convert 0.1 µW to dBm."""
    return round(10 * math.log10(raw / 10_000), 2) if raw > 0 else Reject.SENTINEL


def _keep(raw: int) -> int:
    return raw


def _integer(value: float) -> int:
    return round(value)


def _signed16(raw: int) -> int:
    return raw - (raw > 0x7FFF) * 0x1_0000


def _dotted(oid: Oid) -> str:
    return ".".join(map(str, oid))


def parse_oid(text: str) -> Oid:
    if not re.fullmatch(r"\d{1,10}(\.\d{1,10}){1,127}", text, re.ASCII):
        raise ValueError(f"{text!r} is not a dotted OID")
    return tuple(map(int, text.split(".")))


def _integers(
    name: str, decode: Callable[[int], Typed | Reject], encode: Callable[[float], int], *, is_arithmetic: bool = True
) -> Decoder:
    return Decoder(name, int, INTEGER_TAGS, decode, encode, is_numeric=True, is_arithmetic=is_arithmetic)


def _octets(name: str, decode: Callable[[bytes], Typed | Reject], encode: Callable[[Any], bytes]) -> Decoder:
    return Decoder(name, bytes, _OCTET_TAGS, decode, encode, absent=b"")


_ALL = (
    _integers("integer", _keep, _integer),
    # 16-bit two's complement in an unsigned type.
    _integers("signed16", _signed16, lambda value: round(value) & 0xFFFF),
    # Some firmware drops the minus sign of a power that is always negative.
    _integers("negative_magnitude", lambda raw: -abs(raw), _integer),
    _integers("milliwatt_10000", decode_milliwatts, lambda dbm: round(10 ** (dbm / 10) * 10_000), is_arithmetic=False),
    Decoder("text", bytes, _OCTET_TAGS, clean_text, str.encode, reads_all=True, absent=b""),
    _octets("gpon_sn8", decode_serial, encode_serial),
    # The same serial from devices that spell it out.
    _octets("gpon_sn_text", decode_serial, str.encode),
    # Of firmware that has something else in this column.
    _octets("gpon_sn_strict", decode_strict_serial, str.encode),
    Decoder("date_and_time", bytes, _OCTET_TAGS, decode_date_and_time, encode_date_and_time, absent=bytes(8)),
    Decoder(
        "text_number",
        bytes,
        _OCTET_TAGS,
        decode_text_number,
        lambda value: f"{value:.2f}".encode(),
        is_numeric=True,
        absent=b"--",
    ),
    _octets("mac", decode_mac, lambda mac: bytes.fromhex(mac.replace(":", ""))),
    Decoder("object_id", tuple, frozenset((int(Tag.OBJECT_IDENTIFIER),)), _dotted, parse_oid, reads_all=True),
)

DECODERS: Mapping[str, Decoder] = {decoder.name: decoder for decoder in _ALL}

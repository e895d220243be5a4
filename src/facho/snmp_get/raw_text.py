"""Writes what a device sent as text that is safe to store and show: printable and bounded, or hexadecimal digits."""

from ipaddress import IPv4Address

from facho.polling.snmp.ber import Tag, Value
from facho.polling.snmp.oid import format_oid

MAX_TEXT = 255

# What an agent sends instead of a value.
NO_VALUE_TAGS = frozenset(map(int, (Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE, Tag.END_OF_MIB_VIEW, Tag.NULL)))

_TAGS = frozenset(map(int, Tag))


def raw_text(tag: int, raw: Value) -> str:
    """Write a value as it came; asked for every value of every walk."""
    if type(raw) is int:
        return str(raw)
    if not isinstance(raw, bytes):
        return _cut(format_oid(raw)) if isinstance(raw, tuple) else str(raw)
    if tag == Tag.IP_ADDRESS and len(raw) == 4:
        return str(IPv4Address(raw))
    return _cut(_text(raw))


def is_odd(tag: int, raw: Value) -> bool:
    """Tell whether octets cannot be shown as they came, because they are no printable text or too long."""
    return isinstance(raw, bytes) and tag != Tag.IP_ADDRESS and (len(raw) > MAX_TEXT or _printable(raw) is None)


def tag_name(tag: int) -> str:
    """Name the type of a value as it was on the wire."""
    return Tag(tag).name.lower() if tag in _TAGS else f"0x{tag:02x}"


def _text(raw: bytes) -> str:
    text = _printable(raw)
    return f"0x{raw.hex()}" if text is None else text


def _printable(raw: bytes) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"

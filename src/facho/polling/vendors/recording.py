"""Reads and writes recordings of devices (`.snmprec`): one line a value, `oid|type|value`, sorted by OID.

The type is the number of the BER tag; an `x` after it says that the value is in hexadecimal. Other tools write
the same form, so that their recordings can be replayed here.
"""

from collections.abc import Iterable

from facho.polling.snmp.ber import Tag, Value, VarBind
from facho.polling.vendors.decoders import INTEGER_TAGS, parse_oid


class RecordingError(ValueError):
    """A line of a recording that cannot be read; names the line."""

    code = "recording_invalid"


def read_recording(text: str) -> tuple[VarBind, ...]:
    """Return the values of a recording in the order of their OIDs; empty lines and # comments are skipped."""
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
    return "".join(f"{_write_line(row)}\n" for row in sorted(rows, key=lambda row: row[0]))


def _read_line(line: str) -> VarBind:
    parts = line.split("|", 2)
    if len(parts) != 3:
        raise ValueError("not of the form oid|type|value")
    oid, kind, text = parts
    is_hex = kind.endswith("x")
    tag = Tag(int(kind.removesuffix("x")))
    if is_hex and tag not in (Tag.OCTET_STRING, Tag.OPAQUE, Tag.IP_ADDRESS):
        raise ValueError("only octets are written in hexadecimal")
    return parse_oid(oid), int(tag), bytes.fromhex(text) if is_hex else _value(tag, text)


def _value(tag: Tag, text: str) -> Value:
    if tag in INTEGER_TAGS:
        return int(text)
    if tag is Tag.OBJECT_IDENTIFIER:
        return parse_oid(text)
    if tag is Tag.IP_ADDRESS:
        return bytes(map(int, text.split(".")))
    if tag is Tag.OCTET_STRING:
        return text.encode()
    raise ValueError(f"type {tag} has no place in a recording")


def _write_line(row: VarBind) -> str:
    oid, tag, value = row
    dotted = ".".join(map(str, oid))
    if isinstance(value, bytes):
        if tag == Tag.OCTET_STRING and value.isascii() and value.decode("ascii").isprintable():
            return f"{dotted}|{tag:d}|{value.decode('ascii')}"
        return f"{dotted}|{tag:d}x|{value.hex()}"
    text = ".".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"{dotted}|{tag:d}|{text}"

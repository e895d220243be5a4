"""Named decoders: the vectors given, text from hostile devices, and the way back."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.snmp.ber import Tag
from facho.polling.vendors.column import Column, ColumnReader
from facho.polling.vendors.decoders import (
    DECODERS,
    MAX_TEXT_LENGTH,
    clean_text,
    decode_date_and_time,
    decode_mac,
    decode_serial,
    decode_text_number,
    encode_date_and_time,
    encode_serial,
    parse_oid,
)
from facho.polling.vendors.index import build_index
from facho.polling.vendors.schema import Section
from facho.polling.vendors.vocabulary import Confidence, Cost, Reject, Scope

RULES = yaml.safe_load((Path(__file__).parent / "data" / "decoder_vectors.yaml").read_text())
VECTORS = [
    pytest.param(rule["column"], vector, id=f"{name}-{vector.get('hex', vector.get('text', vector.get('raw')))}")
    for name, rule in RULES.items()
    for vector in rule["vectors"]
]
serials = st.builds(
    lambda vendor, number: vendor + number.hex().upper(),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=4, max_size=4),
    st.binary(min_size=4, max_size=4),
)


def column_of(data: dict[str, Any]) -> Column:
    reader = ColumnReader((1, 3), build_index("row", Scope.SCALAR, []), Cost.STATE, Confidence.HIGH)
    return reader.read("test.column", Section.of({"id": 1, **data}, "test.yaml", "column"))


def raw_of(vector: dict[str, Any]) -> tuple[Tag, int | bytes]:
    if "raw" in vector:
        return Tag.INTEGER, vector["raw"]
    return Tag.OCTET_STRING, bytes.fromhex(vector["hex"]) if "hex" in vector else vector["text"].encode()


@pytest.mark.parametrize(("column", "vector"), VECTORS)
def test_vector_decodes_to_its_value(column: dict[str, Any], vector: dict[str, Any]) -> None:
    value = column_of(column).decode(*raw_of(vector)).value

    assert (value.isoformat() if isinstance(value, datetime) else value) == vector["value"]


@pytest.mark.parametrize(("column", "vector"), VECTORS)
def test_value_of_a_vector_survives_the_way_to_the_wire_and_back(
    column: dict[str, Any], vector: dict[str, Any]
) -> None:
    built = column_of(column)
    value = built.decode(*raw_of(vector)).value
    if value is None and built.rule.decoder.name == "milliwatt_10000":
        value = -40.0  # this rule has no number of its own for "no reading"

    assert built.decode(*built.encode(value)).value == value


@pytest.mark.parametrize(
    "spelling",
    [
        b"HWTC0A1B2C3D",
        b"HWTC0a1b2c3d",
        b"485754430A1B2C3D",
        b"48 57 54 43 0A 1B 2C 3D",
        bytes.fromhex("485754430A1B2C3D"),
        b"HWTC0A1B2C3D\x00",
        b"HWTC-0A1B2C3D",
    ],
)
def test_serial_has_one_spelling_however_it_arrives(spelling: bytes) -> None:
    assert decode_serial(spelling) == "HWTC0A1B2C3D"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (bytes(8), Reject.SENTINEL),
        (b"", Reject.SENTINEL),
        (b"short", Reject.MALFORMED),
        (b"a-serial-far-too-long", Reject.MALFORMED),
        (bytes.fromhex("000102030A1B2C3D"), "000102030A1B2C3D"),
        (b"ITBS-5F7B1FCD", "ITBS5F7B1FCD"),
        (b"ITBS_00123456", "ITBS_00123456"),
    ],
)
def test_odd_serial_is_kept_when_it_can_name_an_onu(raw: bytes, expected: str | Reject) -> None:
    assert decode_serial(raw) == expected


@pytest.mark.parametrize("raw", [b"Customer no 9", b"1.0.2", b"000102030A1B2C3D"])
def test_strict_serial_is_nothing_but_a_serial(raw: bytes) -> None:
    assert DECODERS["gpon_sn_strict"].decode(raw) is Reject.MALFORMED
    assert DECODERS["gpon_sn_strict"].decode(b"TPLG-0a1b2c3d") == "TPLG0A1B2C3D"


@given(serials)
def test_serial_survives_the_way_to_the_wire_and_back(serial: str) -> None:
    octets = encode_serial(serial)

    assert len(octets) == 8
    assert decode_serial(octets) == serial


def test_text_serial_is_spelled_out_on_the_wire() -> None:
    assert DECODERS["gpon_sn_text"].encode("FHTT1231E796") == b"FHTT1231E796"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("Peña 12".encode(), "Peña 12"),
        ("Peña 12".encode("latin-1"), "Peña 12"),
        (b"line\r\nbreak\x00", "line  break"),
        (b"\x1b[31mred\x07", "[31mred"),
        ("a\u202etxt.exe".encode(), "atxt.exe"),
        (b"   ", ""),
        (b"x" * 5000, "x" * MAX_TEXT_LENGTH),
    ],
)
def test_text_from_a_device_is_made_harmless(raw: bytes, expected: str) -> None:
    assert clean_text(raw) == expected


@given(st.binary(max_size=2000))
def test_any_octets_give_printable_bounded_text(raw: bytes) -> None:
    text = clean_text(raw)

    assert text.isprintable()
    assert len(text) <= MAX_TEXT_LENGTH


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"2023-02-18 03:42:40", datetime.fromisoformat("2023-02-18 03:42:40")),
        (b"0000-00-00 00:00:00", Reject.SENTINEL),
        (b"--", Reject.SENTINEL),
        (b"", Reject.SENTINEL),
        (b"yesterday at 9", Reject.MALFORMED),
        (b"2023-13-18 03:42:40", Reject.MALFORMED),
        (bytes.fromhex("07E70D12032A2800"), Reject.MALFORMED),
        (bytes.fromhex("07E70200032A2800"), Reject.MALFORMED),
        (bytes.fromhex("07E7021203 2A2800 2BFF00"), Reject.MALFORMED),
        (bytes.fromhex("07E70212032A3C00"), datetime.fromisoformat("2023-02-18 03:42:59")),
    ],
)
def test_time_is_read_from_text_too_and_nonsense_is_refused(raw: bytes, expected: datetime | Reject) -> None:
    assert decode_date_and_time(raw) == expected


@given(
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-5))])),
    st.integers(0, 9),
)
def test_time_survives_the_way_to_the_wire_and_back(moment: datetime, decisecond: int) -> None:
    moment = moment.replace(microsecond=decisecond * 100_000)

    assert decode_date_and_time(encode_date_and_time(moment)) == moment


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (bytes.fromhex("001A2B3C4D5E"), "00:1A:2B:3C:4D:5E"),
        (b"00:1a:2b:3c:4d:5e", "00:1A:2B:3C:4D:5E"),
        (b"001a-2b3c-4d5e", "00:1A:2B:3C:4D:5E"),
        (bytes(6), Reject.SENTINEL),
        (b"", Reject.SENTINEL),
        (b"not a mac", Reject.MALFORMED),
    ],
)
def test_hardware_address_has_one_spelling(raw: bytes, expected: str | Reject) -> None:
    assert decode_mac(raw) == expected


@pytest.mark.parametrize(
    "name", ["gpon_sn8", "gpon_sn_text", "gpon_sn_strict", "date_and_time", "text_number", "mac", "text"]
)
@given(raw=st.binary(max_size=300) | st.text(max_size=60).map(str.encode))
def test_no_octets_make_a_decoder_raise(name: str, raw: bytes) -> None:
    DECODERS[name].decode(raw)


def test_long_text_is_no_way_to_keep_a_number_decoder_busy() -> None:
    assert decode_text_number(b"(" * 60_000 + b"-14 dBm)") is Reject.SENTINEL


@pytest.mark.parametrize("text", ["", "1", "1..3", "1.3.", "a.b", "1.-3", "1.3.6.1\n", "1.99999999999"])
def test_text_that_is_no_oid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a dotted OID"):
        parse_oid(text)

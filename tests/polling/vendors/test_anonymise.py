"""Recordings that may be given away: what is replaced, what stays, and that nothing telling slips through."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.snmp.ber import Oid, Tag, Value, VarBind
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID, SYSTEM, is_under
from facho.polling.vendors.anonymise import MAY_STAY, anonymise, read_recording
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place, spell_serial
from facho.polling.vendors.loader import load_definitions
from learned_rows import learned

RECORDINGS = Path(__file__).parent / "recordings"
SALT = b"a salt of the tests"
FAMILIES = load_definitions()
HUAWEI, ZTE, VSOL, UFIBER, GENERIC = (
    FAMILIES[key] for key in ("huawei_smartax", "zte_c300_c320", "vsol_gpon_v1600g", "ubiquiti_ufiber", "generic")
)
OCTETS = int(Tag.OCTET_STRING)
TELLING = {"text", "gpon_sn8", "gpon_sn_text", "gpon_sn_strict", "mac"}

makers = st.sampled_from(["HWTC", "ZTEG", "FHTT"])
serials = st.builds(lambda maker, tail: maker.encode() + tail, makers, st.binary(min_size=4, max_size=4))


# Where rows are numbered by serials, their numbers change with them.
@pytest.fixture(params=[key for key in FAMILIES if key not in ("eltex_ltp", "ubiquiti_ufiber")])
def family(request: pytest.FixtureRequest) -> Definition:
    return FAMILIES[request.param]


def recorded(family: Definition) -> tuple[VarBind, ...]:
    return read_recording((RECORDINGS / f"{family.key}.snmprec").read_text("utf-8"))


def disguised(family: Definition, key: str, *values: Value, tag: int = OCTETS) -> list[Value]:
    """Anonymise values of one column, in rows one after the other."""
    column = family.column(key)
    rows = [((*column.oid, 4194312448, number), tag, value) for number, value in enumerate(values)]
    return [value for _, _, value in anonymise(rows, family, salt=SALT)]


def described(family: Definition, system: dict[Oid, Value]) -> dict[Oid, Value]:
    rows = [(oid, 6 if isinstance(value, tuple) else OCTETS, value) for oid, value in system.items()]
    return {oid: value for oid, _, value in anonymise(rows, family, salt=SALT)}


def outcomes(family: Definition, rows: list[VarBind] | tuple[VarBind, ...]) -> list[Any]:
    """Decode rows: places, reasons of rejection, and every value that is no text."""
    found = []
    family = learned(family, rows)
    for oid, tag, raw in rows:
        for column in family.columns.values():
            if oid[: len(column.oid)] == column.oid:
                value, reason = column.decode(tag, raw)
                is_word = column.rule.words or not isinstance(value, str)
                found.append((column.key, column.index.decode(oid[len(column.oid) :]), is_word and value, reason))
    return found


def test_a_recording_decodes_to_the_same_places_states_and_numbers(family: Definition) -> None:
    rows = recorded(family)

    result = anonymise(rows, family, salt=SALT)

    assert [(oid, tag) for oid, tag, _ in result] == [(oid, tag) for oid, tag, _ in rows]
    assert outcomes(family, result) == outcomes(family, rows)


def test_a_recording_keeps_neither_serial_nor_name(family: Definition) -> None:
    rows = recorded(family)
    named = (*MAY_STAY, *family.naming_columns)
    unsafe = [c for c in family.columns.values() if c.key not in named and not c.rule.words]
    telling = {c.oid for c in unsafe if c.rule.decoder.name in TELLING}

    result = anonymise(rows, family, salt=SALT)

    for (oid, _, old), (_, _, new) in zip(rows, result, strict=True):
        # What `facho record` wrote has its names replaced already.
        is_telling = isinstance(old, bytes) and old and not re.fullmatch(rb"Text \d+", old)
        if is_telling and any(oid[: len(prefix)] == prefix for prefix in telling):
            assert isinstance(old, bytes)
            assert isinstance(new, bytes)
            assert old[4:] not in new


def test_a_serial_in_an_index_becomes_the_same_as_in_its_column() -> None:
    rows = recorded(UFIBER)
    serial = UFIBER.column("onu.serial")

    result = anonymise(rows, UFIBER, salt=SALT)

    spelt = {spell_serial(raw.decode()): oid[len(serial.oid) :] for oid, _, raw in result if is_under(oid, serial.oid)}
    assert len(result) == len(rows)
    assert len(spelt) == 2
    assert all(one == other for one, other in spelt.items())
    spelling = {oid[-8:] for oid, _, _ in rows if is_under(oid, serial.oid[:-1])}
    assert not spelling & {oid[-8:] for oid, _, _ in result}


def test_every_column_that_is_not_known_to_be_harmless_is_disguised(family: Definition) -> None:
    canary = b"Canary 7f3a of ours"
    rows = [((*column.oid, 1), OCTETS, canary) for column in family.columns.values() if column.shares is None]

    result = {oid[:-1] for oid, _, value in anonymise(rows, family, salt=SALT) if isinstance(value, bytes)}
    kept = {oid[:-1] for oid, _, value in anonymise(rows, family, salt=SALT) if value == canary}

    assert result == {column.oid for column in family.columns.values()}
    assert {column.key for column in family.columns.values() if column.oid in kept} <= MAY_STAY


def test_only_columns_that_exist_are_called_harmless() -> None:
    assert {key for definition in FAMILIES.values() for key in definition.columns} >= MAY_STAY


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (bytes.fromhex("485754430A1B2C3D"), rb"(?s)HWTC.{4}"),
        (b"HWTC0A1B2C3D", rb"HWTC[0-9A-F]{8}"),
        (b"FHTT1231e796", rb"FHTT[0-9a-f]{8}"),
        (b"HWTC0A1B2C3D\x00", rb"HWTC[0-9A-F]{8}\x00"),
        (b"485754430A1B2C3D", rb"48575443[0-9A-F]{8}"),
        (b"49 54 42 53 5F 7B 1F CD", rb"49 54 42 53( [0-9A-F]{2}){4}"),
        (b"00255E12ABCD", rb"(?!0025)[0-9A-F]{12}"),
        (bytes.fromhex("000102030A1B2C3D"), rb"(?s)[\x80-\xff]{4}.{4}"),
        (b"a serial of 16 c", rb"Text 1\.{6}"),
        (b"too short", rb"Text 1"),
    ],
)
def test_a_serial_keeps_its_maker_and_its_form(raw: bytes, form: bytes) -> None:
    [new] = disguised(HUAWEI, "onu.serial", raw)

    assert isinstance(new, bytes)
    assert re.fullmatch(form, new)
    column = HUAWEI.column("onu.serial")
    assert column.decode(OCTETS, new).reason == column.decode(OCTETS, raw).reason
    assert raw[-4:] not in new


def test_a_serial_is_the_same_in_every_spelling() -> None:
    octets, text, spaced = disguised(HUAWEI, "onu.serial", b"HWTC\n\x1b,=", b"HWTC0A1B2C3D", b"48 57 54 43 0A 1B 2C 3D")

    decode = HUAWEI.column("onu.serial").decode
    assert decode(OCTETS, octets) == decode(OCTETS, text) == decode(OCTETS, spaced)


@given(st.lists(serials, min_size=1, max_size=30))
def test_equal_serials_stay_equal_others_differ_and_none_is_a_true_one(values: list[bytes]) -> None:
    result = disguised(HUAWEI, "onu.serial", *values)

    pairs = set(zip(values, result, strict=True))
    assert len(pairs) == len(set(values)) == len(set(result))
    assert not {value[4:] for value in values} & {new[4:] for new in result if isinstance(new, bytes)}


@given(st.lists(st.text(st.characters(categories=["L", "N", "Zs"]), min_size=4, max_size=30), max_size=10))
def test_no_name_is_left(names: list[str]) -> None:
    raw = [name.encode() for name in names if name.strip()]

    for old, new in zip(raw, disguised(HUAWEI, "onu.description", *raw), strict=True):
        assert isinstance(new, bytes)
        assert new
        assert old not in new


def test_equal_names_stay_equal_whatever_their_padding() -> None:
    assert disguised(HUAWEI, "onu.description", b"Ana", b"Eva", b"Ana\r\n", b"--", b"", b" \x00") == [
        b"Text 1",
        b"Text 2",
        b"Text 1",
        b"--",
        b"",
        b" \x00",
    ]


def test_binary_octets_become_as_many_others() -> None:
    [new] = disguised(HUAWEI, "onu.loid", b"\x01\x02secret\x1f")

    assert isinstance(new, bytes)
    assert (len(new), b"secret" in new) == (9, False)


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (bytes.fromhex("AC4E91123456"), rb"(?s)\x02.{5}"),
        (b"ac:4e:91:12:34:56", rb"02(:[0-9a-f]{2}){5}"),
        (b"AC4E-9112-3456", rb"02[0-9A-F]{2}(-[0-9A-F]{4}){2}"),
        (bytes(6), rb"\x00{6}"),
        (b"no address at all", rb"Text 1\."),
    ],
)
def test_a_hardware_address_becomes_a_locally_administered_one(raw: bytes, form: bytes) -> None:
    [new] = disguised(HUAWEI, "onu.mac", raw)

    assert isinstance(new, bytes)
    assert re.fullmatch(form, new)


def test_an_internet_address_becomes_one_for_documents() -> None:
    addresses = [bytes((10, 0, number // 256, number % 256)) for number in range(1, 300)]

    result = disguised(HUAWEI, "onu.distance", bytes(4), *addresses, addresses[0], tag=Tag.IP_ADDRESS)

    assert result[:2] == [bytes(4), b"\xc0\x00\x02\x01"]
    assert result[-1] == result[1]
    assert len(set(result)) == 300
    assert {value[:3] for value in result[1:] if isinstance(value, bytes)} == {b"\xc0\x00\x02", b"\xc6\x33\x64"}


@pytest.mark.parametrize("raw", [b"30.67 C", b"2.38 mW (3.77 dBm)", b"-19.32(dBm)", b"--", b"N/A", b"-80.00"])
def test_measures_that_a_device_spells_out_stay(raw: bytes) -> None:
    assert disguised(VSOL, "onu.rx_power", raw) == [raw]


@pytest.mark.parametrize(
    "raw", [b"2023-02-18 03:42:40", bytes.fromhex("07E80B1E173B3B002D0500"), bytes.fromhex("07E70212032A2800"), b"N/A"]
)
def test_times_stay(raw: bytes) -> None:
    assert disguised(ZTE, "onu.last_up", raw) == [raw]


@pytest.mark.parametrize(("family", "key"), [(VSOL, "onu.rx_power"), (ZTE, "onu.last_up"), (HUAWEI, "onu.distance")])
def test_a_name_in_a_column_of_numbers_or_times_is_disguised(family: Definition, key: str) -> None:
    assert disguised(family, key, "Peña 7".encode()) == [b"Text 1"]


def test_numbers_and_object_ids_stay() -> None:
    assert disguised(HUAWEI, "onu.distance", -2177, tag=Tag.INTEGER) == [-2177]
    assert disguised(HUAWEI, "onu.distance", (1, 3, 6, 1), tag=Tag.OBJECT_IDENTIFIER) == [(1, 3, 6, 1)]


def test_opaque_octets_are_disguised_even_in_a_harmless_column() -> None:
    assert disguised(HUAWEI, "onu.model", b"secret", tag=Tag.OPAQUE) == [b"Text 1"]


def test_a_value_of_two_columns_stays_only_if_it_may_in_both() -> None:
    assert disguised(FAMILIES["fiberhome_an5516"], "onu.description", b"Customer") == [b"Text 1"]


def test_an_index_that_may_spell_something_is_left_out() -> None:
    column = HUAWEI.column("onu.distance")
    rows: list[VarBind] = [
        ((*column.oid, 4194312448, 2), 2, 1),
        ((*column.oid, 9, 4194312448), 2, 2),
        ((*column.oid, 4, *b"Pena"), 2, 3),
        ((*column.oid, 4194312448, 10, 0, 0, 1), 2, 4),
        ((1, 3, 6, 1, 4, 1, 99999, 1), 2, 5),
    ]

    assert [value for _, _, value in anonymise(rows, HUAWEI, salt=SALT)] == [2, 1]


def test_an_index_of_small_numbers_that_is_a_place_is_kept() -> None:
    column = ZTE.column("board.cpu")

    assert anonymise([(column.instance(Place(1, 4)), 2, 11)], ZTE, salt=SALT)


def test_contact_name_and_location_are_disguised_and_the_device_stays_known() -> None:
    contact, location = (*SYSTEM, 4, 0), (*SYSTEM, 6, 0)
    reported: dict[Oid, Value] = {
        SYS_DESCR: b"V1600G1",
        SYS_OBJECT_ID: (1, 3, 6, 1, 4, 1, 37950, 1),
        SYS_NAME: b"olt-centro",
    }

    result = described(VSOL, {**reported, contact: b"ana@isp.example", location: b"Calle 1"})

    assert (result[SYS_DESCR], result[SYS_OBJECT_ID]) == (reported[SYS_DESCR], reported[SYS_OBJECT_ID])
    assert [result[contact], result[SYS_NAME], result[location]] == [b"Text 1", b"Text 2", b"Text 3"]


def test_a_description_loses_the_name_that_the_device_repeats_in_it() -> None:
    result = described(GENERIC, {SYS_DESCR: b"Linux olt-centro 5.10 armv7l", SYS_NAME: b"olt-centro"})

    assert result[SYS_DESCR] == b"Linux Text 1 5.10 armv7l"


def test_a_device_named_like_its_model_is_still_recognised() -> None:
    object_id = (1, 3, 6, 1, 4, 1, 37950, 1)

    result = described(VSOL, {SYS_DESCR: b"V1600G1", SYS_NAME: b"V1600G1", SYS_OBJECT_ID: object_id})

    assert (result[SYS_DESCR], result[SYS_NAME]) == (b"V1600G1", b"Text 1")


def test_a_description_of_a_wrong_type_is_disguised() -> None:
    [(_, _, value)] = anonymise([(SYS_DESCR, int(Tag.OPAQUE), b"secret")], GENERIC, salt=SALT)

    assert value == b"Text 1"


def test_the_salt_decides() -> None:
    rows: list[VarBind] = [((*HUAWEI.column("onu.serial").oid, 4194312448, 2), OCTETS, b"HWTC0A1B2C3D")]

    assert anonymise(rows, HUAWEI, salt=SALT) == anonymise(rows, HUAWEI, salt=SALT)
    assert anonymise(rows, HUAWEI, salt=SALT) != anonymise(rows, HUAWEI, salt=b"another salt")


VENDOR = (1, 3, 6, 1, 4, 1, 99999)


@pytest.mark.parametrize(
    ("suffix", "value", "kept"),
    [
        ((1, 1, 5, 1, 3, 12), b"-21.50 dBm", b"-21.50 dBm"),
        ((1, 1, 5, 1, 3, 12), b"Juan Perez", b"Text 1"),
        ((1, 1, 5, 4194304000, 12), b"--", b"--"),
        # A hardware address, and an address that the device repeats as a value.
        ((1, 1, 5, 0, 26, 77, 160, 33, 9), b"1", None),
        ((1, 1, 5, 10, 1, 2, 3), b"\x0a\x01\x02\x03", None),
    ],
)
def test_of_an_unknown_device_only_forms_and_places_are_kept(
    suffix: tuple[int, ...], value: bytes, kept: bytes | None
) -> None:
    rows = [(VENDOR + suffix, int(Tag.OCTET_STRING), value)]

    disguised = anonymise(rows, load_definitions()["generic"], salt=b"salt", unknown_below=VENDOR)

    assert [row[2] for row in disguised] == ([] if kept is None else [kept])


def test_an_index_of_an_unknown_device_spells_another_serial() -> None:
    rows = [((*VENDOR, 1, 1, 12, *b"ACME0A1B2C3D"), int(Tag.INTEGER), 7)]

    [(oid, _, value)] = anonymise(rows, load_definitions()["generic"], salt=b"salt", unknown_below=VENDOR)

    spelled = bytes(oid[len(VENDOR) + 3 :])
    assert (value, len(spelled), spelled[:4]) == (7, 12, b"ACME")
    assert spelled != b"ACME0A1B2C3D"

"""A vendor is three files: its definition, a recording and the rows expected of it; this proves them all."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.onu_table import Reading
from facho.polling.snmp.ber import Tag, VarBind
from facho.polling.vendors.anonymise import RecordingError, read_recording, write_recording
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions, recognise, recognise_by_tables, tables_to_ask
from facho.polling.vendors.vocabulary import Scope
from facho.snmp_get.reading import GatheredOnus
from learned_rows import learned
from onu_tables import column_rows

RECORDINGS = Path(__file__).parent / "recordings"
SYS_DESCR, SYS_OBJECT_ID = (1, 3, 6, 1, 2, 1, 1, 1, 0), (1, 3, 6, 1, 2, 1, 1, 2, 0)
oids = st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=12).map(tuple)
varbinds = st.tuples(
    oids,
    st.just(int(Tag.OCTET_STRING)),
    st.binary(max_size=40) | st.text("abc |#", max_size=20).map(str.encode),
) | st.tuples(oids, st.sampled_from([int(Tag.INTEGER), int(Tag.COUNTER64)]), st.integers(0, 2**31 - 1))


@pytest.fixture(params=load_definitions())
def family(request: pytest.FixtureRequest) -> Definition:
    return load_definitions()[request.param]


def recorded(family: Definition) -> tuple[VarBind, ...]:
    return read_recording((RECORDINGS / f"{family.key}.snmprec").read_text("utf-8"))


def columns_at(family: Definition, oid: tuple[int, ...]) -> list[Column]:
    return [column for column in family.columns.values() if oid[: len(column.oid)] == column.oid]


def rows_of(family: Definition, values: tuple[VarBind, ...]) -> dict[str, Any]:
    family = learned(family, values)
    rows: dict[str, dict[str, Any]] = {}
    rejected: Counter[str] = Counter()
    refused = set()
    for oid, tag, raw in values:
        columns = columns_at(family, oid)
        places = [column.index.decode(oid[len(column.oid) :]) for column in columns]
        if columns and not any(place is not None for place in places):
            refused.add(oid)
        for column, place in zip(columns, places, strict=True):
            if place is None:
                continue
            decoded = column.decode(tag, raw)
            if decoded.reason is not None:
                rejected[f"{column.key} {decoded.reason}"] += 1
                continue
            value = decoded.value.isoformat() if isinstance(decoded.value, datetime) else decoded.value
            rows.setdefault(f"{column.index.scope} {'/'.join(map(str, place))}", {})[column.key] = value
    # What is stored of ONUs goes through their table.
    rows = {name: row for name, row in rows.items() if not name.startswith("onu ")} | onus_of(family, values)
    return {"rows": rows, "rejected": dict(rejected), "refused_indexes": len(refused)}


def onus_of(family: Definition, values: tuple[VarBind, ...]) -> dict[str, dict[str, Any]]:
    gathered = GatheredOnus(family)
    for column in family.columns_of(Scope.ONU):
        size = len(column.oid)
        rows = [(oid[size:], tag, raw) for oid, tag, raw in values if oid[:size] == column.oid]
        if not column.shares:
            gathered.add_walk([column.key], [column_rows(rows)])
    return {
        f"onu {'/'.join(map(str, of.place))}": reported for of in gathered.table().readings() if (reported := shown(of))
    }


def shown(onu: Reading) -> dict[str, Any]:
    reported = {key: value for key, value in onu.values.items() if value is not None}
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in reported.items()}


def test_recording_gives_the_expected_rows(family: Definition) -> None:
    expected = json.loads((RECORDINGS / f"{family.key}.json").read_text("utf-8"))

    assert rows_of(family, recorded(family)) == expected


def test_recorded_device_is_recognised_as_its_family(family: Definition) -> None:
    values = {oid: raw for oid, _tag, raw in recorded(family)}
    descr = values.get(SYS_DESCR, b"")

    object_id = values[SYS_OBJECT_ID]
    answering = [table for table in tables_to_ask(object_id) if any(oid[: len(table)] == table for oid in values)]

    assert recognise_by_tables(recognise(object_id, descr.decode()), object_id, answering) is family


def test_every_recording_belongs_to_a_definition() -> None:
    assert {path.stem for path in RECORDINGS.iterdir()} == set(load_definitions())


@given(st.lists(varbinds, max_size=10, unique_by=lambda row: row[0]))
def test_recording_survives_being_written_and_read(rows: list[VarBind]) -> None:
    assert read_recording(write_recording(rows)) == tuple(sorted(rows))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1.3.6.1|4", "oid|type|value"),
        ("1.3.x|4|text", "is not a dotted OID"),
        ("1.3.6|99|1", "not a valid Tag"),
        ("1.3.6|2|many", "invalid literal"),
        ("1.3.6|4x|zz", "non-hexadecimal"),
        ("1.3.6|2x|00", "only octets"),
        ("1.3.6|5|", "no place in a recording"),
    ],
)
def test_line_that_cannot_be_read_is_named(line: str, problem: str) -> None:
    with pytest.raises(RecordingError) as caught:
        read_recording(f"# a comment\n\n{line}\n")

    assert str(caught.value).startswith("line 3: ")
    assert problem in str(caught.value)


def test_recording_of_other_tools_is_read_with_addresses_and_object_ids() -> None:
    text = "1.3.6.2|64|127.0.0.1\n1.3.6.1|6|1.3.6\n1.3.6.3|64x|7f000001\n"

    assert read_recording(text) == (
        ((1, 3, 6, 1), 6, (1, 3, 6)),
        ((1, 3, 6, 2), 64, b"\x7f\x00\x00\x01"),
        ((1, 3, 6, 3), 64, b"\x7f\x00\x00\x01"),
    )
    assert read_recording(write_recording(read_recording(text))) == read_recording(text)

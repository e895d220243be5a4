"""What a column rests on: held against an extract of the vendors' MIBs, and what has no proof is listed."""

import csv
from collections.abc import Mapping
from pathlib import Path

import pytest
from tools.vendor_proof import CAPTURE, CUT, PAGE, all_columns, with_lists

from facho.polling.snmp.ber import Tag
from facho.polling.vendors.column import Column
from facho.polling.vendors.decoders import INTEGER_TAGS, parse_oid
from facho.polling.vendors.index import LearnedIndex
from facho.polling.vendors.vocabulary import Confidence, Scope, Unit

DATA = Path(__file__).parent / "data"
# What units are called in MIBs, with the scale to ours; only those that leave no doubt.
UNITS: Mapping[str, tuple[Unit, float]] = {
    "centi-dBm": (Unit.DBM, 0.01),
    "unit 0.01dBm": (Unit.DBM, 0.01),
    "units of 0.01dBm": (Unit.DBM, 0.01),
    "0.002 dBm": (Unit.DBM, 0.002),
    "0.1dBm": (Unit.DBM, 0.1),
    "0.1dbm": (Unit.DBM, 0.1),
    "0.001dBm": (Unit.DBM, 0.001),
    "unit is 0.1DBm": (Unit.DBM, 0.1),
    "Unit is 0.1dB": (Unit.DBM, 0.1),
    "0.00 dBm; 0.01 dBm; UNITS: NA": (Unit.DBM, 1),
    "centi-mA": (Unit.MILLIAMPERE, 0.01),
    "units of mA": (Unit.MILLIAMPERE, 1),
    "unit mA": (Unit.MILLIAMPERE, 1),
    "0.001mA": (Unit.MILLIAMPERE, 0.001),
    "centi-mV": (Unit.VOLT, 0.00001),
    "centi-V": (Unit.VOLT, 0.01),
    "units of 0.01V": (Unit.VOLT, 0.01),
    "unit mV": (Unit.VOLT, 0.001),
    "Unit is 100uV": (Unit.VOLT, 0.0001),
    "0.001 Volts": (Unit.VOLT, 0.001),
    "Centi-degree centigrade": (Unit.CELSIUS, 0.01),
    "C": (Unit.CELSIUS, 1),
    "units of C": (Unit.CELSIUS, 1),
    "unit C": (Unit.CELSIUS, 1),
    "unit: C": (Unit.CELSIUS, 1),
    "0.001Degrees": (Unit.CELSIUS, 0.001),
    "Unit is 1/256": (Unit.CELSIUS, 1 / 256),
    "Meter": (Unit.METRE, 1),
    "Unit: m": (Unit.METRE, 1),
    "1m": (Unit.METRE, 1),
    "percent": (Unit.PERCENT, 1),
    "%": (Unit.PERCENT, 1),
    "unit:1%": (Unit.PERCENT, 1),
    "UNITS: percentage": (Unit.PERCENT, 1),
    "Mbit/s": (Unit.MEGABIT_PER_SECOND, 1),
    "unit:bps": (Unit.MEGABIT_PER_SECOND, 0.000001),
}
# Sub-identifiers of an index that is a serial of twelve letters, and of a slot with a serial of eight octets.
SPELLED = {1: 1 + 12, 2: 1 + 1 + 8}
OCTETS = ("OCTET STRING", "DisplayString", "MacAddress", "PhysAddress")
INTEGERS = ("INTEGER", "Integer32", "Unsigned32", "UnsignedPercent", "TruthValue", "Gauge", "TimeTicks", "Counter64")


def read_objects() -> dict[str, dict[str, str]]:
    with (DATA / "mib_objects.tsv").open(encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


OBJECTS = read_objects()
PROVEN = [
    pytest.param(column, id=f"{key}-{column.key}")
    for key, column in all_columns()
    if column.proof and not column.proof.startswith(CAPTURE)
]


@pytest.mark.parametrize("column", PROVEN)
def test_column_is_the_object_that_it_names(column: Column) -> None:
    found = OBJECTS[column.proof]

    assert parse_oid(found["oid"]) == column.oid
    assert column.rule.tag in tags_of(found["type"])


@pytest.mark.parametrize("column", [param for param in PROVEN if param.values[0].rule.words])
def test_column_knows_every_number_of_its_enumeration(column: Column) -> None:
    numbers = {int(number) for number in OBJECTS[column.proof]["enumeration"].split() if number != CUT}

    assert numbers <= {*column.rule.words, *column.rule.sentinels}


def test_enumerations_that_the_table_of_mib_objects_cuts_are_these() -> None:
    """Of these a number may be missing in the definition, and no test would tell."""
    words = [(key, column) for key, column in all_columns() if column.rule.words and column.proof in OBJECTS]

    cut = {(key, column.key) for key, column in words if OBJECTS[column.proof]["enumeration"].endswith(CUT)}

    assert cut == {
        ("calix_exa", "onu.admin_state"),
        ("dasan", "onu.last_down_cause"),
        ("eltex_ltp", "onu.run_state"),
    }


@pytest.mark.parametrize("column", PROVEN)
def test_column_has_the_index_of_its_table(column: Column) -> None:
    clause = [part for part in OBJECTS[column.proof]["index"].split(",") if part.strip()]
    is_spelled = isinstance(column.index, LearnedIndex) and not column.index.forms

    assert (not clause) == (column.index.scope is Scope.SCALAR)
    # A serial in an index takes a sub-identifier for its length and one for each octet.
    assert column.index.length == (len(clause) if clause and not is_spelled else SPELLED.get(len(clause), 1))


@pytest.mark.parametrize("column", [param for param in PROVEN if OBJECTS[param.values[0].proof]["unit"] in UNITS])
def test_column_has_the_unit_and_scale_of_its_object(column: Column) -> None:
    unit, scale = UNITS[OBJECTS[column.proof]["unit"]]

    assert column.unit is unit
    assert float(column.rule.scale) == pytest.approx(scale)


def test_extract_holds_what_columns_name_and_nothing_else() -> None:
    assert {param.values[0].proof for param in PROVEN} == set(OBJECTS)


def test_lists_of_families_and_of_columns_without_proof_are_current() -> None:
    """`python -m tools.vendor_proof` writes them."""
    page = PAGE.read_text("utf-8")

    assert with_lists(page) == page


def test_column_of_high_confidence_without_proof_belongs_to_a_family_that_drivers_agree_on() -> None:
    unproven = {key for key, column in all_columns() if column.confidence is Confidence.HIGH and not column.proof}

    assert unproven <= {"bdcom_epon", "datacom_dmos", "zte_c300_c320", "zte_c600_titan"}


def tags_of(written: str) -> frozenset[int]:
    if written.startswith(OCTETS):
        return frozenset((int(Tag.OCTET_STRING),))
    if written.startswith("OBJECT"):
        return frozenset((int(Tag.OBJECT_IDENTIFIER),))
    assert written.startswith(INTEGERS), written
    return INTEGER_TAGS

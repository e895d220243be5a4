"""What one column means for another: which stands in, when it counts, and what an OLT does not tell apart."""

from collections.abc import Mapping
from importlib.resources import files

import numpy as np
import pytest

from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.onu_table import NO_VALUE, OnuTable
from facho.polling.snmp.ber import Tag
from facho.polling.vendors.column import RowRule, settle
from facho.polling.vendors.loader import load_definitions, read_definition
from facho.polling.vendors.schema import DefinitionError
from facho.snmp_get.reading import pack_values
from onu_tables import Told, table_of

HUAWEI = (files("facho.polling.vendors") / "definitions" / "huawei_smartax.yaml").read_text("utf-8")


def settled(rules: Mapping[str, RowRule], *rows: dict[str, object]) -> list[dict[str, object]]:
    """Return rows, of one ONU each, as the rules leave them."""
    raw = [{key: str(value) for key, value in row.items() if value is not None} for row in rows]
    table = table_of(*(Told((0, 0, 1, at), row, raw[at]) for at, row in enumerate(rows)))
    return [reading.values for reading in settle(rules, table).readings()]


def test_column_stands_in_where_the_other_has_no_value() -> None:
    rows = settled({"b": RowRule(fills="a")}, {"a": None, "b": 2}, {"a": 1, "b": 2}, {"b": 2}, {"a": None, "b": None})

    assert [row.get("a") for row in rows] == [2, 1, 2, None]


def test_word_stands_in_for_a_word() -> None:
    los, gasp = {"b": DownCause.LOS}, {"a": DownCause.DYING_GASP, "b": DownCause.LOS}

    assert [row["a"] for row in settled({"b": RowRule(fills="a")}, los, gasp)] == [DownCause.LOS, DownCause.DYING_GASP]


def test_column_stands_in_for_one_that_was_not_read() -> None:
    assert settled({"b": RowRule(fills="a")}, {"b": 2.5}) == [{"b": 2.5, "a": 2.5}]


def test_column_counts_only_under_its_condition() -> None:
    rows = [{"a": "secret", "mode": 2}, {"a": "HWTC", "mode": 1}, {"a": "HWTC"}]

    assert [row["a"] for row in settled({"a": RowRule(when={"mode": (1,)})}, *rows)] == [None, "HWTC", None]


def test_row_whose_serial_cannot_be_true_has_other_columns() -> None:
    family = load_definitions()["tplink_deltastream"]
    keys = ("onu.serial", "onu.run_state", "onu.rx_power")
    sent = {
        "onu.serial": [(Tag.OCTET_STRING, b"TPLG0A1B2C3D"), (Tag.OCTET_STRING, b"Customer no 9"), (NO_VALUE, None)],
        "onu.run_state": [(Tag.INTEGER, 1)] * 3,
        "onu.rx_power": [(Tag.OCTET_STRING, b"-21.45")] * 3,
    }
    columns = tuple(family.column(key).of_onus(pack_values(sent[key]))[0] for key in keys)

    rows = family.settle(OnuTable(np.arange(3), columns)).readings()

    assert [(row.values["onu.run_state"], row.values["onu.rx_power"]) for row in rows] == [
        ("online", -21.45),
        (None, None),
        ("online", -21.45),
    ]


def test_what_a_guard_decides_is_read_with_its_guard() -> None:
    family = load_definitions()["tplink_deltastream"]

    assert set(family.companions(["onu.rx_power"])) == {"onu.rx_power", "onu.serial"}
    assert family.guards(["onu.run_state"]) == ("onu.run_state", "onu.serial")
    assert load_definitions()["huawei_smartax"].guards(["onu.run_state"]) == ("onu.run_state",)


def test_numbers_heed_the_rules() -> None:
    rows = [{"a": -20.5, "mode": 1, "b": -1.0}, {"a": -21.5, "mode": 2, "b": -2.0}]
    table = table_of(*(Told((0, 0, 1, at), row, {k: str(v) for k, v in row.items()}) for at, row in enumerate(rows)))

    columns = settle({"a": RowRule(when={"mode": (1,)}), "b": RowRule(fills="a")}, table).columns

    [numbers] = [column.numbers for column in columns if column.key == "a"]
    assert numbers is not None
    assert numbers.tolist() == [-20.5, -2.0]


@pytest.mark.parametrize(
    ("sent", "reported"), [((0, 1, 0), None), ((0, 1, 2), DownCause.LOS), ((0, 3, 1), DownCause.LOS)]
)
def test_olt_that_shows_no_other_cause_tells_none(sent: tuple[int, ...], reported: DownCause | None) -> None:
    family = load_definitions()["fiberhome_an5516"]
    cause, _ = family.column("onu.last_down_cause").of_onus(pack_values([(Tag.INTEGER, number) for number in sent]))

    [after] = family.settle(OnuTable(np.arange(len(sent)), (cause,))).columns

    assert after.values_of(np.array([0])) == [reported]
    # Stored values are read again when the OLT begins to tell causes apart.
    assert (after.rule == cause.rule) == (reported is not None)


def test_stand_ins_and_conditions_are_read_with_the_column() -> None:
    vsol, c600 = (load_definitions()[key] for key in ("vsol_gpon_v1600g", "zte_c600_titan"))

    assert vsol.companions(["onu.serial"]) == ("onu.serial", "onu.auth_mode", "onu.serial_detail")
    assert c600.companions(["onu.last_down_cause"]) == ("onu.last_down_cause", "onu.run_state")


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("fills: onu.nothing", "is no column"),
        ("when: {onu.nothing: [1]}", "is no column"),
        ("fills: pon.status", "about"),
    ],
)
def test_rule_that_names_nothing_is_refused(rule: str, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        read_definition(HUAWEI.replace("onu.loid: {id: 13,", f"onu.loid: {{id: 13, {rule},"), "huawei_smartax.yaml")

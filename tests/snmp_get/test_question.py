"""What a person means by columns, tables and OIDs, without asking any device."""

import pytest

from facho.polling.snmp.oid import SYS_NAME, format_oid, parse_oid
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_get.interactive import LIVE_ROWS, MAX_SUBJECTS, BadQuestion, Bounds, SnmpQuestion, Way, plan_question

HUAWEI = load_definitions()["huawei_smartax"]
GENERIC = load_definitions()["generic"]
BOUNDS = Bounds(rows=200, seconds=30)
ONU = Place(0, 1, 3, 7)


def plan(way: Way, *words: str, place: Place | None = None, vendor: str = "huawei_smartax") -> SnmpQuestion:
    return plan_question(way, words, load_definitions().get(vendor), place=place, bounds=BOUNDS)


def test_a_column_of_an_onu_is_read_at_its_place() -> None:
    (subject,) = plan(Way.GET, "onu.rx_power", place=ONU).subjects

    column = HUAWEI.column("onu.rx_power")
    assert (subject.column, subject.oid) == (column, column.instance(ONU))


def test_a_column_with_one_value_needs_no_place() -> None:
    scalar = next(column for column in GENERIC.columns.values() if column.index.scope == "scalar")

    (subject,) = plan(Way.GET, scalar.key, vendor="generic").subjects

    assert subject.oid == scalar.instance(Place())


def test_an_oid_is_asked_for_as_it_is_written() -> None:
    (subject,) = plan(Way.GET, f".{format_oid(SYS_NAME)}", vendor="").subjects

    assert (subject.oid, subject.column) == (SYS_NAME, None)


def test_an_oid_within_a_column_is_read_as_that_column() -> None:
    column = HUAWEI.column("onu.run_state")

    (subject,) = plan(Way.GET, format_oid(column.instance(ONU))).subjects

    assert subject.column == column


def test_a_table_is_all_its_columns() -> None:
    table = HUAWEI.tables[0]

    question = plan(Way.TABLE, table.name)

    assert [subject.column for subject in question.subjects] == list(table.columns)
    assert [subject.oid for subject in question.subjects] == [column.oid for column in table.columns]


@pytest.mark.parametrize(
    ("way", "word"), [(Way.WALK, "onu.rx_power"), (Way.TABLE, "onu.rx_power"), (Way.WALK, "1.3.6.1.4.1.2011.6.128")]
)
def test_what_the_olt_asks_its_onus_for_is_read_of_few(way: Way, word: str) -> None:
    """An OID above a live column is as dear as the column."""
    question = plan(way, word)

    assert (question.cost, question.max_rows) == (Cost.LIVE, LIVE_ROWS)


def test_a_cheap_question_keeps_its_rows() -> None:
    assert plan(Way.WALK, "onu.description").max_rows == BOUNDS.rows


@pytest.mark.parametrize(
    ("way", "word", "words"),
    [
        (Way.GET, "onu.rx_power", "choose one with --at"),
        (Way.GET, "onu.nothing", "huawei_smartax has no 'onu.nothing'. It has: onu.serial, "),
        (Way.WALK, "ifDescr", "huawei_smartax has no 'ifDescr'"),
        (Way.TABLE, "1.3.6.1", "huawei_smartax has no '1.3.6.1'. It has: onu_config, "),
        (Way.GET, "1.99.3", "has no '1.99.3'"),
    ],
)
def test_a_word_that_means_nothing_here_is_reported_with_what_would(way: Way, word: str, words: str) -> None:
    with pytest.raises(BadQuestion) as refusal:
        plan(way, word)

    assert words in str(refusal.value)


def test_a_place_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadQuestion, match="has no such place"):
        plan(Way.GET, "onu.rx_power", place=Place(0, 1, 3, 999))


@pytest.mark.parametrize("way", [Way.GET, Way.TABLE])
def test_an_olt_of_an_unknown_vendor_has_no_columns(way: Way) -> None:
    with pytest.raises(BadQuestion, match="until its vendor is known"):
        plan(way, "onu.rx_power", vendor="")


def test_a_question_has_an_end() -> None:
    with pytest.raises(BadQuestion, match="at most"):
        plan(Way.GET, *["1.3.6.1.2.1.1.1.0"] * (MAX_SUBJECTS + 1))


def test_a_walk_below_a_prefix_of_an_oid_is_no_walk_of_a_column() -> None:
    (subject,) = plan(Way.WALK, "1.3.6.1.2.1.1").subjects

    assert (subject.oid, subject.column) == (parse_oid("1.3.6.1.2.1.1"), None)

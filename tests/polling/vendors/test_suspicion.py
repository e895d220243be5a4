"""What is odd about the values of a column, of real definitions and made-up rows."""

from facho.polling.snmp.ber import Oid, Tag, Value
from facho.polling.vendors.column import Column
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import definition
from facho.polling.vendors.review import ColumnVerdict, Doubt, Suspicion, judge_column

PORT = 4194304000


def column(key: str) -> Column:
    return definition("huawei_smartax").column(key)


def judged(key: str, *values: Value, tag: int = Tag.INTEGER) -> ColumnVerdict:
    return judge_column(column(key), [((PORT, number), tag, value) for number, value in enumerate(values)])


def suspicions(verdict: ColumnVerdict) -> list[Suspicion]:
    return [doubt.suspicion for doubt in verdict.doubts]


def test_a_sound_column_has_no_doubts_and_an_example() -> None:
    verdict = judged("onu.rx_power", -2100, -1950, -2300, -2410)

    assert verdict.doubts == ()
    assert verdict.rows == 4
    assert verdict.example is not None
    assert (verdict.example.raw, verdict.example.value) == (-2100, -21.0)
    assert verdict.example.place == Place(0, 0, 0, 0)


def test_a_column_without_rows_is_suspicious() -> None:
    assert suspicions(judge_column(column("onu.rx_power"), [])) == [Suspicion.NO_ROWS]


def test_unknown_words_are_listed_with_their_numbers() -> None:
    verdict = judged("onu.run_state", 1, 77, 78, 77)

    assert verdict.doubts == (Doubt(Suspicion.UNKNOWN_ENUM, 3, (77, 78)),)


def test_values_out_of_range_are_shown_as_they_came() -> None:
    assert judged("onu.rx_power", -2100, 99999).doubts == (Doubt(Suspicion.OUT_OF_RANGE, 1, (99999,)),)


def test_another_type_than_that_of_the_column_is_named() -> None:
    assert judged("onu.rx_power", b"-21.00", tag=Tag.OCTET_STRING).doubts == (
        Doubt(Suspicion.WRONG_TYPE, 1, (b"-21.00",)),
    )


def test_a_sentinel_in_every_row_is_suspicious_and_in_some_is_not() -> None:
    assert suspicions(judged("onu.rx_power", 2147483647, 2147483647)) == [Suspicion.ONLY_SENTINELS]
    assert suspicions(judged("onu.rx_power", 2147483647, -2100)) == []


def test_what_should_differ_and_does_not_is_suspicious() -> None:
    assert suspicions(judged("onu.rx_power", -2100, -2100, -2100, -2100)) == [Suspicion.CONSTANT]
    assert suspicions(judged("onu.run_state", 1, 1, 1, 1)) == []
    assert suspicions(judged("onu.rx_power", -2100, -2100)) == []


def test_rows_whose_index_means_nothing_are_counted() -> None:
    rows: list[tuple[Oid, int, Value]] = [((1, 2, 3), Tag.INTEGER, -2000), ((PORT, 5), Tag.INTEGER, -2100)]

    verdict = judge_column(column("onu.rx_power"), rows)

    assert verdict.doubts == (Doubt(Suspicion.NO_PLACE, 1),)
    assert verdict.example is not None
    assert verdict.example.suffix == (PORT, 5)

"""Agents that lie about successors: walks that never end or end too early; single values are reported truly."""

from facho.polling.snmp.ber import Oid, Tag, encode_varbind
from facho.simulator.responder import LoopingView, LoopKind, MibColumn, MibRows, MibView, ShortView

TABLE: Oid = (1, 3, 6, 1, 1)
OTHER: Oid = (1, 3, 6, 1, 2)


def make_view(kind: LoopKind, *, rows: int = 3) -> LoopingView:
    shared: MibRows[int] = MibRows(lambda number: (number,), range(1, rows + 1))
    return LoopingView(MibView([MibColumn(TABLE, shared, lambda number: (Tag.INTEGER, number))]), kind)


def cell(index: int, value: int | None = None) -> bytes:
    return encode_varbind(((*TABLE, index), Tag.INTEGER, index if value is None else value))


def test_a_stuck_agent_repeats_the_row_it_was_asked_for() -> None:
    view = make_view(LoopKind.STUCK)

    assert view.successors(TABLE, 2).cells == [cell(1), cell(1)]
    assert view.successors((*TABLE, 2), 2).cells == [cell(2), cell(2)]


def test_a_wrapping_agent_begins_again_behind_the_last_row() -> None:
    view = make_view(LoopKind.WRAP)

    assert view.successors((*TABLE, 2), 4).cells == [cell(3), cell(1), cell(2), cell(3)]
    assert view.successors((*TABLE, 3), 1).cells == [cell(1)]


def test_an_endless_agent_invents_rows_in_rising_order() -> None:
    view = make_view(LoopKind.ENDLESS)

    assert view.successors((*TABLE, 2), 3).cells == [cell(3), cell(4, 3), cell(5, 3)]
    assert view.successors((*TABLE, 900), 2).cells == [cell(901, 3), cell(902, 3)]


def test_even_an_endless_agent_runs_out_of_numbers() -> None:
    view = make_view(LoopKind.ENDLESS)

    assert view.successors((*TABLE, 0xFFFF_FFFF), 2).cells == []


def test_a_table_of_one_row_is_reported_truly() -> None:
    for kind in LoopKind:
        assert make_view(kind, rows=1).successors((*TABLE, 1), 5).cells == []


def test_values_that_are_asked_for_by_name_are_true() -> None:
    for kind in LoopKind:
        found = make_view(kind).get((*TABLE, 2))
        assert found is not None
        assert found[1] == cell(2)


def short(max_rows: int) -> ShortView:
    first: MibRows[int] = MibRows(lambda number: (number,), range(1, 6))
    second: MibRows[int] = MibRows(lambda number: (number,), range(1, 3))
    columns = [
        MibColumn(TABLE, first, lambda number: (Tag.INTEGER, number)),
        MibColumn(OTHER, second, lambda number: (Tag.INTEGER, number)),
    ]
    return ShortView(MibView(columns), max_rows)


def test_a_short_table_ends_as_if_there_were_no_more() -> None:
    other = encode_varbind(((*OTHER, 1), Tag.INTEGER, 1))

    assert short(3).successors(TABLE, 4).cells == [cell(1), cell(2), cell(3), other]
    assert short(3).successors((*TABLE, 3), 1).cells == [other]
    assert short(3).successors((*TABLE, 4), 1).cells == [other]
    assert short(0).successors(TABLE, 9).cells == []


def test_a_short_table_has_the_rows_that_are_asked_for_by_name() -> None:
    found = short(3).get((*TABLE, 5))

    assert found is not None
    assert found[1] == cell(5)

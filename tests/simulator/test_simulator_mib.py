"""A view answers like a sorted list of all its cells, whatever rows come, go or have no value."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.snmp.ber import Oid, Tag, encode_varbind
from facho.simulator.responder import ColumnKind, MibColumn, MibRows, MibView, Typed


@dataclass
class Row:
    """A row with two numbers; a column whose number is None has no cell for it."""

    index: Oid
    values: dict[Oid, int | None] = field(default_factory=dict)


PREFIXES: tuple[Oid, ...] = ((1, 3, 1), (1, 3, 2, 5), (1, 3, 7))


def build(rows: list[Row], prefixes: tuple[Oid, ...] = PREFIXES) -> tuple[MibView, MibRows[Row]]:
    shared: MibRows[Row] = MibRows(lambda row: row.index, rows)

    def column(prefix: Oid) -> MibColumn[Row]:
        def read(row: Row) -> Typed | None:
            value = row.values.get(prefix, 0)
            return None if value is None else (Tag.INTEGER, value)

        return MibColumn(prefix, shared, read)

    return MibView([column(prefix) for prefix in prefixes]), shared


def all_cells(rows: list[Row]) -> list[tuple[Oid, bytes]]:
    cells = []
    for prefix in PREFIXES:
        for row in rows:
            value = row.values.get(prefix, 0)
            if value is not None:
                oid = prefix + row.index
                cells.append((oid, encode_varbind((oid, Tag.INTEGER, value))))
    return sorted(cells)


indexes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12, unique=True)
numbers = st.one_of(st.none(), st.integers(0, 9))
anywhere = st.lists(st.integers(0, 8), min_size=2, max_size=7).map(lambda tail: (1, 3, *tail))


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    return [Row(index, {prefix: draw(numbers) for prefix in PREFIXES}) for index in draw(indexes)]


@given(rows=tables(), oid=anywhere, count=st.integers(1, 20))
def test_successors_are_those_of_a_sorted_list(rows: list[Row], oid: Oid, count: int) -> None:
    view, _ = build(rows)

    run = view.successors(oid, count)

    assert run.cells == [cell for at, cell in all_cells(rows) if at > oid][:count]
    reported = [view.columns[column].slice(start, stop) for column, start, stop in run.spans]
    assert [cell for cells in reported for cell in cells] == run.cells


@given(rows=tables(), oid=anywhere)
def test_a_cell_is_found_exactly_when_it_exists(rows: list[Row], oid: Oid) -> None:
    view, _ = build(rows)

    found = view.get(oid)

    assert (found[1] if found else None) == dict(all_cells(rows)).get(oid)


@given(before=tables(), after=tables())
def test_rows_may_come_and_go(before: list[Row], after: list[Row]) -> None:
    view, rows = build(before)
    view.successors((1, 3), 100)

    for row in before:
        rows.remove(row)
    for row in after:
        rows.insert(row)

    assert view.successors((1, 3), 100).cells == [cell for _, cell in all_cells(after)]


def test_only_the_row_that_changed_is_encoded_again() -> None:
    first, second = Row((1,), {PREFIXES[0]: 5}), Row((2,), {PREFIXES[0]: 6})
    view, rows = build([first, second])
    before = view.successors((1, 3), 6).cells
    first.values[PREFIXES[0]] = second.values[PREFIXES[0]] = 7

    rows.forget(first)
    after = view.successors((1, 3), 6).cells

    assert after[0] != before[0]
    assert after[1] is before[1]


def test_time_makes_drifting_cells_new_and_leaves_the_others() -> None:
    value = 1
    rows: MibRows[str] = MibRows(lambda _: (0,), ["only"])
    fixed = MibColumn((1, 3, 1), rows, lambda _: (Tag.INTEGER, value))
    live = MibColumn((1, 3, 2), rows, lambda _: (Tag.INTEGER, value), ColumnKind.LIVE)
    view = MibView([fixed, live])
    before = view.successors((1, 3), 2).cells
    value = 2

    view.forget_drifting()

    after = view.successors((1, 3), 2).cells
    assert after[0] is before[0]
    assert after[1] != before[1]


def test_counters_become_new_without_what_is_measured() -> None:
    value = 1
    rows: MibRows[str] = MibRows(lambda _: (0,), ["only"])
    kinds = (ColumnKind.FIXED, ColumnKind.LIVE, ColumnKind.DRIFTING, ColumnKind.COUNTER64)
    columns = [MibColumn((1, 3, at), rows, lambda _: (Tag.INTEGER, value), kind) for at, kind in enumerate(kinds)]
    view = MibView(columns)
    before = view.successors((1, 3), 4).cells
    value = 2

    view.forget_counters()

    after = view.successors((1, 3), 4).cells
    assert [now == then for now, then in zip(after, before, strict=True)] == [True, True, False, False]


def test_columns_inside_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="lies inside"):
        build([], ((1, 3, 1), (1, 3, 1, 4)))


def test_version_1_does_not_see_large_counters() -> None:
    rows: MibRows[str] = MibRows(lambda _: (0,), ["only"])
    small = MibColumn((1, 3, 1), rows, lambda _: (Tag.COUNTER32, 1))
    large = MibColumn((1, 3, 2), rows, lambda _: (Tag.COUNTER64, 1), ColumnKind.COUNTER64)

    view = MibView([small, large]).without_counter64()

    assert len(view.successors((1, 3), 5).cells) == 1


def test_a_view_shows_nothing_below_what_it_excludes() -> None:
    view, _ = build([Row((1,))])

    narrow = view.without([(1, 3, 2)])

    assert [column.prefix for column in narrow.columns] == [(1, 3, 1), (1, 3, 7)]
    assert narrow.get((1, 3, 2, 5, 1)) is None
    assert narrow.successors((1, 3, 1, 1), 1).cells == [encode_varbind(((1, 3, 7, 1), Tag.INTEGER, 0))]

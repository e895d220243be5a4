"""The arithmetic of drawings, without a page."""

from datetime import timedelta

from facho.dashboard.shared.hour import Scale, Stretch, draw_marks, draw_ticks
from facho.dashboard.shared.page import coordinate, rectangle, stack
from factories import NOW

MINUTE = timedelta(minutes=1)
SCALE = Scale(NOW, NOW + 100 * MINUTE, 1000)


def stretch(start: float, end: float, kind: str = "good") -> Stretch:
    return Stretch(NOW + start * MINUTE, NOW + end * MINUTE, kind, f"{kind} {start:g}")


def test_a_length_is_written_without_a_locale_and_without_noise() -> None:
    assert [coordinate(length) for length in (0, 0.004, 33.333, 100)] == ["0", "0", "33.33", "100"]


def test_parts_of_a_bar_follow_each_other_and_empty_ones_are_left_out() -> None:
    bars = stack([("a", 1), ("b", 0), ("c", 2)], total=4)

    assert [(bar.kind, bar.x, bar.width) for bar in bars] == [("a", "0", "25"), ("c", "25", "50")]


def test_a_bar_never_grows_beyond_its_end() -> None:
    assert [bar.width for bar in stack([("a", 3), ("b", 9)], total=4)] == ["75", "25"]


def test_a_bar_of_nothing_is_empty() -> None:
    assert stack([("a", 0)], total=0) == []


def test_runs_apart_are_marks_of_their_own() -> None:
    marks = draw_marks([stretch(50, 51), stretch(10, 12)], SCALE, top=2, height=8, kinds=["good"])

    assert [mark.path for mark in marks] == [rectangle(100, 2, 20, 8), rectangle(500, 2, 10, 8)]
    assert [mark.name for mark in marks] == ["good 10", "good 50"]


def test_runs_of_a_kind_too_close_to_be_told_apart_are_one_mark() -> None:
    (mark,) = draw_marks([stretch(10, 10.1), stretch(10.2, 12)], SCALE, top=0, height=8, kinds=["good"])

    assert (mark.name, mark.runs, mark.path) == ("good 10", 2, rectangle(100, 0, 20, 8))
    assert (mark.starts_at, mark.ends_at) == (NOW + 10 * MINUTE, NOW + 12 * MINUTE)


def test_what_failed_among_many_that_did_not_lies_on_top_of_them() -> None:
    runs = [stretch(10, 10.1), stretch(10.2, 10.3, "failed"), stretch(10.4, 12)]

    marks = draw_marks(runs, SCALE, top=0, height=8, kinds=["good", "failed"])

    assert [(mark.kind, mark.path) for mark in marks] == [
        ("good", rectangle(100, 0, 20, 8)),
        ("failed", rectangle(102, 0, 3, 8)),
    ]


def test_what_is_out_of_sight_is_not_drawn_and_what_is_cut_stays_inside() -> None:
    runs = [stretch(-20, -10), stretch(-5, 5), stretch(99.99, 130), stretch(101, 102)]

    marks = draw_marks(runs, SCALE, top=0, height=1, kinds=["good"])

    assert [mark.path for mark in marks] == [rectangle(0, 0, 50, 1), rectangle(997, 0, 3, 1)]


def test_ticks_stand_on_the_full_steps_of_the_clock() -> None:
    scale = Scale(NOW + 7 * MINUTE, NOW + 27 * MINUTE, 100)

    ticks = draw_ticks(scale, 10 * MINUTE)

    assert [(tick.x, tick.moment) for tick in ticks] == [("15", NOW + 10 * MINUTE), ("65", NOW + 20 * MINUTE)]

"""The size of a page: down by halves, up with care."""

from itertools import pairwise

from facho.polling.snmp.session import PageSize


def sizes_until_stable(size: PageSize, limit: int, pages: int) -> list[int]:
    """Ask an imaginary agent that answers at most `limit` rows; return the sizes asked for."""
    asked = []
    for _ in range(pages):
        asked.append(size.rows)
        if size.rows > limit:
            size.page_failed()
        else:
            size.page_came()
    return asked


def test_a_page_that_fails_is_halved_down_to_one() -> None:
    assert sizes_until_stable(PageSize(50), limit=0, pages=7) == [50, 25, 12, 6, 3, 1, 1]


def test_an_agent_without_limit_is_asked_for_the_wanted_size_throughout() -> None:
    assert set(sizes_until_stable(PageSize(25), limit=1_000, pages=100)) == {25}


def test_the_limit_is_approached_and_then_left_alone() -> None:
    asked = sizes_until_stable(PageSize(50), limit=10, pages=60)

    assert asked[:4] == [50, 25, 12, 6]
    assert sum(rows > 10 for rows in asked) <= 5
    assert sum(rows in (9, 10) for rows in asked) >= 50


def test_what_was_learned_is_the_start_of_the_next_walk() -> None:
    first = PageSize(50)
    sizes_until_stable(first, limit=10, pages=60)

    asked = sizes_until_stable(PageSize(50, first.learned), limit=10, pages=40)

    assert asked[:16] == [10] * 16
    assert sum(rows > 10 for rows in asked) <= 2


def test_a_learned_size_grows_back_gently_when_the_agent_got_better() -> None:
    asked = sizes_until_stable(PageSize(50, learned=10), limit=1_000, pages=200)

    assert asked == sorted(asked)
    assert asked[-1] == 50
    assert all(later <= earlier * 1.26 for earlier, later in pairwise(asked))


def test_nothing_is_learned_from_an_agent_that_never_answered() -> None:
    size = PageSize(50)
    sizes_until_stable(size, limit=0, pages=7)

    assert size.learned is None


def test_a_learned_size_never_exceeds_what_is_wanted_now() -> None:
    assert PageSize(10, learned=50).rows == 10
    assert PageSize(10, learned=0).rows == 10
    assert PageSize(0).rows == 1


def test_silence_leads_to_one_row_at_once_and_back_by_doubling() -> None:
    size = PageSize(50)
    size.nothing_comes()

    asked = sizes_until_stable(size, limit=8, pages=12)

    assert asked[:6] == [1, 1, 2, 2, 4, 4]
    assert max(asked[:8]) == 8


def test_a_size_that_worked_gets_another_chance_as_soon_as_anything_comes() -> None:
    size = PageSize(24)
    size.page_came()

    size.page_failed()
    size.page_failed()
    assert size.rows == 6
    size.page_came()

    assert size.rows == 24


def test_a_size_that_worked_once_and_fails_twice_is_a_limit() -> None:
    size = PageSize(24)
    size.page_came()

    for _ in range(2):
        size.page_failed()
        size.page_came()

    assert size.rows == 12


def test_a_size_that_worked_often_survives_a_streak_of_bad_luck() -> None:
    size = PageSize(24)
    for _ in range(20):
        size.page_came()

    for _ in range(3):
        size.page_failed()
        size.page_came()
        assert size.rows == 24

    size.page_failed()
    size.page_came()
    assert size.rows == 12


def test_too_big_is_never_taken_for_bad_luck() -> None:
    size = PageSize(24)
    for _ in range(20):
        size.page_came()

    size.page_failed(is_too_big=True)
    size.page_came()

    assert size.rows == 12
    assert size.learned == 12


def test_a_pause_of_the_agent_is_forgotten_when_it_is_over() -> None:
    size = PageSize(24)
    size.page_came()

    size.page_failed()
    size.nothing_comes()
    assert size.rows == 1
    size.page_came()

    assert size.rows == 24
    assert size.learned == 24


def test_sizes_that_failed_in_one_streak_are_tried_again_one_by_one() -> None:
    size = PageSize(24)
    size.page_failed()
    size.page_failed()

    asked = sizes_until_stable(size, limit=20, pages=12)

    assert asked[:6] == [6, 6, 12, 12, 18, 18]
    assert max(asked) <= 21

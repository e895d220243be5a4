"""What a run brought, put together from its slices and tries."""

from facho.polling.domain.collection import join_summaries


def test_slices_of_one_read_add_up() -> None:
    first, second = {"onus": 30, "packets": 9, "unreadable": 0}, {"onus": 12, "packets": 4, "out_of_range": 2}

    joined = join_summaries(first, second, goes_on=True)

    assert joined == {"onus": 42, "packets": 13, "unreadable": 0, "out_of_range": 2}


def test_a_try_that_begins_anew_counts_anew_but_for_what_was_sent() -> None:
    failed, again = {"onus": 30, "packets": 9, "retransmissions": 3}, {"onus": 42, "packets": 13}

    joined = join_summaries(failed, again, goes_on=False)

    assert joined == {"onus": 42, "packets": 22, "retransmissions": 3}


def test_the_longest_round_trip_is_that_of_all_slices_and_tries() -> None:
    first = {"round_trips": 9, "round_trips_ms": 400, "longest_round_trip_ms": 90}
    second = {"round_trips": 3, "round_trips_ms": 70, "longest_round_trip_ms": 40}

    for goes_on in (True, False):
        joined = join_summaries(first, second, goes_on=goes_on)
        assert joined == {"round_trips": 12, "round_trips_ms": 470, "longest_round_trip_ms": 90}


def test_words_are_those_of_the_last() -> None:
    assert join_summaries({"way": "walk", "n": 1}, {"way": "get", "n": "one"}, goes_on=True) == {
        "way": "get",
        "n": "one",
    }

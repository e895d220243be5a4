"""New requests, repeated requests and requests in flight are told apart."""

from facho.simulator.agent import REMEMBERED_REQUESTS, Counters, Flight


def test_different_ids_add_up_in_flight_and_the_same_id_does_not() -> None:
    flight = Flight()

    for request_id in (1, 2, 2, 3):
        flight.arrive(("manager", request_id), now=0.0)

    assert flight.distinct == 3


def test_a_repeated_request_is_in_flight_until_its_last_copy_is_done() -> None:
    flight = Flight()
    flight.arrive(("manager", 1), now=0.0)
    flight.arrive(("manager", 1), now=1.0)

    flight.leave(("manager", 1))
    assert flight.distinct == 1
    flight.leave(("manager", 1))
    assert flight.distinct == 0


def test_a_repeated_request_is_in_flight_no_longer_than_until_its_first_answer() -> None:
    flight = Flight()
    flight.arrive(("manager", 1), now=0.0)
    flight.arrive(("manager", 1), now=5.0)

    flight.answer(("manager", 1))

    assert flight.distinct == 0
    assert flight.leave(("manager", 1)) == 0


def test_the_same_id_of_two_managers_is_two_requests() -> None:
    flight = Flight()

    assert flight.arrive(("one", 1), now=0.0) is None
    assert flight.arrive(("other", 1), now=0.0) is None


def test_a_repeated_request_tells_how_long_it_waited() -> None:
    flight = Flight()
    flight.arrive(("manager", 1), now=10.0)
    flight.leave(("manager", 1))

    assert flight.arrive(("manager", 1), now=15.0) == 5.0
    assert flight.arrive(("manager", 1), now=16.0) == 1.0


def test_memory_of_requests_is_bounded() -> None:
    flight = Flight()
    for request_id in range(REMEMBERED_REQUESTS + 1):
        flight.arrive(("manager", request_id), now=0.0)
        flight.leave(("manager", request_id))

    assert flight.arrive(("manager", 0), now=1.0) is None


def test_forgotten_work_is_no_longer_in_flight() -> None:
    flight = Flight()
    flight.arrive(("manager", 1), now=0.0)

    assert flight.forget() == 1
    assert flight.distinct == 0
    assert flight.leave(("manager", 1)) == 0


def test_the_shortest_wait_is_kept_for_each_cost() -> None:
    counters = Counters()

    counters.count_retry(5_000, is_live=False)
    counters.count_retry(4_000, is_live=False)
    counters.count_retry(20_000, is_live=True)

    assert (
        counters.as_json()
        | {
            "retransmissions": 3,
            "shortest_retry_ms": 4_000,
            "shortest_live_retry_ms": 20_000,
        }
        == counters.as_json()
    )

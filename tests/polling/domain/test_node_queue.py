"""The queue of waiting nodes."""

from dataclasses import replace
from datetime import timedelta

from facho.polling.domain.planning import DueNode, NodeQueue
from factories import NOW, due_node


def test_equal_nodes_are_all_kept_and_each_is_kept_once() -> None:
    """S0-25: no duplicates, and no loss on equal keys."""
    twins: list[DueNode] = [due_node() for _ in range(3)]

    queue = NodeQueue([*twins, twins[0]])

    assert queue.qsize() == 3


def test_peek_shows_the_most_urgent_and_disturbs_nothing() -> None:
    """S0-33."""
    calm, late = due_node(), due_node(late_seconds=900)
    queue = NodeQueue([calm, late])

    assert queue.peek(1, now=NOW) == [late]
    assert queue.peek(10, now=NOW) == [late, calm]
    assert queue.qsize() == 2


def test_a_queue_is_overloaded_when_a_node_lost_a_whole_slot() -> None:
    queue = NodeQueue([due_node(late_seconds=300, interval_seconds=300)])

    assert not queue.is_overload(now=NOW)
    assert queue.is_overload(now=NOW + timedelta(seconds=1))


def test_an_overload_by_silent_olts_alone_is_no_want_of_pollers() -> None:
    late = due_node(late_seconds=301)
    silent = replace(due_node(late_seconds=301), is_olt_silent=True)

    assert NodeQueue([silent, due_node()]).is_overload(now=NOW)
    assert NodeQueue([silent, due_node()]).is_held_by_silence(now=NOW)
    assert not NodeQueue([silent, late]).is_held_by_silence(now=NOW)
    assert not NodeQueue([silent, due_node()], overload_length=1).is_held_by_silence(now=NOW)
    assert not NodeQueue([replace(silent, due_at=NOW)]).is_held_by_silence(now=NOW)


def test_a_queue_is_overloaded_when_it_is_too_long() -> None:
    queue = NodeQueue((due_node() for _ in range(3)), overload_length=2)

    assert queue.is_overload(now=NOW)

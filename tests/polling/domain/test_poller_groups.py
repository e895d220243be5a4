"""Groups of pollers: each plans for itself, and the default group has the plain names."""

from dataclasses import replace
from datetime import timedelta

import pytest

from facho.polling.domain.planning import (
    DueNode,
    WaitReason,
    group_of,
    is_group_name,
    numbers_by_group,
    plan_groups,
    queue_of,
)
from facho.polling.domain.ports import stands_still
from factories import NOW, due_node


def node_of(group: str, *, olt_id: int) -> DueNode:
    return replace(due_node(olt_id=olt_id), group=group)


def test_a_site_whose_pollers_are_all_taken_takes_none_of_another() -> None:
    north, other_north, plain = (node_of(group, olt_id=n) for n, group in enumerate(("norte", "norte", "")))

    plan = plan_groups([north, other_north, plain], free_pollers={"": [0, 1], "norte": [2]}, busy_olts=[], now=NOW)

    assert {(start.node, start.poller_id, start.group) for start in plan.start} == {(plain, 0, ""), (north, 2, "norte")}
    assert plan.waiting == ((other_north, WaitReason.NO_POLLER),)


def test_a_node_of_an_unknown_group_waits_for_a_poller() -> None:
    lost = node_of("sur", olt_id=1)

    plan = plan_groups([lost], free_pollers={"": [0], "norte": [1]}, busy_olts=[], now=NOW)

    assert plan.waiting == ((lost, WaitReason.NO_POLLER),)


def test_without_groups_all_share_the_pollers() -> None:
    lost = node_of("sur", olt_id=1)

    plan = plan_groups([lost], free_pollers={"": [0]}, busy_olts=[], now=NOW)

    assert [(start.node, start.group) for start in plan.start] == [(lost, "")]


def test_pollers_are_numbered_group_by_group() -> None:
    assert numbers_by_group(3, {"norte": 2, "sur": 1}) == {"": range(3), "norte": range(3, 5), "sur": range(5, 6)}


def test_a_queue_names_its_group() -> None:
    assert [queue_of("snmp_default", group) for group in ("", "norte")] == ["snmp_default", "snmp_default.norte"]
    assert [group_of(queue) for queue in ("snmp_default", "snmp_default.norte")] == ["", "norte"]


@pytest.mark.parametrize(
    ("name", "is_one"), [("norte-2", True), ("none", False), ("Norte", False), ("a.b", False), ("", False)]
)
def test_a_groups_name_fits_into_the_name_of_a_queue(name: str, is_one: bool) -> None:
    assert is_group_name(name) is is_one


@pytest.mark.parametrize(
    ("minutes", "workers", "completed_by_others", "is_still"),
    [
        (21, 2, 40, True),
        (19, 2, 400, False),  # the longest run takes a quarter of an hour
        (21, 2, 39, False),
        (21, 1, 400, False),  # nobody else is there to do better
    ],
)
def test_a_worker_is_judged_by_what_it_completes(
    minutes: int, workers: int, completed_by_others: int, is_still: bool
) -> None:
    idle = timedelta(minutes=minutes)

    assert stands_still(idle, workers=workers, completed_by_others=completed_by_others) is is_still

"""The tree of a port learns from fibre cuts, too, and obeys what people know and say."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from facho.onus.models import Onu, OnuEvent, OnuReading, Outage
from facho.plant.models import Box, OnuAttachment, OnuBox, TreeCorrection
from facho.plant.tree import NoSuchBox, correct_tree, load_tree, remove_correction, save_tree
from facho.plant.watch import OUTAGE_SETTLED, LightWatcher
from factories import NOW
from history_world import make_onus, make_ports

pytestmark = pytest.mark.django_db


@pytest.fixture
def onus() -> list[Onu]:
    """Eight ONUs that are online, as far from the OLT as each other."""
    (port,) = make_ports(1)
    onus = make_onus(port, 8, now=NOW)
    for onu in onus:
        OnuReading.objects.create(onu=onu, distance_m=1_000, run_state="online")
    return onus


def go(onus: Iterable[Onu], *, at: datetime, kind: str = "down", cause: str = "los") -> None:
    for onu in onus:
        place = {"olt": onu.olt, "pon_port": onu.pon_port, "onu": onu, "onu_number": onu.onu_id}
        OnuEvent.objects.create(**place, at=at, kind=kind, cause=cause if kind == "down" else "")


def cut(onus: list[Onu], *, cause: str = "fibre", at: datetime = NOW) -> None:
    place = {"olt": onus[0].olt, "frame": 0, "slot": 1, "port": 0}
    Outage.objects.create(
        **place, scope="pon", cause=cause, started_at=at, resumed_at=at, affected=len(onus), down=len(onus)
    )


def boxes() -> list[set[int]]:
    groups: dict[int, set[int]] = {}
    for onu_id, number in OnuBox.objects.values_list("onu_id", "number"):
        groups.setdefault(number, set()).add(onu_id)
    return list(groups.values())


def ids(onus: Iterable[Onu]) -> set[int]:
    return {onu.id for onu in onus}


def test_onus_that_one_cut_took_share_a_box(onus: list[Onu]) -> None:
    cut(onus[:3])
    go(onus[:3], at=NOW + timedelta(seconds=20))
    go(onus[:3], at=NOW + timedelta(hours=1), kind="up")

    LightWatcher().look(NOW + OUTAGE_SETTLED + timedelta(seconds=1))

    assert ids(onus[:3]) in boxes()
    assert {box.events for box in OnuBox.objects.all()} == {1}


def test_a_street_without_power_is_no_branch(onus: list[Onu]) -> None:
    cut(onus[:3], cause="power")
    go(onus[:3], at=NOW, cause="dying_gasp")
    Outage.objects.update(ended_at=NOW + timedelta(hours=1))
    cut(onus[:4], at=NOW + timedelta(hours=2))
    go(onus[:4], at=NOW + timedelta(hours=2), cause="dying_gasp")

    save_tree(onus[0].pon_port_id)

    assert {box.events for box in OnuBox.objects.all()} == {0}


def test_who_was_offline_before_or_switched_off_meanwhile_says_nothing(onus: list[Onu]) -> None:
    OnuReading.objects.filter(onu=onus[3]).update(run_state="offline")
    cut(onus[:3])
    go(onus[:3], at=NOW)
    go([onus[4]], at=NOW, cause="power_off")

    save_tree(onus[0].pon_port_id)

    together = next(box for box in boxes() if onus[0].id in box)
    assert ids(onus[:3]) <= together
    assert not together & ids(onus[5:])


def test_a_correction_is_kept_audited_and_can_be_taken_back(onus: list[Onu]) -> None:
    who, port = User.objects.create(username="ana"), onus[0].pon_port
    save_tree(port.id)
    before = boxes()

    correction = correct_tree(port, ids(onus[:2]), None, who=who, now=NOW)
    cut(onus[:4])
    go(onus[:4], at=NOW)
    save_tree(port.id)

    assert ids(onus[:2]) in boxes()
    assert ids(onus[2:4]) in boxes()
    assert LogEntry.objects.get().user == who
    Outage.objects.all().delete()
    remove_correction(correction, who=who)
    assert boxes() == before
    assert LogEntry.objects.count() == 2


def test_all_onus_of_a_box_moved_to_another_merge_both(onus: list[Onu]) -> None:
    who, port = User.objects.create(username="ana"), onus[0].pon_port
    save_tree(port.id)
    correct_tree(port, ids(onus[:4]), None, who=who, now=NOW)
    other = OnuBox.objects.get(onu=onus[7]).number

    correct_tree(port, ids(onus[:4]), other, who=who, now=NOW + timedelta(minutes=1))

    assert boxes() == [ids(onus)]


def test_a_pinned_box_stays_whatever_happens_later(onus: list[Onu]) -> None:
    who, port = User.objects.create(username="ana"), onus[0].pon_port
    save_tree(port.id)
    correct_tree(port, ids(onus[:4]), None, who=who, now=NOW)
    correct_tree(port, ids(onus[:4]), None, who=who, now=NOW + timedelta(minutes=1))
    for hour in range(5):
        at = NOW + timedelta(hours=hour)
        cut(onus[2:6], at=at)
        Outage.objects.filter(ended_at=None).update(ended_at=at + timedelta(minutes=20))
        go(onus[2:6], at=at)
        go(onus[2:6], at=at + timedelta(minutes=20), kind="up")

    save_tree(port.id)

    assert ids(onus[:4]) in boxes()


@pytest.mark.parametrize(("onu_ids", "target"), [((), None), ((1 << 50,), None), (None, 77)])
def test_what_is_not_there_any_more_changes_nothing(
    onus: list[Onu], onu_ids: tuple[int, ...] | None, target: int | None
) -> None:
    who, port = User.objects.create(username="ana"), onus[0].pon_port
    save_tree(port.id)

    with pytest.raises(NoSuchBox):
        correct_tree(port, ids(onus[:1]) if onu_ids is None else onu_ids, target, who=who, now=NOW)

    assert not TreeCorrection.objects.exists()


def test_onus_of_a_known_box_are_together_and_named_by_it(onus: list[Onu]) -> None:
    box, other = Box.objects.create(name="CTO 1"), Box.objects.create(name="CTO 2")
    for number, onu in enumerate(onus[:6]):
        OnuAttachment.objects.create(onu=onu, box=box if number < 3 else other, source="import")
    cut(onus[:2])
    go(onus[:2], at=NOW)

    save_tree(onus[0].pon_port_id)

    named = {placed.name: set(placed.onu_ids) for placed in load_tree(onus[0].pon_port_id)}
    assert ids(onus[:3]) <= named["CTO 1"]
    assert ids(onus[3:6]) <= named["CTO 2"]

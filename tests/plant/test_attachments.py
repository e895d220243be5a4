"""ONUs on boxes: by hand, from the inferred tree, and back; a weaker source never moves what a stronger one said."""

import pytest
from django.contrib.admin.models import LogEntry

from facho.accounts.audit import console
from facho.onus.models import Onu
from facho.plant.boxes import plan_inferred, put_back, put_on_box, save_inferred
from facho.plant.models import AttachmentSources, Box, OnuAttachment, OnuBox
from plant.plant_world import SmallPlant, make_plant

pytestmark = pytest.mark.django_db

HAND, IMPORT, INFERRED = AttachmentSources.HAND, AttachmentSources.IMPORT, AttachmentSources.INFERRED


def boxes_of(onus: list[Onu]) -> list[tuple[str, str] | None]:
    found = {row.onu_id: (row.box.name, row.source) for row in OnuAttachment.objects.select_related("box")}
    return [found.get(onu.id) for onu in onus]


def infer(plant: SmallPlant, groups: list[list[int]], confidence: float = 0.9, events: int = 2) -> None:
    """Let the tree of the port say that ONUs, by their place in the world, share boxes."""
    for number, members in enumerate(groups):
        for index in members:
            OnuBox.objects.update_or_create(
                onu=plant.onus[index],
                defaults={"pon_port": plant.port, "number": number, "confidence": confidence, "events": events},
            )


@pytest.mark.parametrize(
    ("stored", "reported", "is_moved"),
    [
        (HAND, HAND, True),
        (HAND, IMPORT, False),
        (HAND, INFERRED, False),
        (IMPORT, HAND, True),
        (IMPORT, IMPORT, True),
        (IMPORT, INFERRED, False),
        (INFERRED, HAND, True),
        (INFERRED, IMPORT, True),
        (INFERRED, INFERRED, True),
    ],
)
def test_a_weaker_source_moves_nothing(stored: str, reported: AttachmentSources, is_moved: bool) -> None:
    plant = make_plant()
    OnuAttachment.objects.update(source=stored)

    put_on_box([plant.onus[0].id], plant.boxes[1], who=console(), source=reported)

    assert boxes_of(plant.onus[:1]) == [("CTO 2", reported) if is_moved else ("CTO 1", stored)]


def test_what_was_moved_is_put_back_as_it_was_and_both_are_recorded() -> None:
    plant = make_plant()
    OnuAttachment.objects.filter(onu=plant.onus[1]).update(source=IMPORT)
    OnuAttachment.objects.filter(onu=plant.onus[2]).delete()
    before = boxes_of(plant.onus)

    moved = put_on_box([onu.id for onu in plant.onus], plant.boxes[1], who=console())
    back = put_back(moved.before, who=console())

    assert (len(moved.before), back) == (3, 3)
    assert boxes_of(plant.onus) == before
    assert LogEntry.objects.count() == 6


def test_onus_of_another_port_stay_where_they_are() -> None:
    plant, other = make_plant(), make_plant(name="B ")

    moved = put_on_box([plant.onus[0].id, other.onus[0].id], plant.boxes[1], who=console())

    assert ([each[0] for each in moved.before], moved.elsewhere) == ([plant.onus[0].id], 1)


def test_boxes_are_made_of_the_inferred_tree() -> None:
    plant = make_plant()
    Box.objects.all().delete()
    infer(plant, [[0, 1, 2], [3, 4, 5]])

    counts = save_inferred(plant.port, who=console())

    name = f"{plant.olt.name} 0/7/5"
    assert counts == {"boxes": 2, "onus": 6}
    assert set(boxes_of(plant.onus)) == {(f"{name} #1", INFERRED), (f"{name} #2", INFERRED)}
    assert plan_inferred(plant.port) == []


def test_a_tree_that_changes_moves_what_was_inferred_and_makes_no_second_box() -> None:
    plant = make_plant()
    Box.objects.all().delete()
    infer(plant, [[0, 1, 2, 3], [4, 5]])
    save_inferred(plant.port, who=console())
    infer(plant, [[0, 1, 2], [3, 4, 5]])

    counts = save_inferred(plant.port, who=console())

    assert counts == {"onus": 1}
    assert boxes_of(plant.onus)[3] == boxes_of(plant.onus)[4]


def test_a_group_that_people_know_joins_their_box() -> None:
    plant = make_plant()
    OnuAttachment.objects.filter(onu__in=plant.onus[2:]).delete()
    infer(plant, [[0, 1, 2], [3, 4]])

    save_inferred(plant.port, who=console())

    assert boxes_of(plant.onus)[:3] == [("CTO 1", HAND), ("CTO 1", HAND), ("CTO 1", INFERRED)]
    assert boxes_of(plant.onus)[3:] == [(f"{plant.olt.name} 0/7/5 #1", INFERRED)] * 2 + [None]


@pytest.mark.parametrize(("confidence", "events"), [(0.4, 2), (0.9, 0)], ids=["unsure", "distance alone"])
def test_a_guess_makes_no_box(confidence: float, events: int) -> None:
    plant = make_plant()
    OnuAttachment.objects.all().delete()
    infer(plant, [[0, 1, 2]], confidence, events)

    assert plan_inferred(plant.port) == []

"""Zones and boxes are what people know of the plant; the database refuses what cannot be."""

from typing import Any

import pytest
from django.db import IntegrityError

from facho.plant.models import Box, OnuAttachment, Zone
from factories import NOW
from history_world import make_onus, make_ports

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"kind": "barn"},
        {"latitude": 4.6},
        {"latitude": 91.0, "longitude": 0.0},
        {"latitude": 0.0, "longitude": -181.0},
        {"outputs": 1},
        {"outputs": 257},
    ],
    ids=str,
)
def test_a_box_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        Box.objects.create(**{"name": "CTO 1"} | wrong)


def test_a_box_does_not_feed_itself() -> None:
    box = Box.objects.create(name="CTO 1")

    with pytest.raises(IntegrityError):
        Box.objects.filter(id=box.id).update(parent=box)


@pytest.mark.parametrize("model", [Zone, Box])
def test_a_name_is_given_once(model: type[Zone] | type[Box]) -> None:
    model.objects.create(name="North")

    with pytest.raises(IntegrityError):
        model.objects.create(name="North")


def test_an_onu_is_on_one_box_and_says_why() -> None:
    onu = make_onus(make_ports(1)[0], 1, now=NOW)[0]
    box = Box.objects.create(name="CTO 1")

    with pytest.raises(IntegrityError):
        OnuAttachment.objects.create(onu=onu, box=box, source="dream")


def test_boxes_outlive_zones_ports_and_the_boxes_before_them() -> None:
    port = make_ports(1)[0]
    zone, splitter = Zone.objects.create(name="North"), Box.objects.create(name="S 1", pon_port=port)
    box = Box.objects.create(name="CTO 1", zone=zone, parent=splitter, pon_port=port)

    zone.delete()
    splitter.delete()
    port.delete()

    box.refresh_from_db()
    assert (box.zone, box.parent, box.pon_port) == (None, None, None)

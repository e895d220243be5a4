"""A small plant: a zone, a splitter with two boxes behind it on one PON port, and ONUs on them."""

from dataclasses import dataclass

from api.rows import make_olt
from facho.hosts.models import Olt
from facho.onus.models import Onu, OnuCustomer, PonPort
from facho.plant.models import AttachmentSources, Box, BoxKinds, OnuAttachment, Zone
from factories import NOW


@dataclass
class SmallPlant:
    olt: Olt
    port: PonPort
    zone: Zone
    splitter: Box
    boxes: list[Box]
    onus: list[Onu]


def make_plant(olt: Olt | None = None, *, name: str = "") -> SmallPlant:
    """Make it with six ONUs, three on each box by hand; the first ONU has a customer with a place."""
    olt = olt or make_olt()
    port = PonPort.objects.create(olt=olt, frame=0, slot=7, port=5)
    zone = Zone.objects.create(name=f"{name}North", latitude=4.61, longitude=-74.08)
    splitter = Box.objects.create(
        name=f"{name}S 1", kind=BoxKinds.SPLITTER, zone=zone, pon_port=port, latitude=4.62, longitude=-74.08, outputs=4
    )
    boxes = [
        Box.objects.create(
            name=f"{name}CTO {n}",
            zone=zone,
            parent=splitter,
            pon_port=port,
            latitude=4.62 + n / 100,
            longitude=-74.08,
            outputs=8,
        )
        for n in (1, 2)
    ]
    onus = [
        Onu.objects.create(olt=olt, pon_port=port, onu_id=n, serial=f"PLNT{olt.id:04}{n:04}", first_seen_at=NOW)
        for n in range(1, 7)
    ]
    for n, onu in enumerate(onus):
        OnuAttachment.objects.create(onu=onu, box=boxes[n // 3], source=AttachmentSources.HAND)
    OnuCustomer.objects.create(onu=onus[0], label="Ana", latitude=4.631, longitude=-74.081)
    return SmallPlant(olt, port, zone, splitter, boxes, onus)

"""Raw values of ONUs for tests: put into their blocks, and read back."""

from datetime import datetime

import numpy as np

from facho.onus.models import Onu, OnuData
from facho.onus.raw_values import compare, load_blocks, load_raw_values, save_blocks
from facho.polling.domain.onu_table import RawValues
from factories import NOW

_OCTET_STRING = 4


def make_raw_value(onu: Onu, oid: str = "1.3.6.1", value: str = "1", *, now: datetime = NOW) -> OnuData:
    """Store one value as text, and return the block of its OID."""
    stored, octets = load_blocks(onu.olt_id, [oid]), value.encode()
    raw = RawValues(np.array([_OCTET_STRING], np.uint8), np.array([0]), np.array([len(octets)], np.int32), octets)
    block = compare(stored.by_oid[oid], np.array([onu.id]), raw, rule="", now=int(now.timestamp())).block
    others = Onu.objects.filter(olt_id=onu.olt_id).values_list("id", flat=True)
    save_blocks(onu.olt_id, stored, {oid: block} if block else {}, onu_ids=np.array(others), now=now)
    return OnuData.objects.get(olt_id=onu.olt_id, oid=oid)


def raw_values(oid: str | None = None) -> list[tuple[str, str]]:
    """Return serial and value of all that is stored, or of one OID."""
    blocks = OnuData.objects.all() if oid is None else OnuData.objects.filter(oid=oid)
    return [
        (onu.serial, found.value)
        for onu in Onu.objects.order_by("id")
        for found in load_raw_values(onu.id, blocks.filter(olt_id=onu.olt_id))
    ]

"""Keeps the latest raw value per ONU and OID: one read, one write of what changed, one of what is new."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain

from facho.onus.bulk import insert_values, update_values
from facho.onus.models import OnuData


def save_raw_values(
    olt_id: int, raw: Mapping[int, Mapping[str, str]], *, port_ids: Iterable[int], now: datetime
) -> None:
    """Store raw values by ONU and OID; `port_ids` are the ports that were read."""
    oids = set(chain.from_iterable(raw.values()))
    if not oids:
        return
    of_ports = OnuData.objects.filter(onu__olt_id=olt_id, onu__pon_port_id__in=set(port_ids), oid__in=oids)
    stored = list(of_ports.order_by().values_list("id", "onu_id", "oid", "value"))
    nothing: Mapping[str, str] = {}
    changed = [
        (row_id, after, now)
        for row_id, onu_id, oid, value in stored
        if (after := raw.get(onu_id, nothing).get(oid, value)) != value
    ]
    update_values(OnuData, ["value", "updated_at"], changed)
    known = {(onu_id, oid) for _, onu_id, oid, _ in stored}
    new = [
        (onu_id, oid, value, now)
        for onu_id, values in raw.items()
        for oid, value in values.items()
        if (onu_id, oid) not in known
    ]
    insert_values(OnuData, ["onu", "oid", "value", "updated_at"], new, unique=["onu", "oid"])

"""Keeps the latest raw value per ONU and OID: one read, one write of what changed, one of what is new."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from facho.onus.bulk import insert_values, update_values
from facho.onus.models import OnuData

MAX_LENGTH = 255


def save_raw_values(
    olt_id: int, raw: Iterable[tuple[int, Mapping[str, str]]], *, port_ids: Iterable[int], now: datetime
) -> None:
    """Store raw values by ONU and OID; `port_ids` are the ports that were read."""
    wanted = {(onu_id, oid): value[:MAX_LENGTH] for onu_id, values in raw for oid, value in values.items()}
    if not wanted:
        return
    oids = {oid for _, oid in wanted}
    stored = OnuData.objects.filter(onu__olt_id=olt_id, onu__pon_port_id__in=set(port_ids), oid__in=oids)
    changed = []
    for row_id, onu_id, oid, value in stored.order_by().values_list("id", "onu_id", "oid", "value"):
        after = wanted.pop((onu_id, oid), value)
        if after != value:
            changed.append((row_id, after, now))
    update_values(OnuData, ["value", "updated_at"], changed)
    new = [(onu_id, oid, value, now) for (onu_id, oid), value in wanted.items()]
    insert_values(OnuData, ["onu", "oid", "value", "updated_at"], new, unique=["onu", "oid"])

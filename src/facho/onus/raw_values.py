"""Keeps the latest raw value per ONU and OID: one read, one write of what changed."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from facho.onus.bulk import insert_values
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
    current = {(onu_id, oid): value for onu_id, oid, value in stored.order_by().values_list("onu_id", "oid", "value")}
    rows = [(*key, value, now) for key, value in wanted.items() if current.get(key) != value]
    insert_values(OnuData, ["onu", "oid", "value", "updated_at"], rows, unique=["onu", "oid"])

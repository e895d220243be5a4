"""Stores which ONUs wait at an OLT to be authorised."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from facho.hosts.models import WaitingOnu

BATCH = 500
MAX_SERIAL_LENGTH = WaitingOnu._meta.get_field("serial").max_length
MAX_MODEL_LENGTH = WaitingOnu._meta.get_field("model").max_length
# What the columns hold.
MAX_NUMBER = 32_767


class Waiting(NamedTuple):
    """An ONU as an OLT reports it: where, by which serial, of which model if that is told."""

    frame: int
    slot: int
    port: int
    serial: str
    model: str = ""


def save_waiting(olt_id: int, found: Sequence[Waiting], *, is_complete: bool, now: datetime) -> int:
    """Bring the list in line with what the OLT reports; returns how many are new.

    Only a complete report can say that an ONU does not wait any more.
    """
    stored = {_key(row): row for row in WaitingOnu.objects.filter(olt_id=olt_id)}
    wanted = {waiting[:4]: waiting for waiting in found}
    rows = [
        WaitingOnu(
            olt_id=olt_id,
            **waiting._asdict(),
            first_seen_at=stored[key].first_seen_at if key in stored else now,
            last_seen_at=now,
        )
        for key, waiting in wanted.items()
    ]
    if is_complete:
        WaitingOnu.objects.filter(pk__in=[row.pk for key, row in stored.items() if key not in wanted]).delete()
    WaitingOnu.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["olt", "frame", "slot", "port", "serial"],
        update_fields=["model", "last_seen_at"],
    )
    return len(wanted.keys() - stored.keys())


def _key(row: WaitingOnu) -> tuple[int, int, int, str]:
    return row.frame, row.slot, row.port, row.serial

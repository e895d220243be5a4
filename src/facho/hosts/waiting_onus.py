"""Stores which ONUs wait at an OLT to be authorised."""

from collections.abc import Sequence
from datetime import datetime

from facho.hosts.models import WaitingOnu
from facho.polling.domain.collection import UnauthorisedOnu

BATCH = 500
MAX_SERIAL_LENGTH = WaitingOnu._meta.get_field("serial").max_length
MAX_MODEL_LENGTH = WaitingOnu._meta.get_field("model").max_length
# More than any OLT has ports for; an agent that reports more makes them up.
MAX_WAITING = 4_096
# What the columns hold.
MAX_NUMBER = 32_767


def save_waiting(olt_id: int, found: Sequence[UnauthorisedOnu], *, is_complete: bool, now: datetime) -> int:
    """Update the list to what the OLT reports; returns the number of new ONUs.

    Only a complete report removes ONUs.
    """
    stored = {((row.frame, row.slot, row.port, row.serial)): row for row in WaitingOnu.objects.filter(olt_id=olt_id)}
    is_cut, found = len(found) > MAX_WAITING, found[:MAX_WAITING]
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
    # The list is bounded also where each report names others.
    if is_complete or is_cut or len(stored.keys() | wanted.keys()) > MAX_WAITING:
        WaitingOnu.objects.filter(pk__in=[row.pk for key, row in stored.items() if key not in wanted]).delete()
    WaitingOnu.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["olt", "frame", "slot", "port", "serial"],
        update_fields=["model", "last_seen_at"],
    )
    return len(wanted.keys() - stored.keys())

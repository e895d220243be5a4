"""Makes outages as the rules write them, with values that a test did not name filled in."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from facho.hosts.models import Olt
from facho.onus.models import Outage


def make_outage(olt: Olt | None, **fields: Any) -> Outage:
    """Make a fibre cut on port 0/1/3 that began half an hour ago; without an OLT the poller's network is out."""
    at = fields.pop("started_at", timezone.now() - timedelta(minutes=30, seconds=5))
    values: dict[str, Any] = {"scope": "pon", "slot": 1, "port": 3, "cause": "fibre"}
    if olt is None:
        values = {"scope": "network", "cause": "network"}
    values |= {"started_at": at, "resumed_at": at, "affected": 14, "down": 14, **fields}
    return Outage.objects.create(olt=olt, **values)

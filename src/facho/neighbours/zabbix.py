"""What a Zabbix server or proxy gets of each OLT every minute, by the protocol of `zabbix_sender`."""

import asyncio
import json
import logging
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Sum

from facho.alerts.conditions.weak_light import judged_readings
from facho.alerts.models import Alert, AlertState
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.hosts.models import Olt, Reachability
from facho.onus.models import Outage
from facho.onus.shown_state import count_present
from facho.onus.words import ShownState
from facho.polling.domain.onu_state import WEAKEST_CDBM
from facho.polling.domain.schedule import hour_of
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.read_model import load_run_sums

logger = logging.getLogger(__name__)

# What one request holds, as `zabbix_sender` does it.
CHUNK = 250
# Of one request, from the name of the server to the end of the answer.
REQUEST_SECONDS = 10.0
# Of all requests of a minute to one server: the next minute has newer values.
ROUND_SECONDS = 45.0
MOST_ANSWER_BYTES = 64 * 1024
MOST_HOST_LETTERS = 128
# Long enough that every OLT was asked, short enough to be about now.
ROUND_TRIPS_OF = timedelta(minutes=15)
DAY = timedelta(days=1)
KEYS = (
    "facho.olt.reachable",
    "facho.olt.answer_age",
    "facho.olt.round_trip",
    "facho.olt.onus.online",
    "facho.olt.onus.offline",
    "facho.olt.onus.unknown",
    "facho.olt.onus.weak",
    "facho.olt.outages.open",
    "facho.olt.outages.onus",
    "facho.olt.alerts.firing",
    "facho.olt.violations",
    "facho.olt.quota.required",
    "facho.olt.quota.completed",
    "facho.olt.late",
    "facho.olt.nodes.suspended",
)
_MAGIC, _PLAIN = b"ZBXD", 0x01
_HEADER = struct.Struct("<4sBII")
_INFO = re.compile(r"processed: (\d+); failed: (\d+); total: (\d+)")
_NO_HOST_LETTER = re.compile(r"[^0-9A-Za-z_. -]")
_BY_OLT = "olt_id"


@dataclass(frozen=True, slots=True)
class ZabbixValue:
    """One value of one item, as trapper items take it."""

    host: str
    key: str
    value: str


class NotTaken(Exception):
    """The server answered something else than that it took what was sent."""


def load_values(now: datetime, prefix: str) -> list[ZabbixValue]:
    """Load what is sent of every OLT that is polled, in ten queries; what is not known is left out."""
    olts = Olt.objects.filter(enabled=True).order_by("name", "id")
    found = _load_figures(now)
    values = []
    for olt_id, name, reachability, answered_at in olts.values_list("id", "name", "reachability", "last_answer_at"):
        own: dict[str, float | None] = {key: figures.get(olt_id, 0) for key, figures in found.items()}
        own["facho.olt.round_trip"] = found["facho.olt.round_trip"].get(olt_id)
        own["facho.olt.answer_age"] = max((now - answered_at).total_seconds(), 0) if answered_at else None
        is_known = reachability != Reachability.UNKNOWN
        own["facho.olt.reachable"] = int(reachability == Reachability.UP) if is_known else None
        host = host_name(prefix, name)
        values += [ZabbixValue(host, key, f"{own[key]:.10g}") for key in KEYS if own[key] is not None]
    return values


def _load_figures(now: datetime) -> Mapping[str, Mapping[int, float]]:
    onus = count_present()
    trips: dict[int, tuple[int, int]] = {}
    for summed in load_run_sums(now - ROUND_TRIPS_OF):
        count, total = trips.get(summed.olt_id, (0, 0))
        trips[summed.olt_id] = count + summed.runs.round_trips, total + summed.runs.round_trips_ms
    late: dict[int, float] = {}
    for node in load_due_nodes(now):
        late[node.olt_id] = max(late.get(node.olt_id, 0.0), (now - node.due_at).total_seconds())
    # A part of a larger outage is counted there.
    outages = Outage.objects.filter(ended_at=None, part_of=None, olt__isnull=False).order_by().values_list(_BY_OLT)
    open_now = list(outages.annotate(Count("id"), Sum("down")))
    quotas = QuotaTracker.objects.filter(period_start=hour_of(now).start).order_by().values_list(_BY_OLT)
    owed = list(quotas.annotate(Sum("quota_required"), Sum("quota_completed")))
    weak = judged_readings().filter(rx_power_cdbm__lt=WEAKEST_CDBM).order_by().values_list("onu__olt_id")
    firing = Alert.objects.filter(state=AlertState.FIRING, olt__isnull=False).order_by().values_list(_BY_OLT)
    missed = QuotaViolation.objects.filter(created_at__gt=now - DAY).order_by().values_list(_BY_OLT)
    stopped = WorkflowNode.objects.filter(enabled=True, suspended_at__isnull=False).order_by()
    in_state = {
        f"facho.olt.onus.{state.value}": {olt_id: number for (olt_id, shown), number in onus.items() if shown == state}
        for state in (ShownState.ONLINE, ShownState.OFFLINE, ShownState.UNKNOWN)
    }
    return {
        **in_state,
        "facho.olt.round_trip": {olt_id: total / count for olt_id, (count, total) in trips.items() if count},
        "facho.olt.onus.weak": dict(weak.annotate(Count("onu_id"))),
        "facho.olt.outages.open": {olt_id: count for olt_id, count, _down in open_now},
        "facho.olt.outages.onus": {olt_id: down for olt_id, _count, down in open_now},
        "facho.olt.alerts.firing": dict(firing.annotate(Count("id"))),
        "facho.olt.violations": dict(missed.annotate(Count("id"))),
        "facho.olt.quota.required": {olt_id: required for olt_id, required, _done in owed},
        "facho.olt.quota.completed": {olt_id: done for olt_id, _required, done in owed},
        "facho.olt.late": late,
        "facho.olt.nodes.suspended": dict(stopped.values_list("workflow__olt_id").annotate(Count("id"))),
    }


def host_name(prefix: str, name: str) -> str:
    """Return what the host of an OLT is called in Zabbix, which takes fewer letters than OLTs have."""
    return _NO_HOST_LETTER.sub("_", f"{prefix}{name}").strip()[:MOST_HOST_LETTERS]


def pack(content: Mapping[str, Any]) -> bytes:
    """Write a message as the protocol wants it: a header with the length, and JSON."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return _HEADER.pack(_MAGIC, _PLAIN, len(body), 0) + body


def unpack_header(header: bytes) -> int:
    """Return the length of what follows; ValueError for what is no answer, is compressed or too long."""
    magic, flags, length, _reserved = _HEADER.unpack(header)
    if magic != _MAGIC or flags != _PLAIN or length > MOST_ANSWER_BYTES:
        raise ValueError("this is no answer of Zabbix")
    return int(length)


def read_answer(body: bytes) -> tuple[int, int]:
    """Return how many values were taken and how many not; NotTaken or ValueError for another answer."""
    answer = json.loads(body)
    if not isinstance(answer, dict) or answer.get("response") != "success":
        raise NotTaken
    found = _INFO.search(str(answer.get("info")))
    if found is None:
        raise ValueError("this is no answer of Zabbix")
    return int(found[1]), int(found[2])


async def send_values(server: tuple[str, int], values: Sequence[ZabbixValue], now: datetime) -> int:
    """Send one request and return how many values were refused; OSError, ValueError or NotTaken without success."""
    clock = int(now.timestamp())
    data = [{"host": each.host, "key": each.key, "value": each.value, "clock": clock} for each in values]
    async with asyncio.timeout(REQUEST_SECONDS):
        reader, writer = await asyncio.open_connection(*server, limit=MOST_ANSWER_BYTES)
        try:
            writer.write(pack({"request": "sender data", "data": data, "clock": clock}))
            await writer.drain()
            length = unpack_header(await reader.readexactly(_HEADER.size))
            _taken, refused = read_answer(await reader.readexactly(length))
        finally:
            writer.transport.abort()
    return refused


class ZabbixSender:
    """Sends to each server; the first failure in a row is logged, and its end."""

    def __init__(self, servers: Sequence[tuple[str, int]]) -> None:
        self._servers = servers
        # By server: what was logged last.
        self._trouble: dict[tuple[str, int], str] = {}

    async def send(self, values: Sequence[ZabbixValue], now: datetime) -> None:
        """Send all values to all servers at once; nothing is kept for those that do not take them."""
        await asyncio.gather(*(self._send_to(server, values, now) for server in self._servers))

    async def _send_to(self, server: tuple[str, int], values: Sequence[ZabbixValue], now: datetime) -> None:
        refused, trouble = 0, ""
        try:
            async with asyncio.timeout(ROUND_SECONDS):
                for chunk in _chunks(values):
                    refused += await send_values(server, chunk, now)
        except (OSError, EOFError, ValueError, TimeoutError, NotTaken) as error:
            trouble = type(error).__name__
        else:
            trouble = "refused" if refused else ""
        if trouble == self._trouble.get(server, ""):
            return
        self._trouble[server] = trouble
        name = f"{server[0]}:{server[1]}"
        if trouble == "refused":
            logger.warning("zabbix.refused server=%s values=%s of=%s", name, refused, len(values))
        elif trouble:
            logger.warning("zabbix.failed server=%s error=%s", name, trouble)
        else:
            logger.info("zabbix.works_again server=%s", name)


def _chunks(values: Sequence[ZabbixValue]) -> Iterator[Sequence[ZabbixValue]]:
    return (values[first : first + CHUNK] for first in range(0, len(values), CHUNK))

"""Writes new offsets where an OLT's runs wait for each other and need not; at most once an hour for an OLT."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from facho.execution_coordinator.durations import Length, load_lengths
from facho.execution_coordinator.models import OltState
from facho.execution_coordinator.state import OltRow, load_olts
from facho.execution_coordinator.workload import composites_of
from facho.polling.domain.packing import Load, overlap_seconds_per_hour, repack
from facho.snmp_jobs.models import WorkflowNode

ONCE_IN = timedelta(hours=1)
# Less is noise: lengths vary from run to run, and now and then two runs may well meet.
WORTH_SECONDS_PER_HOUR = 60.0
# Room between runs, so that one that takes a little longer needs no new packing.
ROOM_SHARE, ROOM_SECONDS = 1.2, 2.0


def collides(olt: OltRow, lengths: Mapping[int, Length]) -> bool:
    """Tell whether an OLT's grids make its runs wait for each other for longer than is worth a thought."""
    return overlap_seconds_per_hour(_loads(olt, lengths)) >= WORTH_SECONDS_PER_HOUR


def repack_olts(olt_ids: Collection[int], now: datetime) -> dict[int, int]:
    """Move the grids of these OLTs' masters apart where that helps; returns how many moved, by OLT.

    Only the offset is written, and the next run stays where it is (decision D12). An OLT that the coordinator has
    not remembered yet waits. The caller's transaction holds the moves together with when they were made.
    """
    wanted = _lock_not_packed_since(now - ONCE_IN, olt_ids)
    if not wanted:
        return {}
    lengths = load_lengths(wanted)
    counts = {olt_id: _repack(olt, lengths) for olt_id, olt in load_olts(wanted).items()}
    moved = {olt_id: count for olt_id, count in counts.items() if count}
    OltState.objects.filter(olt_id__in=moved).update(packed_at=now)
    return moved


def _lock_not_packed_since(limit: datetime, olt_ids: Collection[int]) -> list[int]:
    """Return those of the OLTs that may move, held until the transaction ends: nobody else moves them meanwhile."""
    states = OltState.objects.filter(olt_id__in=olt_ids).exclude(packed_at__gt=limit).order_by("olt_id")
    return list(states.select_for_update().values_list("olt_id", flat=True))


def _repack(olt: OltRow, lengths: Mapping[int, Length]) -> int:
    loads = _loads(olt, lengths)
    offsets = repack([replace(load, seconds=_with_room(load.seconds)) for load in loads])
    packed = [replace(load, offset_seconds=offsets.get(load.node_id, load.offset_seconds)) for load in loads]
    if overlap_seconds_per_hour(loads) - overlap_seconds_per_hour(packed) < WORTH_SECONDS_PER_HOUR:
        return 0
    return sum(_save_offset(load, offsets[load.node_id]) for load in loads if load.node_id in offsets)


def _loads(olt: OltRow, lengths: Mapping[int, Length]) -> list[Load]:
    """Return what stands on a grid; a job that follows the end of its runs has none."""
    composites = composites_of(olt, lengths)
    return [composite.as_load for composite in composites if not composite.task.grid.is_fixed_delay]


def _with_room(seconds: float) -> float:
    return seconds * ROOM_SHARE + ROOM_SECONDS if seconds else 0.0


def _save_offset(load: Load, offset_seconds: int) -> int:
    """Write the offset unless somebody has given the node another rhythm meanwhile."""
    as_seen = WorkflowNode.objects.filter(
        id=load.node_id, interval_seconds=load.interval_seconds, offset_seconds=load.offset_seconds
    )
    return as_seen.update(offset_seconds=offset_seconds)

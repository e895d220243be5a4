"""The series about what was run in the last hour: by kind, by OLT, and the retries."""

from collections.abc import Callable

from facho.api.metrics_family import Family, Samples
from facho.api.metrics_read_model import Snapshot
from facho.executions.run_sums import Runs
from facho.polling.domain.execution_state import ExecutionState


def _of_types(figure: Callable[[Runs], float]) -> Callable[[Snapshot], Samples]:
    return lambda snapshot: ((labels, figure(runs)) for labels, runs in snapshot.runs_of_types.items())


def _retries(snapshot: Snapshot) -> Samples:
    return (((kind,), retries.count) for kind, retries in snapshot.retries.items())


def _retry_waits(snapshot: Snapshot) -> Samples:
    return (((kind,), retries.waited_seconds) for kind, retries in snapshot.retries.items())


def _olt_executions(snapshot: Snapshot) -> Samples:
    names = snapshot.names
    for (olt_id, state), runs in snapshot.runs_of_olts.items():
        if olt_id in names:
            yield (names[olt_id], state), runs.count


def _success_ratio(snapshot: Snapshot) -> Samples:
    """Divide by what the device decided: who interrupts or skips a run says nothing about it."""
    runs = snapshot.runs_of_olts
    for olt_id, name in snapshot.names.items():
        succeeded = runs.get((olt_id, ExecutionState.SUCCESS), Runs()).count
        decided = succeeded + runs.get((olt_id, ExecutionState.FAILED), Runs()).count
        if decided:
            yield (name,), succeeded / decided


def _of_olts(figure: Callable[[Runs], float]) -> Callable[[Snapshot], Samples]:
    def samples(snapshot: Snapshot) -> Samples:
        sums: dict[str, Runs] = {}
        names = snapshot.names
        for (olt_id, _state), runs in snapshot.runs_of_olts.items():
            if olt_id in names:
                sums[names[olt_id]] = sums.get(names[olt_id], Runs()) + runs
        return (((name,), figure(total)) for name, total in sums.items())

    return samples


RUN_FAMILIES = (
    Family(
        "facho_executions_last_hour",
        "Runs that ended in the last hour, by kind and final state.",
        ("task_type", "state"),
        _of_types(lambda runs: runs.count),
    ),
    Family(
        "facho_execution_duration_last_hour_seconds",
        "Time for which the runs that ended in the last hour held their OLT, summed.",
        ("task_type", "state"),
        _of_types(lambda runs: runs.total_ms / 1000),
    ),
    Family(
        "facho_execution_duration_max_last_hour_seconds",
        "The longest time for which one of these runs held its OLT.",
        ("task_type", "state"),
        _of_types(lambda runs: runs.longest_ms / 1000),
    ),
    Family(
        "facho_retries_last_hour",
        "Tries after the first one of runs that ended in the last hour.",
        ("task_type",),
        _retries,
    ),
    Family(
        "facho_retry_wait_last_hour_seconds",
        "Time between these tries and the failed ones before them, summed.",
        ("task_type",),
        _retry_waits,
    ),
    Family(
        "facho_olt_executions_last_hour",
        "Runs on the OLT that ended in the last hour, by final state.",
        ("olt", "state"),
        _olt_executions,
    ),
    Family(
        "facho_olt_success_ratio_last_hour",
        "Successful share of the OLT's runs of the last hour that succeeded or failed.",
        ("olt",),
        _success_ratio,
    ),
    Family(
        "facho_olt_packets_last_hour",
        "Packets sent to the OLT by the runs that ended in the last hour.",
        ("olt",),
        _of_olts(lambda runs: runs.packets),
    ),
    Family(
        "facho_olt_retransmissions_last_hour",
        "Those of these packets that were sent again because no answer came in time.",
        ("olt",),
        _of_olts(lambda runs: runs.retransmissions),
    ),
    Family(
        "facho_olt_round_trips_last_hour",
        "Those of these packets that were sent once and answered, so that their round trip is known.",
        ("olt",),
        _of_olts(lambda runs: runs.round_trips),
    ),
    Family(
        "facho_olt_round_trip_last_hour_seconds",
        "Time from these packets to their answers, summed.",
        ("olt",),
        _of_olts(lambda runs: runs.round_trips_ms / 1000),
    ),
    Family(
        "facho_olt_round_trip_max_last_hour_seconds",
        "The longest of these round trips.",
        ("olt",),
        _of_olts(lambda runs: runs.longest_round_trip_ms / 1000),
    ),
)

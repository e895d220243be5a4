"""How fast an OLT answers is part of what is kept of each run."""

import pytest

from facho.polling.domain.execution_state import QueryType
from facho.simulator.agent import Faults
from snmp_get.olt_bench import Bench, on_bench

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_tells_the_latency_of_its_olt() -> None:
    async def scene(bench: Bench) -> None:
        summary = (await bench.collect(QueryType.WALK, ["onu.run_state"])).summary

        assert summary["round_trips"] == summary["packets"] != 0
        mean_ms = int(summary["round_trips_ms"]) / int(summary["round_trips"])
        assert 30 <= mean_ms < 130
        assert mean_ms - 1 <= int(summary["longest_round_trip_ms"]) <= int(summary["round_trips_ms"])

    on_bench(scene, timeout=2.0, latency_ms=30.0)


def test_what_had_to_be_asked_again_is_left_out() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.WALK, ["onu.run_state"])

        sent, repeated, measured = (
            int(collected.summary[key]) for key in ("packets", "retransmissions", "round_trips")
        )
        assert (collected.failure, repeated > 0) == (None, True)
        assert 0 < measured < sent - repeated

    on_bench(scene, timeout=0.2, faults=Faults(silent_after=1, silent_seconds=0.1))


def test_a_silent_olt_has_none() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.WALK, ["onu.run_state"])

        assert int(collected.summary["packets"]) > 0
        assert [collected.summary[key] for key in ("round_trips", "round_trips_ms", "longest_round_trip_ms")] == [0] * 3

    on_bench(scene, timeout=0.02, faults=Faults(is_silent=True))

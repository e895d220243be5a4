"""What the benchmarks measure with is right: the bare prototype, the fleet, CPU of process trees, what breaks first."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from bench import report
from bench.bare import BareColumn, encode_request, place_of, walk
from bench.end_to_end import BARE, ON_SQLITE, PRODUCT, PipelineSample, describe
from bench.fleet import VENDOR, clock_of, running_fleet
from bench.growth import BOUNDS, first_to_break
from bench.processes import cpu_seconds, tree_of, tree_seconds
from bench.product import KEYS, ProductTask, as_stored, hand_over_ms, idle_ms, percentile, running_product

from facho.executions.models import Execution
from facho.polling.snmp.ber import PduKind, decode_message
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.simulator.readings import DRIFT_STEP_SECONDS

# Burns CPU in a grandchild that ends, and then waits to be ended.
_BURN = "sum(n * n for n in range(3_000_000))"
_PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_BURN!r}]); print(flush=True); input()"
pytestmark = pytest.mark.any_database
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_bare_request_is_a_bulk_for_the_rows_after() -> None:
    column = BareColumn("onu.rx_power", [1, 3, 6, 1, 4, 1, 2011, 6], 0.01, [])

    message = decode_message(encode_request(70_000, [column.prefix] * 8, 25))

    assert (message.pdu.kind, message.pdu.request_id, message.pdu.error_index) == (PduKind.GET_BULK, 70_000, 25)
    assert [tuple(varbind[0]) for varbind in message.pdu.varbinds] == [(1, 3, 6, 1, 4, 1, 2011, 6)] * 8


async def test_bare_walk_reads_what_is_true() -> None:
    column = load_definitions()[VENDOR].column("onu.distance")
    prefix = BareColumn(column.key, list(column.oid), 1.0, []).prefix

    with running_fleet(olts=1, onus=60, latency_ms=0.0) as fleet:
        (truth,) = fleet.truth(["onu.distance"]).values()
        (rows,) = await walk(fleet.ports[0], [prefix], repetitions=25)

    suffixes = {at: column.index.encode(Place(*map(int, at.split("/")))) for at in truth}
    expected = {".".join(map(str, suffixes[at])): -1 if true is None else true for at, (true,) in truth.items()}
    assert {place_of(index): value for index, value in rows.items()} == expected


def test_fleet_in_two_processes_is_one_fleet() -> None:
    with running_fleet(olts=3, onus=10, latency_ms=0.0, processes=2) as fleet:
        truth = fleet.truth(["onu.serial"])

    assert sorted(truth) == sorted(fleet.ports)
    assert len({serial for onus in truth.values() for (serial,) in onus.values()}) == 30


def test_light_of_the_olts_of_a_fleet_moves_at_different_seconds_of_the_minute() -> None:
    ahead = sorted(clock_of(number, speed=1.0).now() for number in range(100))

    assert ahead[-1] < DRIFT_STEP_SECONDS
    assert max(later - earlier for earlier, later in pairwise(ahead)) < 2


def test_world_stands_still_between_rounds_and_moves_before_each() -> None:
    with running_fleet(olts=1, onus=20, latency_ms=0.0, speed=1.0) as fleet:
        fleet.move_on(300, KEYS)
        first, again = fleet.truth(KEYS), fleet.truth(KEYS)
        fleet.move_on(300, KEYS)
        later = fleet.truth(KEYS)

    assert first == again
    assert first != later


def test_cpu_of_a_tree_has_that_of_children_that_ended() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()

        own, tree, members = cpu_seconds(parent.pid), tree_seconds(parent.pid), tree_of(parent.pid)
        parent.communicate("\n")

    assert tree > own
    assert members == {parent.pid}


def test_idle_time_is_counted_on_each_poller() -> None:
    def run(poller: int, start: int, end: int) -> Execution:
        return Execution(
            poller_id=poller, started_at=NOW + timedelta(seconds=start), finished_at=NOW + timedelta(seconds=end)
        )

    assert sorted(idle_ms([run(1, 0, 4), run(2, 0, 1), run(1, 5, 6), run(2, 1, 9)])) == [0, 1000]


def test_a_hand_over_is_counted_where_the_next_run_of_the_olt_was_due() -> None:
    def run(olt: int, slot: int, start: int, end: int) -> Execution:
        slot_at, started_at, finished_at = (NOW + timedelta(seconds=second) for second in (slot, start, end))
        return Execution(olt_id=olt, slot_at=slot_at, started_at=started_at, finished_at=finished_at)

    waited, own_slot, elsewhere = run(1, 0, 5, 6), run(1, 9, 9, 10), run(2, 0, 0, 3)

    assert hand_over_ms([waited, run(1, 0, 0, 4), own_slot, elsewhere]) == [1000]


def test_truth_is_compared_as_it_is_stored() -> None:
    assert as_stored(["online", "los", 120, -21.37, None, 44]) == ["online", "los", 120, -2137, None, 440]


def test_percentile_of_few_values_is_no_error() -> None:
    assert percentile([], 99) == 0
    assert percentile([3.0], 99) == 3
    assert percentile([1.0, 2.0, 3.0], 50) == 2


def test_first_thing_to_break_is_named_with_its_bound() -> None:
    calm = dict.fromkeys(BOUNDS, 0.0)

    assert first_to_break(10_000, calm) == ""
    assert "runs start late" in first_to_break(10_000, calm | {"late_p99": 31, "page_ms": 5_000})


def test_memory_may_grow_with_the_network() -> None:
    figures = dict.fromkeys(BOUNDS, 0.0) | {"engine_mb": 300}

    assert first_to_break(100_000, figures)
    assert not first_to_break(1_000_000, figures)


def sample(cpu: float) -> list[PipelineSample]:
    return [PipelineSample(cpu, 1.0, 0.1, 1000.0, [10.0, 60.0], 100.0, asked_again=0)]


@pytest.mark.parametrize("peers", [True, False])
def test_a_peer_that_was_asked_for_and_not_measured_breaks_its_promise(peers: bool) -> None:
    section = describe("", {name: sample(8.0) for name in (BARE, PRODUCT, ON_SQLITE)}, peers=peers)

    held = {target.name: target.is_met for target in section.targets}
    assert held.get("CPU per value, of Zabbix's") is (False if peers else None)


def test_ratios_are_held_against_what_was_promised() -> None:
    costs = {BARE: 8.0, PRODUCT: 12.0, ON_SQLITE: 13.0, "Zabbix 7.0.9": 30.0}
    section = describe("", {name: sample(cpu) for name, cpu in costs.items()}, peers=True)

    held = {target.name: target.is_met for target in section.targets}
    assert held["CPU per value, of the bare pipeline's"]
    assert held["CPU per value, of Zabbix's"]
    assert not held["CPU s per million values"]
    assert not held["CPU per value on SQLite, of that on PostgreSQL"]


@pytest.mark.slow
def test_driven_product_stores_what_is_true() -> None:
    with (
        running_fleet(olts=2, onus=20, latency_ms=0.0, speed=1.0) as fleet,
        running_product(ProductTask(fleet.ports, pollers=2), None) as driver,
    ):
        fleet.move_on(300, KEYS)
        polled = driver.ask("poll")
        compared = driver.ask("compare", fleet.truth(KEYS))
        product = driver.ask("pid")

    assert tree_of(product) == set()
    assert polled["values"] == all_values(olts=2, onus=20)
    assert compared == {"wrong": 0, "examples": [], "of": all_values(olts=2, onus=20)}


def all_values(*, olts: int, onus: int) -> int:
    return olts * onus * len(KEYS)


def test_what_was_measured_before_a_failure_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)

    def sections() -> Iterator[report.Section]:
        yield report.Section("First", ("Name",), [("one",)], [])
        raise RuntimeError("the second one breaks")

    with pytest.raises(RuntimeError, match="second"):
        report.print_sections(sections(), keep_as="engine")

    assert "## First" in (tmp_path / "engine.md").read_text()


def broken(_options: object) -> list[report.Section]:
    return [report.Section("Broken", ("Name",), [], [report.Target("a promise", 3, 2), report.Target("none", 0, 0)])]


@pytest.mark.parametrize("words", [["runs"], []])
def test_bench_fails_where_a_promise_is_broken_and_prints_each_with_its_ratio(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = importlib.import_module("bench.__main__")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(whole, "PARTS", {"runs": broken})
    monkeypatch.setattr(sys, "argv", ["bench", *words])

    assert whole.main() == 1

    printed = capsys.readouterr().out
    assert "| a promise | 2 | 3 | 1.5 | NO |" in printed
    assert "| none | 0 | 0 |  | yes |" in printed
    kept = tmp_path / ("runs.md" if words else "engine.md")
    assert ("`make bench BENCH=runs`" if words else "`make bench`") in kept.read_text()


def test_every_part_of_the_bench_has_a_name_in_its_documentation() -> None:
    whole = importlib.import_module("bench.__main__")
    documented = (Path(whole.__file__).parents[1] / "docs" / "benchmarks.md").read_text()

    assert [name for name in (*whole.PARTS, *whole.WHEN_NAMED) if f"`{name}`" not in documented] == []

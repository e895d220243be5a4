"""`facho record`: a file that can be given away, or one line that says why there is none."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_runner import Command, Outcome
from django.db import connections
from pytest_django import Settings

from facho.executions import store
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest
from facho.hosts.models import Olt
from facho.infrastructure.gateway import SystemClock
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.vendors.anonymise import read_recording
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from factories import make_olt

pytestmark = pytest.mark.django_db(transaction=True)

Play = Callable[..., Outcome]


@pytest.fixture
def record(facho: Command, settings: Settings) -> Play:
    """`facho record` on a simulated OLT that `prepare` may spoil."""
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.2

    def work(simulated: SimulatedOlt, options: tuple[str, ...], prepare: Callable[[Olt], None]) -> Outcome:
        try:
            olt = make_olt(port=simulated.port, vendor=simulated.vendor)
            prepare(olt)
            return facho("record", olt.name, *options)
        finally:
            connections.close_all()

    async def play(options: tuple[str, ...], prepare: Callable[[Olt], None], faults: Faults) -> Outcome:
        config = SimulatorConfig(vendor="huawei_smartax", onus=8, life=STILL, faults=faults)
        async with Simulation.start(config) as simulation:
            return await asyncio.to_thread(work, simulation.olts[0], options, prepare)

    def run(*options: str, prepare: Callable[[Olt], None] = lambda olt: None, faults: Faults | None = None) -> Outcome:
        return asyncio.run(play(options, prepare, faults or Faults()))

    return run


def test_a_recording_goes_to_standard_output_and_its_progress_beside_it(record: Play) -> None:
    done = record()

    assert done.status == 0
    assert len(read_recording(done.out)) > 100
    assert done.out.startswith("# A device of the family huawei_smartax.")
    progress = done.err.splitlines()
    assert progress[0] == "1 of 16: system group, 4 values"
    assert progress[-1].startswith(f"{len(done.out.splitlines())} lines recorded.")


def test_a_recording_is_one_run_under_the_claim_of_the_olt(record: Play) -> None:
    record()

    execution = Execution.objects.get()
    assert (execution.task_type, execution.origin, execution.node) == ("record", Origin.MANUAL, None)
    assert execution.status == ExecutionState.SUCCESS


def test_a_recording_goes_into_a_file_and_nothing_else_is_left(record: Play, tmp_path: Path) -> None:
    file = tmp_path / "olt.snmprec"
    file.write_text("an older one")

    done = record("--output", str(file))

    assert (done.status, done.out) == (0, "")
    assert len(read_recording(file.read_text())) > 100
    assert list(tmp_path.iterdir()) == [file]


def test_live_columns_can_be_left_out(record: Play) -> None:
    assert "live columns" in record().err
    assert "live columns" not in record("--no-live").err


def test_a_silent_olt_leaves_no_file(record: Play, tmp_path: Path, settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.02

    done = record("--output", str(tmp_path / "olt.snmprec"), faults=Faults(is_silent=True))

    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert "was not recorded" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_breaks_in_the_middle_keeps_the_older_file(
    record: Play, tmp_path: Path, settings: Settings
) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.02
    file = tmp_path / "olt.snmprec"
    file.write_text("an older one")

    done = record("--output", str(file), faults=Faults(silent_after=5))

    assert (done.status, done.out) == (1, "")
    assert "was not recorded" in done.err.splitlines()[-1]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["an older one"]


def test_a_busy_olt_is_asked_for_again_later(record: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.core.cli.vendor.WAIT_SECONDS", 0.0)

    def occupy(olt: Olt) -> None:
        store.claim([ClaimRequest(olt.id, "probe", Origin.PROBE)], owner="another", now=SystemClock().now())

    done = record(prepare=occupy)

    assert (done.status, done.out) == (1, "")
    assert "is busy with a long run" in done.err


def test_a_disabled_olt_is_not_asked(record: Play) -> None:
    done = record(prepare=lambda olt: bool(Olt.objects.filter(id=olt.id).update(enabled=False)))

    assert (done.status, done.out) == (1, "")
    assert "is disabled" in done.err
    assert not Execution.objects.exists()


def test_an_olt_of_no_known_vendor_is_recorded_to_be_handed_in(record: Play) -> None:
    done = record(prepare=lambda olt: bool(Olt.objects.filter(id=olt.id).update(vendor="")))

    assert done.status == 0
    assert done.out.startswith("# A device of no known family.")
    assert len(read_recording(done.out)) > 100
    assert "tables of the vendor" in done.err


def test_an_unknown_olt_is_said_in_one_line(facho: Command) -> None:
    done = facho("record", "nowhere")

    assert (done.status, done.err) == (1, 'facho: There is no OLT "nowhere"; `facho olt list` shows them.\n')


@pytest.mark.parametrize("place", [".", "no/such/folder.snmprec"])
def test_a_file_that_cannot_be_written_is_named_before_the_olt_is_asked(
    facho: Command, tmp_path: Path, place: str
) -> None:
    olt = make_olt()

    done = facho("record", olt.name, "--output", str(tmp_path / place))

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert done.err.startswith(f"facho: {tmp_path / place}: ")
    assert not Execution.objects.exists()


@pytest.fixture
def simulated_olt(product_environ: dict[str, str]) -> Iterator[list[str]]:
    """A simulated OLT in a process of its own: the words of the line that it printed."""
    command = [sys.executable, "-m", "facho.core.cli.main", "simulate", "--vendor", "zte_c300", "--onus", "8"]
    with subprocess.Popen(command, env=product_environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@pytest.mark.usefixtures("made_database")
def test_two_processes_one_speaks_as_an_olt_and_the_other_records_it(
    simulated_olt: list[str], facho_process: Command
) -> None:
    _name, host, port, _vendor, community = simulated_olt
    facho_process("olt", "add", "centro", host, "--port", port, "--community-stdin", stdin=community.encode())
    assert facho_process("record", "centro").out.startswith("# A device of no known family.")
    facho_process("olt", "probe", "centro")

    done = facho_process("record", "centro")

    assert done.status == 0
    assert done.out.startswith("# A device of the family zte_c300_c320.")
    assert len(read_recording(done.out)) > 100

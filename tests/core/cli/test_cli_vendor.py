"""`facho vendor`: a definition that is being written, checked without a device and tried on a simulated one."""

import asyncio
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from cli_runner import Command, Outcome
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from facho.executions import store
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest
from facho.hosts.models import LearnedSize, Olt
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ExecutionState
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from factories import make_olt

pytestmark = pytest.mark.django_db(transaction=True)

VENDOR = "huawei_smartax"
Try = Callable[..., Outcome]
Change = Callable[[dict[str, dict[str, dict[str, dict[str, object]]]]], None]


def written(folder: Path, change: Change = lambda tables: None) -> Path:
    """Write a family's definition under a key of its own, changed."""
    data = yaml.safe_load((files("facho.polling.vendors") / f"definitions/{VENDOR}.yaml").read_text())
    data["key"] = "acme"
    change(data["tables"])
    file = folder / "acme.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    return file


def spoil(tables: dict[str, dict[str, dict[str, dict[str, object]]]]) -> None:
    """Make mistakes of every kind that a device shows."""
    columns = {key: column for table in tables.values() for key, column in table["columns"].items()}
    columns["onu.run_state"]["values"] = {9: "online"}
    columns["onu.distance"] |= {"range": [0, 1]}
    columns["onu.description"] |= {"type": "Integer32"}
    columns["onu.description"].pop("decoder", None)
    columns["board.cpu"]["id"] = 4711


@pytest.fixture
def try_(facho: Command, settings: Settings) -> Try:
    """`facho vendor try FILE --olt …` on a simulated OLT that `prepare` may spoil."""
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.2

    def work(simulated: SimulatedOlt, words: tuple[str, ...], prepare: Callable[[Olt], object]) -> Outcome:
        try:
            olt = make_olt(port=simulated.port, vendor=simulated.vendor)
            prepare(olt)
            return facho("vendor", "try", *words, "--olt", olt.name)
        finally:
            connections.close_all()

    async def play(words: tuple[str, ...], prepare: Callable[[Olt], object], faults: Faults) -> Outcome:
        config = SimulatorConfig(vendor=VENDOR, onus=40, life=STILL, faults=faults)
        async with Simulation.start(config) as simulation:
            return await asyncio.to_thread(work, simulation.olts[0], words, prepare)

    def run(
        file: Path, *words: str, prepare: Callable[[Olt], object] = lambda olt: None, faults: Faults | None = None
    ) -> Outcome:
        return asyncio.run(play((str(file), *words), prepare, faults or Faults()))

    return run


def columns_of(done: Outcome) -> dict[str, dict[str, object]]:
    assert done.status == 0, done.err
    return {line["column"]: line for line in json.loads(done.out)["columns"]}


def test_a_sound_file_is_confirmed_with_what_it_leaves_out(facho: Command, tmp_path: Path) -> None:
    done = facho("vendor", "check", str(written(tmp_path)))

    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("acme.yaml: no faults; ")


def test_every_fault_is_a_line_with_file_and_key(facho: Command, tmp_path: Path) -> None:
    def change(tables: dict[str, dict[str, dict[str, dict[str, object]]]]) -> None:
        for table in tables.values():
            next(iter(table["columns"].values()))["sacle"] = 1

    done = facho("vendor", "check", str(written(tmp_path, change)))

    assert done.status == 1
    assert len(done.out.splitlines()) > 5
    assert all(line.startswith("acme.yaml: tables.") for line in done.out.splitlines())
    faults = json.loads(facho("vendor", "check", str(tmp_path / "acme.yaml"), "--json").out)["faults"]
    assert faults[0]["problem"] == "unknown key"
    assert len(faults) == len(done.out.splitlines())


def test_a_file_that_is_not_there_is_wrong_use(facho: Command, tmp_path: Path) -> None:
    done = facho("vendor", "check", str(tmp_path / "acme.yaml"))

    assert done.status == 2
    assert "acme.yaml is not a file" in done.err


def test_a_check_leaves_out_nothing_that_a_small_definition_lacks(facho: Command, tmp_path: Path) -> None:
    file = tmp_path / "generic.yaml"
    file.write_text((files("facho.polling.vendors") / "definitions/generic.yaml").read_text())

    done = facho("vendor", "check", str(file))

    assert done.status == 0
    assert "generic.yaml: no onu.distance: the distance of an ONU stays unknown" in done.out.splitlines()
    assert "onu.run_state" in json.loads(facho("vendor", "check", str(file), "--json").out)["missing"]


def test_a_sound_definition_reads_every_column_without_a_fault_of_its_own(try_: Try, tmp_path: Path) -> None:
    columns = columns_of(try_(written(tmp_path), "--json"))

    power = columns["onu.rx_power"]
    assert (power["unit"], power["suspicious"], power["rows"]) == ("dBm", "", "8+")
    assert power["value"] == int(str(power["raw"])) / 100
    state = columns["onu.run_state"]
    assert (state["rows"], state["value"], state["suspicious"]) == ("40", "online", "")


def test_what_is_suspicious_is_named_by_column(try_: Try, tmp_path: Path) -> None:
    columns = columns_of(try_(written(tmp_path, spoil), "--json"))

    assert "values without a word (40x: 1" in str(columns["onu.run_state"]["suspicious"])
    assert "out of range (" in str(columns["onu.distance"]["suspicious"])
    assert "another type than the column's (40x" in str(columns["onu.description"]["suspicious"])
    assert "no rows" in str(columns["board.cpu"]["suspicious"])


def test_a_trial_is_one_run_under_the_claim_and_stores_nothing(try_: Try, tmp_path: Path) -> None:
    try_(written(tmp_path))

    execution = Execution.objects.get()
    assert (execution.task_type, execution.origin) == ("vendor_try", Origin.MANUAL)
    assert execution.status == ExecutionState.SUCCESS
    assert not Onu.objects.exists()
    assert not LearnedSize.objects.exists()


def test_a_table_is_printed_for_people(try_: Try, tmp_path: Path) -> None:
    done = try_(written(tmp_path), "--rows", "3")

    heading, *rows = done.out.splitlines()
    assert heading.split()[:5] == ["COLUMN", "OID", "ROWS", "PLACE", "TYPE"]
    assert len(rows) > 30
    assert " 3+ " in done.out
    assert "has not reported its sysObjectID" in done.err


def test_an_olt_that_said_who_it_is_shows_whether_it_is_recognised(try_: Try, tmp_path: Path) -> None:
    def identify(olt: Olt) -> None:
        Olt.objects.filter(id=olt.id).update(sys_object_id="1.3.6.1.4.1.99999.1")

    assert "is not recognised as acme" in try_(written(tmp_path), prepare=identify).err


def test_an_olt_of_no_known_vendor_can_be_tried(try_: Try, tmp_path: Path) -> None:
    done = try_(written(tmp_path), "--json", prepare=lambda olt: Olt.objects.filter(id=olt.id).update(vendor=""))

    assert columns_of(done)["onu.serial"]["rows"] == "40"


def test_a_faulty_file_asks_no_olt(try_: Try, tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    file.write_text("key: acme\n")

    done = try_(file)

    assert done.status == 1
    assert "facho: acme.yaml: brand: is missing" in done.err.splitlines()
    assert not Execution.objects.exists()


def test_a_silent_olt_is_one_line(try_: Try, tmp_path: Path, settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.02

    done = try_(written(tmp_path), faults=Faults(is_silent=True))

    assert done.status == 1
    assert "answered for 0 columns, then: " in done.err.splitlines()[-1]


def test_a_busy_olt_is_left_to_its_run(try_: Try, tmp_path: Path) -> None:
    def occupy(olt: Olt) -> None:
        store.claim([ClaimRequest(olt.id, "probe", Origin.PROBE)], owner="another", now=timezone.now())

    done = try_(written(tmp_path), "--wait", "1", prepare=occupy)

    assert (done.status, done.out) == (1, "")
    assert "stayed busy for 1 s" in done.err


def test_a_definition_is_tried_on_a_recording_without_a_device(facho: Command, tmp_path: Path) -> None:
    recording = Path(__file__).parents[2] / f"polling/vendors/recordings/{VENDOR}.snmprec"

    done = facho("vendor", "try", str(written(tmp_path)), "--recording", str(recording), "--json")

    columns = columns_of(done)
    assert columns["onu.serial"]["suspicious"] == "rows without a place: the index does not fit (1x)"
    assert columns["onu.rx_power"]["unit"] == "dBm"
    assert not Execution.objects.exists()


@pytest.mark.parametrize(("content", "words"), [(None, "No such file"), ("nonsense", "line 1: not of the form")])
def test_a_recording_that_cannot_be_read_is_named(
    facho: Command, tmp_path: Path, content: str | None, words: str
) -> None:
    recording = tmp_path / "olt.snmprec"
    if content is not None:
        recording.write_text(content)

    done = facho("vendor", "try", str(written(tmp_path)), "--recording", str(recording))

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert words in done.err

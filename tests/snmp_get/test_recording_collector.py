"""Recording simulated OLTs over real UDP: all of it, gently, and nothing that could harm anybody."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from facho.executions.store import save_rows
from facho.hosts.models import LearnedSize, Olt
from facho.infrastructure.gateway import ThreadGateway
from facho.onus.models import Onu
from facho.polling.domain.collection import Collected, CollectRequest
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.snmp.errors import OwnershipLost
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID
from facho.polling.vendors.anonymise import read_recording
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions, recognise, recognise_by_tables, tables_to_ask
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_get import recording as recording_module
from facho.snmp_get.reading import Devices
from facho.snmp_get.recording import (
    LIVE_COLUMNS,
    LIVE_ONUS,
    NOT_STARTED,
    SAMPLE_ROWS,
    VENDOR_TABLES,
    Recording,
    RecordingCollector,
    RecordingStep,
    next_sample,
)
from factories import NOW, make_olt
from learned_rows import GIVING_IDS, learned, rows_of_its_own

pytestmark = pytest.mark.django_db(transaction=True)

SALT = b"a salt of the tests"
FAMILIES = [key for key, definition in load_definitions().items() if definition.onu_indexes]


class Permit:
    """Allows so many packets."""

    def __init__(self, packets: int = 1_000_000) -> None:
        self.left = packets

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OwnershipLost("another owner holds the claim")

    def show(self, progress: object) -> None:
        """Show it to nobody."""


class Bench:
    """A simulated OLT with its row, and a recorder to try on it."""

    def __init__(
        self, simulated: SimulatedOlt, olt: Olt, recorder: RecordingCollector, steps: list[RecordingStep]
    ) -> None:
        self.simulated, self.olt, self.recorder, self.steps = simulated, olt, recorder, steps

    async def collect(self, permit: Permit | None = None) -> Collected:
        """Record and store, as a run does."""
        request = CollectRequest(self.olt.id, self.olt.address, self.olt.port, self.olt.vendor, QueryType.GET, ())
        collected = await self.recorder.collect(request, permit or Permit())
        await self.recorder.devices.database.run(save_rows, request.olt_id, collected.rows, now=NOW)
        return collected

    @property
    def text(self) -> str:
        return self.recorder.recording.text(salt=SALT)


def on_bench(
    scene: Callable[[Bench], Awaitable[None]],
    *,
    vendor: str = "huawei_smartax",
    onus: int = 40,
    timeout: float = 0.2,
    with_live: bool = True,
    **wishes: Any,
) -> None:
    """Play a scene with one simulated OLT."""

    async def run() -> None:
        database, steps = ThreadGateway(), list[RecordingStep]()
        config = SimulatorConfig(vendor=vendor, onus=onus, life=STILL, **wishes)
        async with Simulation.start(config) as simulation, Network() as network:
            [simulated] = simulation.olts
            olt = await database.run(make_olt, port=simulated.port, vendor=simulated.vendor)
            recorder = RecordingCollector(Devices(network, database, timeout), steps.append, with_live=with_live)
            await scene(Bench(simulated, olt, recorder, steps))
        await database.close()

    asyncio.run(run())


def decoded(definition: Definition, text: str, key: str) -> dict[Place | None, object]:
    rows = read_recording(text)
    column = learned(definition, rows).column(key)
    return {place: column.decode(tag, value).value for place, (_, tag, value) in rows_of_its_own(column, rows)}


def live_columns(definition: Definition) -> list[Column]:
    return [c for c in definition.columns.values() if c.cost is Cost.LIVE and c.index.scope is Scope.ONU]


@pytest.mark.parametrize("vendor", GIVING_IDS)
def test_a_recording_shows_the_world_behind_the_olt(vendor: str) -> None:
    definition = load_definitions()[vendor]

    async def scene(bench: Bench) -> None:
        collected = await bench.collect()
        assert collected.failure is None
        onus = {onu.place: onu for onu in bench.simulated.world.onus}
        assert decoded(definition, bench.text, "onu.run_state") == {place: onu.state for place, onu in onus.items()}
        [identity] = definition.identity_columns()
        assert len(set(decoded(definition, bench.text, identity).values())) == len(onus)
        if definition.has_column("onu.distance"):
            for place, distance in decoded(definition, bench.text, "onu.distance").items():
                assert place is not None
                assert distance in (None, onus[place].distance_m)
        assert bench.simulated.counters.max_in_flight == 1

    on_bench(scene, vendor=vendor)


@pytest.mark.parametrize("vendor", FAMILIES)
def test_a_recording_tells_no_serial_and_no_name(vendor: str) -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect()
        values = [value for _, _, value in read_recording(bench.text) if isinstance(value, bytes)]
        reported = b"\n".join(values).upper()
        for onu in bench.simulated.world.onus:
            code, area = onu.description.encode().upper().split(b" ", 1)
            assert onu.serial[4:].encode() not in reported
            assert bytes.fromhex(onu.serial[4:]).upper() not in reported
            assert code not in reported
            assert area not in reported
        assert bench.simulated.name.encode().upper() not in reported

    on_bench(scene, vendor=vendor, name_prefix="centro-norte")


@pytest.mark.parametrize("vendor", FAMILIES)
def test_a_recorded_device_is_recognised(vendor: str) -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect()
        values = {oid: value for oid, _, value in read_recording(bench.text)}
        object_id, descr = values[SYS_OBJECT_ID], values[SYS_DESCR]
        assert isinstance(object_id, tuple)
        assert isinstance(descr, bytes)
        answering = [table for table in tables_to_ask(object_id) if any(oid[: len(table)] == table for oid in values)]
        verdict = recognise_by_tables(recognise(object_id, descr.decode()), object_id, answering)
        assert verdict is load_definitions()[vendor]
        assert values[SYS_NAME] == b"Text 1"

    on_bench(scene, vendor=vendor)


@pytest.mark.parametrize("vendor", GIVING_IDS)
def test_light_is_read_of_a_few_online_onus_in_all_columns(vendor: str) -> None:
    definition = load_definitions()[vendor]

    async def scene(bench: Bench) -> None:
        offline, *_ = world_onus = list(bench.simulated.world.onus)
        bench.simulated.world.take_down(offline, DownCause.DYING_GASP)
        await bench.collect()
        online = {onu.place for onu in world_onus if onu.state is RunState.ONLINE}
        for column in live_columns(definition):
            places = decoded(definition, bench.text, column.key)
            assert len(places) == LIVE_ONUS
            assert set(places) <= online
        assert None not in decoded(definition, bench.text, "onu.rx_power").values()

    on_bench(scene, vendor=vendor, onus=60)


def test_light_can_be_left_out() -> None:
    definition = load_definitions()["huawei_smartax"]

    async def scene(bench: Bench) -> None:
        await bench.collect()
        assert not any(decoded(definition, bench.text, column.key) for column in live_columns(definition))
        assert LIVE_COLUMNS not in [step.part for step in bench.steps]

    on_bench(scene, with_live=False)


def test_each_part_is_reported_when_it_is_done() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect()
        parts = [step.part for step in bench.steps]
        assert (parts[0], parts[1], parts[-1]) == ("system group", "onu_config", LIVE_COLUMNS)
        assert [step.number for step in bench.steps] == list(range(1, bench.steps[0].of + 1))
        assert sum(step.values for step in bench.steps) == len(bench.recorder.recording.rows)

    on_bench(scene)


def test_a_device_without_onus_is_recorded() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect()
        assert (collected.failure, collected.was_heard) == (None, True)
        assert bench.steps[-1].part == VENDOR_TABLES
        assert "|4|GPON " in bench.text

    on_bench(scene, vendor="generic", onus=4)


@pytest.mark.parametrize("vendor", FAMILIES)
def test_a_device_that_no_definition_knows_is_sampled_without_names(vendor: str) -> None:
    definition = load_definitions()[vendor]

    async def scene(bench: Bench) -> None:
        bench.olt.vendor = ""
        collected = await bench.collect()
        assert collected.failure is None
        assert bench.text.startswith("# A device of no known family.")
        text = bench.text
        reported = b"\n".join(value for _, _, value in read_recording(text) if isinstance(value, bytes)).upper()
        for onu in bench.simulated.world.onus:
            code, area = onu.description.encode().upper().split(b" ", 1)
            assert not [word for word in (code, area, onu.serial[4:].encode()) if word in reported]
        assert bench.simulated.name.encode().upper() not in reported
        columns = {column.oid for column in definition.columns.values() if column.oid[4:6] == (4, 1)}
        sampled = {oid for oid in columns if any(row[0][: len(oid)] == oid for row in read_recording(text))}
        assert len(sampled) > len(columns) / 2

    on_bench(scene, vendor=vendor, onus=100)


def test_a_sample_has_as_many_rows_as_show_a_column() -> None:
    definition = load_definitions()["huawei_smartax"]

    async def scene(bench: Bench) -> None:
        bench.olt.vendor = "generic"
        await bench.collect()
        for key in ("onu.serial", "onu.run_state", "onu.distance"):
            assert SAMPLE_ROWS <= len(decoded(definition, bench.text, key)) < 2 * SAMPLE_ROWS
        assert not bench.recorder.recording.is_cut

    on_bench(scene, onus=400)


def test_a_sample_that_reaches_a_bound_says_that_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "MAX_UNKNOWN_ROWS", 100)

    async def scene(bench: Bench) -> None:
        bench.olt.vendor = ""
        await bench.collect()
        assert "# It has more than was read.\n" in bench.text
        assert len(bench.recorder.recording.rows) < 200

    on_bench(scene)


PORT = 4194304000


@pytest.mark.parametrize(
    ("suffixes", "after"),
    [
        ([(1, 1, 9, n) for n in range(16)], (1, 1, 10)),
        ([(1, 1, 9, PORT, n) for n in range(16)], (1, 1, 10)),
        ([(1, 1, 9, PORT + n, 1) for n in range(16)], (1, 1, 10)),
        ([(1, 1, n, 1) for n in range(16)], (1, 1, 15, 1)),
        ([(1, n, 0) for n in range(16)], (1, 15, 0)),
        ([(1, 1, 9, 1, n) for n in range(8)] + [(1, 1, 9, 2, n) for n in range(8)], (1, 1, 9, 2, 7)),
    ],
)
def test_a_sample_continues_behind_the_column_that_it_shows(suffixes: list[tuple[int, ...]], after: object) -> None:
    assert next_sample(suffixes) == after


def test_a_recording_is_the_same_when_it_is_written_again() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect()
        assert bench.text == bench.text
        assert bench.text != bench.recorder.recording.text(salt=b"another salt")

    on_bench(scene)


def test_nothing_is_stored_but_what_was_learned_about_sizes() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect()

    on_bench(scene, faults=Faults(too_big_above=900))

    assert LearnedSize.objects.exists()
    assert not Onu.objects.exists()


@pytest.mark.parametrize("packets", [0, 1, 8, 40])
def test_a_lost_claim_ends_the_recording_before_the_next_packet(packets: int) -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(Permit(packets))
        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.CANCELLED
        assert bench.simulated.counters.requests == packets
        assert bench.recorder.recording.failure == collected.failure
        with pytest.raises(ValueError, match="incomplete"):
            bench.recorder.recording.text(salt=SALT)

    on_bench(scene, onus=120)


def test_a_silent_olt_is_no_recording() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect()
        assert collected.failure is not None
        assert (collected.failure.kind, collected.was_heard) == (FailureKind.TIMEOUT, False)
        assert bench.steps == []

    on_bench(scene, timeout=0.02, faults=Faults(is_silent=True))


def test_an_unknown_vendor_fails_before_any_packet() -> None:
    async def scene(bench: Bench) -> None:
        bench.olt.vendor = "acme"
        collected = await bench.collect()
        assert collected.failure is not None
        assert "acme" in collected.failure.message
        assert bench.simulated.counters.requests == 0

    on_bench(scene)


def test_a_secret_of_another_installation_fails_as_authentication(settings: Any) -> None:
    async def scene(bench: Bench) -> None:
        settings.FACHO_ENCRYPTION_KEYS = ("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",)
        collected = await bench.collect()
        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.AUTH

    on_bench(scene)


def test_what_was_read_shows_in_no_repr() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect()
        codes = [onu.description.split(" ")[0] for onu in bench.simulated.world.onus]
        assert [code for code in codes if code in repr(bench.recorder)] == []
        assert codes[0] in repr(bench.recorder.recording.rows)

    on_bench(scene)


def test_a_recording_that_never_began_is_a_failure() -> None:
    assert NOT_STARTED.failure is not None
    with pytest.raises(ValueError, match="incomplete"):
        Recording().text(salt=SALT)

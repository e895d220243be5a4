"""Questions by hand to simulated OLTs over real UDP: decoded, bounded, one at a time, and safe to look at."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.hosts.models import Olt
from facho.infrastructure.gateway import ThreadGateway
from facho.polling.domain.collection import Collected, CollectRequest
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.onu_table import raw_text
from facho.polling.snmp.ber import Tag
from facho.polling.snmp.errors import OwnershipLost
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, format_oid
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_get.interactive import (
    NOT_ASKED,
    Answer,
    Bounds,
    Cut,
    InteractiveCollector,
    SnmpQuestion,
    Way,
    plan_question,
    read_value,
    tag_name,
)
from factories import make_olt

HUAWEI = load_definitions()["huawei_smartax"]


class Permit:
    """Allows so many packets."""

    def __init__(self, packets: int = 1_000_000) -> None:
        self.left = packets

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OwnershipLost("another owner holds the claim")

    async def should_yield(self) -> bool:
        return False

    def show(self, progress: object) -> None:
        """Show it to nobody."""

    def wants_rows(self) -> bool:
        return False


class Bench:
    """A simulated OLT with its row, to be asked."""

    def __init__(self, simulated: SimulatedOlt, olt: Olt, network: Network, database: ThreadGateway) -> None:
        self.simulated, self.olt, self.network, self.database = simulated, olt, network, database
        self.collected = Collected()

    async def ask(self, question: SnmpQuestion, permit: Permit | None = None, *, timeout_s: float = 0.2) -> Answer:
        collector = InteractiveCollector(self.network, self.database, timeout_s, question)
        request = CollectRequest(self.olt.id, self.olt.address, self.olt.port, self.olt.vendor, QueryType.GET, ())
        self.collected = await collector.collect(request, permit or Permit())
        return collector.answer


def on_bench(scene: Callable[[Bench], Awaitable[None]], *, vendor: str = "huawei_smartax", **wishes: Any) -> None:
    """Play a scene with one simulated OLT; its row may claim another vendor, or none."""

    async def run() -> None:
        database = ThreadGateway()
        config = SimulatorConfig(vendor="huawei_smartax", life=STILL, **{"onus": 40, **wishes})
        async with Simulation.start(config) as simulation, Network() as network:
            [simulated] = simulation.olts
            olt = await database.run(make_olt, port=simulated.port, vendor=vendor)
            await scene(Bench(simulated, olt, network, database))
        await database.close()

    asyncio.run(run())


def ask_for(way: Way, *words: str, place: Place | None = None, rows: int = 200, seconds: float = 30) -> SnmpQuestion:
    return plan_question(way, words, HUAWEI, place=place, bounds=Bounds(rows, seconds))


pytest_db = pytest.mark.django_db(transaction=True)


@pytest_db
def test_a_value_is_decoded_with_its_unit_beside_what_came() -> None:
    async def scene(bench: Bench) -> None:
        onu = next(onu for onu in bench.simulated.world.onus if onu.state == "online")

        answer = await bench.ask(ask_for(Way.GET, "onu.rx_power", "onu.run_state", place=onu.place))

        power, state = answer.values
        assert (power.column, power.unit, power.type) == ("onu.rx_power", "dBm", "integer")
        assert power.value == pytest.approx(int(power.raw) / 100)
        assert (state.value, state.unit, state.raw) == ("online", "", "1")
        assert power.place == "/".join(map(str, onu.place))

    on_bench(scene)


@pytest_db
def test_an_oid_is_shown_with_its_type_although_nobody_knows_the_vendor() -> None:
    question = plan_question(
        Way.GET, [format_oid(SYS_NAME), "1.3.6.1.2.1.1.99.0"], None, place=None, bounds=Bounds(9, 9)
    )

    async def scene(bench: Bench) -> None:
        name, missing = (await bench.ask(question)).values

        assert (name.type, name.value, name.column) == ("octet_string", None, "")
        assert name.raw
        assert (missing.raw, missing.note) == ("", "no_such_object")

    on_bench(scene, vendor="")


@pytest_db
def test_a_walk_shows_the_world_behind_the_olt_one_question_at_a_time() -> None:
    async def scene(bench: Bench) -> None:
        answer = await bench.ask(ask_for(Way.WALK, "onu.run_state"))

        shown = {value.place: value.value for value in answer.values}
        assert shown == {"/".join(map(str, onu.place)): onu.state.value for onu in bench.simulated.world.onus}
        assert (answer.cut, answer.failure) == (None, None)
        assert bench.simulated.counters.max_in_flight == 1

    on_bench(scene)


@pytest_db
def test_a_walk_of_an_oid_names_the_columns_it_meets() -> None:
    async def scene(bench: Bench) -> None:
        table = HUAWEI.column("onu.run_state").oid[:-1]

        answer = await bench.ask(ask_for(Way.WALK, format_oid(table), rows=500))

        assert {"onu.admin_state", "onu.run_state"} <= {value.column for value in answer.values}

    on_bench(scene, onus=8)


@pytest_db
@pytest.mark.parametrize("rows", [1, 10, 64])
def test_a_walk_ends_at_the_rows_that_a_person_wants(rows: int) -> None:
    async def scene(bench: Bench) -> None:
        answer = await bench.ask(ask_for(Way.TABLE, "onu.run_state", "onu.distance", rows=rows))

        by_column = [[v.place for v in answer.values if v.column == key] for key in ("onu.run_state", "onu.distance")]
        assert by_column[0] == by_column[1]
        assert 0 < len(by_column[0]) <= rows
        assert (answer.cut, answer.failure, bench.collected.failure) == (Cut.ROWS, None, None)

    on_bench(scene, onus=120)


@pytest_db
def test_a_live_table_is_read_of_few_onus_only() -> None:
    async def scene(bench: Bench) -> None:
        answer = await bench.ask(ask_for(Way.TABLE, "onu.rx_power", rows=5_000))

        assert answer.cut is Cut.ROWS
        assert len(answer.values) <= 64

    on_bench(scene, onus=200)


@pytest_db
def test_the_time_of_a_question_is_no_failure_of_an_olt_that_answers() -> None:
    async def scene(bench: Bench) -> None:
        answer = await bench.ask(ask_for(Way.WALK, "onu.run_state", rows=5_000, seconds=0.3))

        assert answer.cut is Cut.TIME
        assert answer.values
        assert (bench.collected.failure, bench.collected.was_heard) == (None, True)

    on_bench(scene, onus=500, faults=Faults(latency_seconds=0.1))


@pytest_db
def test_a_silent_olt_is_a_failure() -> None:
    async def scene(bench: Bench) -> None:
        answer = await bench.ask(ask_for(Way.WALK, "onu.run_state"), timeout_s=0.02)

        assert answer.failure is not None
        assert answer.failure.kind is FailureKind.TIMEOUT
        assert not bench.collected.was_heard

    on_bench(scene, faults=Faults(is_silent=True))


@pytest_db
def test_what_came_before_a_failure_is_shown() -> None:
    async def scene(bench: Bench) -> None:
        answer = await bench.ask(ask_for(Way.WALK, "onu.run_state", rows=5_000), timeout_s=0.02)

        assert answer.values
        assert answer.failure is not None

    on_bench(scene, onus=400, faults=Faults(silent_after=3))


@pytest_db
def test_nothing_is_sent_without_the_claim() -> None:
    async def scene(bench: Bench) -> None:
        answer = await bench.ask(ask_for(Way.GET, format_oid(SYS_DESCR)), Permit(packets=0))

        assert answer.failure is not None
        assert answer.failure.kind is FailureKind.CANCELLED
        assert bench.simulated.counters.requests == 0

    on_bench(scene)


@pytest_db
def test_a_lost_key_is_reported_and_asks_nobody(settings: Any) -> None:
    async def scene(bench: Bench) -> None:
        settings.FACHO_ENCRYPTION_KEYS = ("Jx3QbnrjJgKn4JhcmxgVqrJKAGQIb8XYEq9XpQqz0hE=",)
        answer = await bench.ask(ask_for(Way.GET, format_oid(SYS_DESCR)))

        assert answer.failure is not None
        assert answer.failure.kind is FailureKind.AUTH

    on_bench(scene)


def test_a_question_that_was_never_asked_is_not_an_answer() -> None:
    assert NOT_ASKED.failure is not None


@pytest.mark.parametrize(
    ("tag", "raw", "text"),
    [
        (Tag.OCTET_STRING, b"OLT norte", "OLT norte"),
        (Tag.OCTET_STRING, "Ñandú".encode(), "Ñandú"),
        (Tag.OCTET_STRING, b"\x1b[2Jgone", "0x1b5b324a676f6e65"),
        (Tag.OCTET_STRING, b"\xc2\x9b2J", "0xc29b324a"),
        (Tag.OCTET_STRING, "\u202egpj.exe".encode(), "0x" + "\u202egpj.exe".encode().hex()),
        (Tag.OCTET_STRING, b"\xff\xfe", "0xfffe"),
        (Tag.IP_ADDRESS, b"\x0a\x00\x00\x01", "10.0.0.1"),
        (Tag.OBJECT_IDENTIFIER, (1, 3, 6), "1.3.6"),
        (Tag.COUNTER64, 2**64 - 1, "18446744073709551615"),
    ],
)
def test_a_raw_value_is_printable(tag: Tag, raw: Any, text: str) -> None:
    assert raw_text(tag, raw) == text


@given(st.binary(max_size=2_000))
def test_no_octets_of_a_device_reach_a_terminal_as_they_are(raw: bytes) -> None:
    text = raw_text(Tag.OCTET_STRING, raw)

    assert text.isprintable()
    assert len(text) <= 256


@given(st.binary(max_size=300), st.sampled_from(sorted(HUAWEI.columns)))
def test_no_octets_reach_a_terminal_by_way_of_a_column(raw: bytes, key: str) -> None:
    column = HUAWEI.column(key)

    shown = read_value(((*column.oid, 1), int(Tag.OCTET_STRING), raw), column)

    assert all(str(part).isprintable() for part in (shown.value, shown.raw, shown.place, shown.note))


def test_a_value_that_cannot_be_true_is_reported_with_its_reason() -> None:
    column = HUAWEI.column("onu.rx_power")

    shown = read_value((column.instance(Place(0, 1, 2, 3)), int(Tag.INTEGER), 2_147_483_647), column)

    assert (shown.value, shown.note, shown.unit, shown.raw) == (None, "sentinel", "", "2147483647")
    assert shown.place == "0/1/2/3"


def test_a_row_whose_index_cannot_be_true_has_no_place() -> None:
    column = HUAWEI.column("onu.rx_power")

    assert read_value(((*column.oid, 1, 2), int(Tag.INTEGER), 5), column).place == ""


def test_a_type_that_nobody_knows_is_shown_by_its_number() -> None:
    assert (tag_name(int(Tag.GAUGE32)), tag_name(0x99)) == ("gauge32", "0x99")

"""Notifications of simulated OLTs: what leaves, in which order, and what faults, storms and lies make of it."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from select import select
from time import monotonic
from typing import Any, NamedTuple

import pytest

from facho.polling.domain.hints import HintPlace, Meaning, Said
from facho.polling.domain.onu_state import DownCause
from facho.polling.snmp.ber import PduKind, Tag, decode_message
from facho.polling.snmp.ber_values import enter, read_length
from facho.polling.snmp.notifications import NotificationEar
from facho.polling.snmp.oid import SNMP_TRAP_OID, SYS_UP_TIME
from facho.polling.snmp.target import Community
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import definition, load_definitions
from facho.polling.vendors.notifications import explain
from facho.simulator import traps
from facho.simulator.agent import Endpoint, Faults
from facho.simulator.server import ConfigError, SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.traps import TICK_SECONDS, SimulatedTraps, StormKind, TrapFaults, TrapKind, TrapStorm
from facho.simulator.world import JOURNAL_ENTRIES, STILL, Chassis, Life

HUAWEI = "huawei_smartax"
ONE_PORT = Chassis(cards=1, ports_per_card=16, used_ports=1)
SPEAKING = [
    key
    for key, each in load_definitions().items()
    if each.has_ports
    and {Meaning.ONU_LOS, Meaning.ONU_DOWN} & {m for r in each.notifications.rules.values() for m in r.meanings}
]


class Heard(NamedTuple):
    said: Said
    community: bytes
    source: tuple[object, ...]


class Receiver:
    """Hears what arrives on a port of the loopback."""

    def __init__(self, family: Definition) -> None:
        self.endpoint = Endpoint("127.0.0.1", 0)
        self.endpoint.listen(self._receive)
        self.datagrams: list[tuple[bytes, tuple[object, ...]]] = []
        self._family = family
        self._arrived = asyncio.Event()

    def _receive(self, datagrams: list[tuple[bytes, tuple[object, ...]]]) -> None:
        self.datagrams += datagrams
        self._arrived.set()

    @property
    def heard(self) -> list[Heard]:
        return [self._decode(data, source) for data, source in self.datagrams]

    def _decode(self, data: bytes, source: tuple[object, ...]) -> Heard:
        at, _ = read_length(data, 1)
        _, pdu_at = enter(data, at + 3, len(data), Tag.OCTET_STRING)
        assert data[pdu_at] == PduKind.TRAP
        # The client reads answers, which have the same fields.
        message = decode_message(data[:pdu_at] + bytes((PduKind.RESPONSE,)) + data[pdu_at + 1 :])
        (first, _, _), (second, _, oid), *varbinds = message.pdu.varbinds
        assert (first, second) == (SYS_UP_TIME, SNMP_TRAP_OID)
        assert isinstance(oid, tuple)
        return Heard(explain(self._family, oid, varbinds), message.community, source)

    async def wait_for(self, count: int) -> list[Heard]:
        """Return what arrived as soon as it is that much."""
        await self._wait(count)
        return self.heard

    async def _wait(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.datagrams) < count:
                self._arrived.clear()
                await self._arrived.wait()

    async def count(self, count: int) -> int:
        """Return how much arrived as soon as it is that much; it may mean nothing."""
        await self._wait(count)
        return len(self.datagrams)

    def meanings(self) -> list[Meaning]:
        return [heard.said.meaning for heard in self.heard]


@asynccontextmanager
async def speaking(vendor: str = HUAWEI, **settings: Any) -> AsyncIterator[tuple[SimulatedOlt, Receiver]]:
    receiver = Receiver(definition(vendor))
    usual: dict[str, Any] = {
        "onus": 64,
        "life": STILL,
        "offline_share": 0.0,
        "traps": ("127.0.0.1", receiver.endpoint.port),
    }
    try:
        async with Simulation.start(SimulatorConfig(vendor=vendor, **{**usual, **settings})) as simulation:
            yield simulation.olts[0], receiver
    finally:
        receiver.endpoint.close()


def busy_port(olt: SimulatedOlt) -> Place:
    return max(olt.world.ports.values(), key=lambda port: len(port.onus)).place


def sender_of(olt: SimulatedOlt) -> SimulatedTraps:
    assert olt.traps is not None
    return olt.traps


def place_of(said: Said, like: Place) -> Place:
    """Return the place that was said, with the parts of another one where the family names none."""
    parts = {name: getattr(said.place, name) for name in Place._fields}
    return like._replace(**{name: value for name, value in parts.items() if value is not None})


async def test_a_cut_says_the_port_and_then_each_onu() -> None:
    async with speaking(chassis=ONE_PORT) as (olt, receiver):
        place = busy_port(olt)
        lost = olt.world.cut(place)
        heard = await receiver.wait_for(65)

    assert len(lost) == 64
    assert heard[0].said.meaning is Meaning.PON_LOS
    assert place_of(heard[0].said, place) == place
    assert {each.said.meaning for each in heard[1:]} == {Meaning.ONU_LOS}
    assert [place_of(each.said, place) for each in heard[1:]] == [onu.place for onu in lost]


def test_a_change_is_said_within_a_second() -> None:
    assert TICK_SECONDS < 1


async def test_the_repair_ends_what_the_cut_began() -> None:
    async with speaking(chassis=ONE_PORT, onus=3) as (olt, receiver):
        place = busy_port(olt)
        olt.world.cut(place)
        await receiver.wait_for(4)
        olt.world.restore(place)
        heard = await receiver.wait_for(8)

    assert [each.said.meaning for each in heard[4:]] == [Meaning.PON_UP, *[Meaning.ONU_UP] * 3]
    assert [each.said.is_end for each in heard] == [False] * 4 + [True] * 4


async def test_a_power_cut_gasps_and_then_loses_the_signal() -> None:
    async with speaking(chassis=ONE_PORT) as (olt, receiver):
        place = busy_port(olt)
        lost = olt.world.power_off(place, 1)
        heard = await receiver.wait_for(2 * len(lost))

    assert lost
    assert [each.said.meaning for each in heard] == [Meaning.ONU_DYING_GASP] * len(lost) + [Meaning.ONU_LOS] * len(lost)
    assert {place_of(each.said, place) for each in heard} == {onu.place for onu in lost}


@pytest.mark.parametrize("vendor", SPEAKING)
async def test_each_family_says_in_its_own_way_what_happened(vendor: str) -> None:
    async with speaking(vendor, onus=2, waiting=0) as (olt, receiver):
        first, second = olt.world.onus
        olt.world.take_down(first, DownCause.LOS)
        olt.world.take_down(second, DownCause.DYING_GASP)
        heard = await receiver.wait_for(3)
        olt.world.bring_up(first)
        heard = await receiver.wait_for(4)

    assert [place_of(each.said, first.place) for each in heard] == [
        first.place,
        second.place,
        second.place,
        first.place,
    ]
    loss, gasp, loss_after, back = (each.said.meaning for each in heard)
    assert loss is loss_after
    assert loss in (Meaning.ONU_LOS, Meaning.ONU_DOWN)
    assert gasp is Meaning.ONU_DYING_GASP
    assert back is Meaning.ONU_UP


def test_most_families_that_have_notifications_are_played() -> None:
    assert {"bdcom_gpon", "cdata_gpon", HUAWEI, "vsol_gpon_v1600g", "zte_c300_c320", "zte_c600_titan"} <= set(SPEAKING)


async def test_a_restart_can_be_said() -> None:
    async with speaking() as (olt, receiver):
        assert olt.say(Meaning.DEVICE_RESTART)
        heard = await receiver.wait_for(1)

    assert heard[0].said == Said("coldStart", Meaning.DEVICE_RESTART)


async def test_an_onu_that_waits_can_be_said_with_its_serial() -> None:
    async with speaking(onus=4) as (olt, receiver):
        place = busy_port(olt)
        assert olt.say(Meaning.ONU_DISCOVERED, place, "FCHO12345678")
        heard = await receiver.wait_for(1)

    assert (heard[0].said.meaning, heard[0].said.serial) == (Meaning.ONU_DISCOVERED, "FCHO12345678")
    assert heard[0].said.place == HintPlace(place.frame, place.slot, place.port)


async def test_a_card_says_that_it_failed_before_its_ports_do() -> None:
    async with speaking(onus=8) as (olt, receiver):
        place = busy_port(olt)
        olt.world.fail_card(place._replace(port=0))
        heard = await receiver.wait_for(2)

    assert heard[0].said.meaning is Meaning.BOARD_DOWN
    assert heard[0].said.place == HintPlace(place.frame, place.slot)
    assert heard[1].said.meaning is Meaning.PON_LOS


async def test_they_come_from_where_the_olt_answers() -> None:
    async with speaking(onus=1, trap_community="reported") as (olt, receiver):
        olt.say(Meaning.DEVICE_RESTART)
        heard = await receiver.wait_for(1)

        assert heard[0].source == (olt.host, olt.port)
        assert heard[0].community == b"reported"
        assert olt.counters.notifications == 1


def ear() -> NotificationEar:
    return NotificationEar(engine_id=b"facho", engine_boots=1, monotonic=monotonic)


@pytest.mark.parametrize("kind", [TrapKind.V1, TrapKind.V2C])
async def test_a_family_that_appends_a_tail_to_its_community_does_so_and_it_still_counts(kind: TrapKind) -> None:
    async with speaking("zte_c300_c320", onus=1, trap_kind=kind) as (olt, receiver):
        onu = next(olt.world.onus)
        olt.world.take_down(onu, DownCause.LOS)
        await receiver.count(1)
        olt.world.bring_up(onu)
        await receiver.count(2)

    heard = [ear().hear(data, [Community(b"public")]).notification for data, _source in receiver.datagrams]
    words = [each.tail.split(b"@") for each in heard if each is not None]
    assert [each[:3] for each in words] == [
        [b"eventId=1", b"eventLevel=minor", b"confirm"],
        [b"eventId=2", b"eventLevel=cleared", b"confirm"],
    ]
    message = [explain(olt.definition, each.oid, each.varbinds, each.tail) for each in heard if each is not None]
    assert [each.meaning for each in message] == [Meaning.ONU_LOS, Meaning.ONU_UP]
    assert [place_of(each, onu.place) for each in message] == [onu.place, onu.place]


async def test_an_inform_comes_again_until_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traps, "INFORM_SECONDS", 0.05)
    async with speaking(onus=1, trap_kind=TrapKind.INFORM) as (olt, receiver):
        olt.say(Meaning.DEVICE_RESTART)
        await receiver.count(2)
        data, source = receiver.datagrams[-1]
        hearing = ear().hear(data, [Community(b"public")])
        assert hearing.notification is not None
        assert hearing.notification.is_inform
        assert hearing.reply is not None
        receiver.endpoint.send(hearing.reply, source)
        async with asyncio.timeout(5):
            while sender_of(olt).unanswered:
                await asyncio.to_thread(select, [], [], [], 0.02)

        assert olt.counters.requests == 0
        assert {datagram for datagram, _source in receiver.datagrams} == {data}


async def test_an_inform_that_nobody_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traps, "INFORM_SECONDS", 0.01)
    async with speaking(onus=1, trap_kind=TrapKind.INFORM) as (olt, receiver):
        olt.say(Meaning.DEVICE_RESTART)
        await receiver.count(traps.INFORM_TRIES)
        await asyncio.to_thread(select, [], [], [], 0.1)

        assert sender_of(olt).sent == traps.INFORM_TRIES


async def test_life_is_said_without_anybody_asking() -> None:
    life = Life(failures=36_000.0, cuts=0.0, moves=0.0, arrivals=0.0, power_cuts=0.0, bends=0.0)
    async with speaking(life=life) as (_, receiver):
        await receiver.wait_for(5)

    assert set(receiver.meanings()) <= {Meaning.ONU_LOS, Meaning.ONU_DYING_GASP, Meaning.ONU_UP}


async def test_nothing_is_sent_unless_asked_for() -> None:
    async with Simulation.start(SimulatorConfig(vendor=HUAWEI, onus=4, life=STILL)) as simulation:
        (olt,) = simulation.olts
        olt.world.cut(busy_port(olt))

        assert not olt.say(Meaning.DEVICE_RESTART)
        assert olt.traps is None
        assert olt.counters.notifications == 0


async def test_a_family_without_a_word_for_it_says_nothing() -> None:
    async with speaking("ubiquiti_ufiber", onus=4) as (olt, receiver):
        olt.world.cut(busy_port(olt))
        sender_of(olt).say_recorded()
        olt.say(Meaning.DEVICE_RESTART)
        heard = await receiver.wait_for(1)

    assert [each.said.meaning for each in heard] == [Meaning.DEVICE_RESTART]


async def test_an_olt_that_does_not_answer_says_nothing() -> None:
    async with speaking(onus=4) as (olt, receiver):
        olt.faults = Faults(is_silent=True)
        olt.say(Meaning.DEVICE_RESTART)
        olt.faults = Faults()
        olt.say(Meaning.DEVICE_RESTART)
        await receiver.wait_for(1)

    assert sender_of(olt).sent == len(receiver.datagrams) == 1


async def cut_with(faults: TrapFaults, *, count: int | None = None) -> list[Heard]:
    """Return what arrives of a cut; as much as left at once, unless a number is given."""
    async with speaking(chassis=ONE_PORT, trap_faults=faults) as (olt, receiver):
        olt.world.cut(busy_port(olt))
        sender_of(olt).say_recorded()
        return await receiver.wait_for(sender_of(olt).sent if count is None else count)


async def test_some_are_lost_the_same_ones_for_the_same_seed() -> None:
    one, other = await cut_with(TrapFaults(loss=0.3)), await cut_with(TrapFaults(loss=0.3))

    assert 30 <= len(one) < 60
    assert [each.said for each in one] == [each.said for each in other]


async def test_some_come_twice() -> None:
    heard = await cut_with(TrapFaults(doubled=0.5))

    counts = Counter(each.said for each in heard)
    assert len(counts) == 65
    assert set(counts.values()) == {1, 2}


async def test_some_come_out_of_order() -> None:
    straight, mixed = (
        await cut_with(TrapFaults()),
        await cut_with(TrapFaults(disorder=0.3, disorder_seconds=0.1), count=65),
    )

    assert [each.said for each in straight] != [each.said for each in mixed]
    assert Counter(each.said for each in straight) == Counter(each.said for each in mixed)


async def test_all_can_come_late() -> None:
    began = monotonic()

    assert await cut_with(TrapFaults(delay_seconds=30)) == []
    assert len(await cut_with(TrapFaults(delay_seconds=0.2), count=65)) == 65
    assert monotonic() - began >= 0.2


async def test_lies_are_about_healthy_onus() -> None:
    async with speaking(onus=20) as (olt, receiver):
        down = next(olt.world.onus)
        olt.world.take_down(down, DownCause.LOS)
        await receiver.wait_for(1)
        assert sender_of(olt).lie() == 19
        heard = await receiver.wait_for(20)

    assert {each.said.meaning for each in heard} == {Meaning.ONU_LOS}
    assert down.place not in {place_of(each.said, down.place) for each in heard[1:]}
    assert sum(onu.is_online for onu in olt.world.onus) == 19


@pytest.mark.parametrize("kind", StormKind)
async def test_a_storm_has_its_number_and_ends(kind: StormKind) -> None:
    storm = TrapStorm(per_second=1_000, seconds=0.3, kind=kind)
    async with speaking(trap_faults=TrapFaults(storm=storm)) as (olt, receiver):
        await receiver.count(300)
        olt.say(Meaning.DEVICE_RESTART)
        assert await receiver.count(301) == 301

    message = {StormKind.LIES: Meaning.ONU_LOS, StormKind.TRUE: Meaning.ONU_UP}.get(kind)
    assert message is None or set(receiver.meanings()) == {message, Meaning.DEVICE_RESTART}
    assert all(onu.is_online for onu in olt.world.onus)


async def test_many_entries_at_once_are_bounded_by_the_journal() -> None:
    async with speaking(onus=1) as (olt, _):
        world, onu = olt.world, next(olt.world.onus)
        before = world.recorded
        for _ in range(2 * JOURNAL_ENTRIES):
            world.take_down(onu, DownCause.LOS)
            world.bring_up(onu)

        assert world.recorded == before + 4 * JOURNAL_ENTRIES
        assert len(world.entries_since(before)) <= 2 * JOURNAL_ENTRIES
        assert world.entries_since(world.recorded) == []
        assert len(world.entries_since(world.recorded - 3)) == 3


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"traps": ("192.0.2.1", 1162)}, "loopback address only"),
        ({"traps": ("localhost", 1162)}, "loopback address only"),
        ({"traps": ("::1", 1162)}, "loopback address only"),
        ({"traps": ("127.0.0.1", 0)}, "port from 1"),
        ({"trap_faults": TrapFaults(loss=2.0)}, "between 0 and 1"),
        ({"trap_faults": TrapFaults(delay_seconds=-1.0)}, "must not be negative"),
        ({"trap_faults": TrapFaults(storm=TrapStorm(-1, 1.0))}, "must not be negative"),
    ],
)
def test_a_broken_target_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        SimulatorConfig(**settings)


async def test_a_receiver_that_is_not_there_does_no_harm() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    async with speaking(onus=8, traps=("127.0.0.1", port)) as (olt, _):
        olt.world.cut(busy_port(olt))
        sender_of(olt).say_recorded()
        sender_of(olt).say_recorded()

        assert olt.counters.notifications > 0

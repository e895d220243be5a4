"""A receiver on a real UDP port: who may speak, what is kept of it, and which reads follow."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import pytest
from django.db import DataError, OperationalError

from api.rows import make_onu
from facho.executions.models import HintRead
from facho.hosts.models import Olt
from facho.infrastructure.gateway import SystemClock, ThreadGateway
from facho.infrastructure.secrets import Secret
from facho.polling.snmp.ber import Tag, VarBind
from facho.polling.snmp.notifications import Notification, encode_notification
from facho.polling.snmp.oid import Oid, parse_oid
from facho.polling.snmp.target import Community, SnmpVersion
from facho.traps import receiver, store
from facho.traps.models import OltTraps, Trap, TrapReceiver, TrapSender
from facho.traps.receiver import TrapReception
from facho.traps.store import HeardTrap, switch
from factories import make_olt

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_SECONDS = 30
HUAWEI = "1.3.6.1.4.1.2011.6"
LOS, GASP = f"{HUAWEI}.128.1.1.12.2.2.0.12", f"{HUAWEI}.128.1.1.12.2.2.0.18"
FRAME, SLOT, PORT = f"{HUAWEI}.3.3.1.1.1.0", f"{HUAWEI}.3.3.2.1.1.0.1", f"{HUAWEI}.3.3.4.1.1.0.1.6"
ONT = f"{HUAWEI}.128.1.1.2.43.1.1.4194313728.54"


def trap(
    oid: str = LOS, *, onu: int = 54, uptime: int = 1, community: bytes = b"public", inform: bool = False
) -> bytes:
    numbers = ((FRAME, 0), (SLOT, 1), (PORT, 6), (ONT, onu))
    binds: tuple[VarBind, ...] = tuple((parse_oid(name), int(Tag.INTEGER), value) for name, value in numbers)
    return encode(parse_oid(oid), binds, uptime=uptime, community=community, inform=inform)


def encode(
    oid: Oid, varbinds: tuple[VarBind, ...], *, uptime: int = 1, community: bytes = b"public", inform: bool = False
) -> bytes:
    message = Notification(SnmpVersion.V2C, oid, varbinds, uptime, inform, "", b"", b"")
    return encode_notification(message, Community(community))


@dataclass
class Scene:
    """A receiver that listens, and a socket to send from."""

    reception: TrapReception
    sender: socket.socket
    database: ThreadGateway

    def send(self, *datagrams: bytes) -> None:
        assert self.reception.listens_at
        for datagram in datagrams:
            self.sender.sendto(datagram, self.reception.listens_at)

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Wait for rows; another thread writes them."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await self.database.run(is_true):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GATHER_SECONDS", "SETTLE_SECONDS", "REPORT_SECONDS", "SENDERS_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(receiver, name, 0.1)


def listening(scene: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        database, stop = ThreadGateway(), asyncio.Event()
        reception = TrapReception(database, SystemClock(), "test/1162", ("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind(("127.0.0.1", 0))
            sender.settimeout(5)
            task = asyncio.create_task(reception.run(stop))
            try:
                it = Scene(reception, sender, database)
                await it.until(lambda: reception.listens_at is not None)
                await scene(it)
            finally:
                stop.set()
                await task
                await database.close()

    switch(is_on=True)
    asyncio.run(run())


def test_a_trap_of_a_known_olt_is_kept_and_asks_for_a_read() -> None:
    olt = make_olt()
    onu = make_onu(olt, (0, 1, 6, 54))

    async def scene(it: Scene) -> None:
        it.send(trap(GASP))
        await it.until(HintRead.objects.filter(wanted_at__isnull=False).exists)

    listening(scene)

    [message] = Trap.objects.all()
    assert (message.olt_id, message.onu_id, message.meaning, message.place) == (
        olt.id,
        onu.id,
        "onu_dying_gasp",
        "0/1/6/54",
    )
    [read] = HintRead.objects.all()
    assert (read.frame, read.slot, read.port, read.onu_number, read.is_whole) == (0, 1, 6, 54, False)
    assert OltTraps.objects.get().heard == 1


def test_a_cut_port_is_one_read_however_many_onus_speak() -> None:
    make_onu(make_olt(), (0, 1, 6, 54))

    async def scene(it: Scene) -> None:
        it.send(*(trap(onu=number, uptime=number) for number in range(64)))
        await it.until(lambda: Trap.objects.count() == 64)

    listening(scene)

    [read] = HintRead.objects.all()
    assert (read.port, read.onu_number, read.is_whole) == (6, None, False)


def test_copies_and_repeats_are_one_row() -> None:
    make_olt()

    async def scene(it: Scene) -> None:
        it.send(trap(), trap())
        await it.until(Trap.objects.exists)
        it.send(trap())
        await it.until(lambda: Trap.objects.filter(repeats=2).exists())

    listening(scene)

    assert (Trap.objects.count(), OltTraps.objects.get().heard) == (1, 1)


def test_strangers_are_counted_and_never_decoded() -> None:
    make_olt()
    Olt.objects.update(address="192.0.2.7", host="192.0.2.7")

    async def scene(it: Scene) -> None:
        it.send(*[trap()] * 12)
        await it.until(lambda: TrapSender.objects.filter(count=12).exists())

    listening(scene)

    [sender] = TrapSender.objects.all()
    assert (sender.address, sender.reason, sender.olt_id) == ("127.0.0.1", "unknown_sender", None)
    assert not Trap.objects.exists()


def test_a_further_address_of_an_olt_may_speak() -> None:
    make_olt()
    olt = Olt.objects.get()
    Olt.objects.filter(id=olt.id).update(trap_addresses="192.0.2.7, 127.0.0.1")

    async def scene(it: Scene) -> None:
        it.send(trap())
        await it.until(Trap.objects.exists)

    listening(scene)


@pytest.mark.parametrize(
    ("datagram", "reason"), [(trap(community=b"guess"), "community"), (b"\x30\x03\x02\x01\x01", "malformed")]
)
def test_what_does_not_count_is_reported_with_its_reason(datagram: bytes, reason: str) -> None:
    olt = make_olt()

    async def scene(it: Scene) -> None:
        it.send(datagram)
        await it.until(TrapSender.objects.exists)

    listening(scene)

    [sender] = TrapSender.objects.all()
    assert (sender.reason, sender.olt_id) == (reason, olt.id)
    assert not HintRead.objects.exists()


def test_an_inform_is_answered() -> None:
    make_olt()

    async def scene(it: Scene) -> None:
        it.send(trap(inform=True))
        answer = await asyncio.to_thread(it.sender.recv, 4096)
        assert b"public" in answer
        assert answer[answer.index(b"public") + 6] == 0xA2

    listening(scene)


def test_of_two_olts_at_one_address_the_one_that_is_asked_at_its_port_spoke() -> None:
    make_olt()
    second = make_olt()

    async def scene(it: Scene) -> None:
        it.send(trap())
        await it.until(TrapSender.objects.filter(reason="ambiguous").exists)
        own = it.sender.getsockname()[1]
        second.port = own
        second.community = Secret("public")
        await it.database.run(second.save)
        uptimes = count(2)

        def is_heard() -> bool:
            """Send until the receiver has looked again whose addresses there are."""
            it.send(trap(uptime=next(uptimes)))
            return Trap.objects.exists()

        await it.until(is_heard)

    listening(scene)

    assert {trap.olt_id for trap in Trap.objects.all()} == {second.id}


def test_what_no_definition_knows_is_kept_with_its_values_and_asks_for_nothing() -> None:
    make_olt()
    unknown = encode(parse_oid("1.3.6.1.4.1.5875.99999.0.1"), ((parse_oid("1.3.6.1.9.1"), int(Tag.INTEGER), 7),))

    async def scene(it: Scene) -> None:
        it.send(unknown)
        await it.until(Trap.objects.exists)

    listening(scene)

    [message] = Trap.objects.all()
    assert (message.meaning, message.values) == ("other", [["1.3.6.1.9.1", "0x02", "7"]])
    assert not HintRead.objects.exists()


def test_a_storm_costs_a_bounded_number_of_rows_and_one_read() -> None:
    make_olt()

    uptimes = count()

    async def scene(it: Scene) -> None:
        def is_too_much() -> bool:
            """Send more, since a socket drops what does not fit, and look whether both rows have counted it."""
            it.send(*(trap(onu=number, uptime=next(uptimes)) for number in range(64) for _copy in range(4)))
            is_counted = TrapReceiver.objects.filter(dropped__gt=0).exists()
            return is_counted and TrapSender.objects.filter(reason="rate").exists()

        await it.until(is_too_much)

    listening(scene)

    assert Trap.objects.count() <= receiver.BURST + PATIENCE_SECONDS * receiver.PER_SECOND
    assert HintRead.objects.count() == 1
    assert TrapReceiver.objects.get().dropped > 0


def test_nothing_is_heard_while_the_switch_is_off() -> None:
    make_olt()

    async def scene(it: Scene) -> None:
        await it.database.run(lambda: switch(is_on=False))
        await it.until(lambda: it.reception.listens_at is None)

    listening(scene)


def test_a_database_that_is_away_for_a_while_loses_nothing_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    make_olt()
    save_heard, failures = store.save_heard, iter(range(3))

    def failing(*arguments: object, **named: object) -> int:
        if next(failures, None) is not None:
            raise OperationalError
        return save_heard(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(receiver, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(store, "save_heard", failing)

    async def scene(it: Scene) -> None:
        it.send(trap())
        await it.until(Trap.objects.exists)

    listening(scene)

    assert Trap.objects.count() == 1
    assert HintRead.objects.get().not_before - Trap.objects.get().heard_at < timedelta(seconds=10)


def test_a_receiver_that_cannot_store_its_start_tries_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin, failures = store.begin_receiver, iter(range(2))

    def failing(*arguments: object) -> object:
        if next(failures, None) is not None:
            raise OperationalError
        return begin(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "begin_receiver", failing)

    async def scene(it: Scene) -> None:
        assert it.reception.listens_at is not None

    listening(scene)

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "traps.not_stored error=OperationalError"
    ] * 2


def test_what_the_database_refuses_does_not_keep_the_next_ones_out(monkeypatch: pytest.MonkeyPatch) -> None:
    make_olt()
    save_heard = store.save_heard

    def refusing(traps: Sequence[HeardTrap], *arguments: object, **named: object) -> int:
        if traps[0].said.place.onu == 1:
            raise DataError
        return save_heard(traps, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(receiver, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(store, "save_heard", refusing)

    async def scene(it: Scene) -> None:
        it.send(trap(onu=1))
        await it.until(TrapReceiver.objects.filter(dropped=1).exists)
        it.send(trap(onu=2))
        await it.until(Trap.objects.exists)

    listening(scene)

    assert Trap.objects.get().onu_number == 2


def test_texts_that_no_database_stores_are_stored_as_something_else() -> None:
    make_olt()
    values = (b"\x00a\x00", "\ud800".encode("utf-16-le", "surrogatepass"), b"\xff" * 300)
    binds: tuple[VarBind, ...] = tuple((parse_oid("1.3.6.1.9.1"), int(Tag.OCTET_STRING), value) for value in values)

    async def scene(it: Scene) -> None:
        it.send(encode(parse_oid("1.3.6.1.4.1.5875.99999.0.1"), binds))
        await it.until(Trap.objects.exists)

    listening(scene)

    shown = [text for _oid, _type, text in Trap.objects.get().values or ()]
    assert len(shown) == 3
    assert not any("\0" in text for text in shown)


def test_what_the_kernel_drops_is_counted() -> None:
    make_olt()

    async def scene(it: Scene) -> None:
        # While this thread sends, the receiver reads nothing; more than the buffer holds is lost.
        it.send(*[b"\0" * 60_000] * 400)
        await it.until(TrapSender.objects.filter(reason="buffer").exists)

    listening(scene)

    lost = TrapSender.objects.get(reason="buffer").count
    receiver_row = TrapReceiver.objects.get()
    assert receiver_row.heard + lost == 400
    assert receiver_row.dropped >= lost

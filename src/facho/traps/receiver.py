"""Hears notifications on one UDP socket, with bounded memory and time whatever is sent, and stores them in short steps.

A datagram from an unknown address is counted and not decoded. Each address may send so many a second; what is
beyond that is counted too. What was heard waits for at most a moment, and then becomes rows and requests in one
transaction. A database that is away loses what does not fit into memory, and polls find it later.
"""

import asyncio
import logging
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import cast

from django.db import Error, InterfaceError, OperationalError

from facho.infrastructure.gateway import background
from facho.polling.domain.onu_table import raw_text
from facho.polling.domain.ports import Clock, DatabaseGateway
from facho.polling.snmp.ber import VarBind, encode_varbinds
from facho.polling.snmp.notifications import Notification, NotificationEar
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.notifications import explain, hide_secrets
from facho.traps import store
from facho.traps.models import Reasons
from facho.traps.store import EngineClock, HeardTrap, KnownSender, SenderBook

logger = logging.getLogger("facho.traps")

# A cut of a full port sends a few hundred at once; hundreds a second for longer are a storm.
BURST, PER_SECOND = 1_000.0, 100.0
# Of all addresses together, so that decoding leaves the machine to the polls.
TOTAL_BURST, TOTAL_PER_SECOND = 4_000.0, 1_500.0
MAX_WAITING = 5_000
MAX_ADDRESSES = 2_000
# Several of one port within a second become one read of it.
GATHER_SECONDS = 0.7
LOOK_SECONDS = 5.0
SENDERS_SECONDS = 10.0
SETTLE_SECONDS = 2.0
REPORT_SECONDS = 10.0
RETRY_SECONDS = 2.0
MAX_REFUSALS = 3
# Room for a burst while the process is busy; the kernel drops what is beyond.
SOCKET_BYTES = 4 * 1024 * 1024
_MAX_VALUES, _MAX_TEXT = 20, 120


@dataclass(slots=True)
class Allowance:
    """Lets so many through at once, and so many a second afterwards."""

    burst: float
    per_second: float
    left: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.burst

    def take(self, now: float) -> bool:
        """Return whether one more may pass."""
        self.left = min(self.burst, self.left + (now - self.at) * self.per_second)
        self.at = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


class TrapListener(asyncio.DatagramProtocol):
    """Decides datagram by datagram what counts; never waits, and keeps a bounded number."""

    def __init__(self, ear: NotificationEar, clock: Clock, on_heard: Callable[[], None]) -> None:
        self.senders: Mapping[str, list[KnownSender]] = {}
        self.heard: list[HeardTrap] = []
        # The SNMPv3 engine that an OLT sent as.
        self.engines: dict[int, bytes] = {}
        # By address and reason, with the OLT if the address is one's.
        self.refused: Counter[tuple[str, str]] = Counter()
        self.received = 0
        self.dropped = 0
        self._ear, self._clock, self._on_heard = ear, clock, on_heard
        self._total = Allowance(TOTAL_BURST, TOTAL_PER_SECOND)
        self._allowances: dict[str, Allowance] = {}
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self.received += 1
        host = _plain(address[0])
        known = self.senders.get(host)
        if known is None:
            self._refuse(host, Reasons.UNKNOWN_SENDER)
            return
        now = self._clock.monotonic()
        if not self._allowance(host).take(now) or not self._total.take(now) or len(self.heard) >= MAX_WAITING:
            self.dropped += 1
            self._refuse(host, Reasons.RATE)
            return
        # Several OLTs may have one address: it is the one that is asked at the port it came from, else the only one.
        fitting = [sender for sender in known if sender.port == address[1]] or known
        hearing = self._ear.hear(data, [sender.credential for sender in fitting])
        if hearing.reply is not None and self._transport is not None:
            self._transport.sendto(hearing.reply, address)
        if hearing.refused is not None:
            self._refuse(host, hearing.refused.value)
        elif hearing.notification is None:
            # A question for our SNMPv3 engine, which comes before an inform.
            return
        elif len(fitting) > 1:
            self._refuse(host, Reasons.AMBIGUOUS)
        else:
            self.heard.append(self._read(hearing.notification, fitting[0]))
            self._on_heard()

    def take_engines(self) -> dict[int, EngineClock]:
        """Return the clocks of the SNMPv3 engines that OLTs sent as since the last call."""
        senders, self.engines = self.engines, {}
        clocks = self._ear.engines if senders else {}
        return {
            olt_id: EngineClock(engine_id, *clocks[engine_id])
            for olt_id, engine_id in senders.items()
            if engine_id in clocks
        }

    def error_received(self, exc: Exception) -> None:
        """An answer to an inform could not be delivered; the sender asks again."""

    def _read(self, notification: Notification, sender: KnownSender) -> HeardTrap:
        definition = load_definitions().get(sender.vendor)
        message = explain(definition, notification.oid, notification.varbinds, notification.tail)
        oid = format_oid(notification.oid)
        if notification.engine_id:
            self.engines[sender.olt_id] = notification.engine_id
        return HeardTrap(
            sender.olt_id,
            self._clock.now(),
            oid,
            message,
            store.fingerprint_of(oid, encode_varbinds(notification.varbinds), notification.uptime_ticks),
            show_values(hide_secrets(definition, notification.varbinds)) if message.name == oid else None,
        )

    def _allowance(self, host: str) -> Allowance:
        if host not in self._allowances:
            self._allowances[host] = Allowance(BURST, PER_SECOND, at=self._clock.monotonic())
        return self._allowances[host]

    def _refuse(self, host: str, reason: str) -> None:
        key = (host, str(reason))
        if key not in self.refused and len(self.refused) >= MAX_ADDRESSES:
            self.dropped += 1
            return
        self.refused[key] += 1


def show_values(varbinds: tuple[VarBind, ...]) -> list[list[str]]:
    """Return what a notification carried as texts of bounded length, for those that no definition knows."""
    return [
        [format_oid(oid)[:_MAX_TEXT], f"0x{tag:02x}", raw_text(tag, value)[:_MAX_TEXT]]
        for oid, tag, value in varbinds[:_MAX_VALUES]
    ]


def _plain(host: str) -> str:
    """Write an address as stored: an IPv4 address that came in over IPv6 as IPv4."""
    if "." in host and not host.startswith("::"):
        return host
    address = ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


@dataclass(slots=True)
class TrapReception:
    """Runs a listener: opens its socket while the switch is on, and stores what it hears."""

    database: DatabaseGateway
    clock: Clock
    name: str
    bind: tuple[str, int]
    # Several of the distributed mode may share a port; what they hear goes to one database. An embedded product that
    # shared one would take the traps of another product away.
    shares_port: bool = False
    # Where it listens; None while it does not.
    listens_at: tuple[str, int] | None = None
    # What the kernel dropped of the present socket, as counted last.
    _lost: int = 0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, stop: asyncio.Event, *, ends_when_off: bool = False) -> None:
        """Listen while the switch is on, until stopped."""
        while not stop.is_set():
            is_on = await self._is_on()
            engine = await self._begin() if is_on else None
            if engine is not None:
                await self._listen(stop, engine)
            # One that could not begin, since nothing can be stored now, tries again.
            if ends_when_off and (engine is not None or not is_on):
                return
            await _pause(stop, LOOK_SECONDS)

    async def _is_on(self) -> bool:
        try:
            return await self.database.run(store.is_switched_on)
        except Error as error:
            logger.warning("traps.database_away error=%s", type(error).__name__)
            # What is heard already is heard on.
            return self.listens_at is not None

    async def _begin(self) -> EngineClock | None:
        try:
            return await self.database.run(store.begin_receiver, self.name, self.clock.now())
        except Error as error:
            logger.warning("traps.not_stored error=%s", type(error).__name__)
            return None

    async def _listen(self, stop: asyncio.Event, engine: EngineClock) -> None:
        ear = NotificationEar(engine_id=engine.engine_id, engine_boots=engine.boots, monotonic=self.clock.monotonic)
        for known in await self.database.run(store.load_engines):
            ear.learn(known.engine_id, known.boots, known.seconds)
        listener = TrapListener(ear, self.clock, self._wake.set)
        book = SenderBook()
        listener.senders = await self.database.run(book.load)
        with _open_socket(self.bind, is_shared=self.shares_port) as opened:
            loop = asyncio.get_running_loop()
            transport, _protocol = await loop.create_datagram_endpoint(lambda: listener, sock=opened)
            self.listens_at, self._lost = opened.getsockname()[:2], 0
            logger.info("traps.listening address=%s port=%s", *self.listens_at)
            try:
                async with (
                    background(self._storing(listener), "storing traps"),
                    background(
                        self._repeat(lambda: self._refresh(listener, book), SENDERS_SECONDS), "senders of traps"
                    ),
                    background(self._repeat(self._settle, SETTLE_SECONDS), "settling traps"),
                    background(self._repeat(lambda: self._report(listener, opened), REPORT_SECONDS), "counting traps"),
                ):
                    while not stop.is_set() and await self._is_on():
                        await _pause(stop, LOOK_SECONDS)
            finally:
                await self._try(lambda: self._report(listener, opened))
                transport.close()
                self.listens_at = None

    async def _storing(self, listener: TrapListener) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._wake.clear()
            heard, listener.heard = listener.heard, []
            engines = listener.take_engines()
            listener.dropped += await self._save(heard, engines)

    async def _save(self, heard: list[HeardTrap], engines: Mapping[int, EngineClock]) -> int:
        """Store what was heard, also if the database is away for now: what comes meanwhile waits behind it, bounded.

        What the database refuses is given up after some tries: one bad trap must not keep the others out. Returns
        how many were given up.
        """
        refusals = 0
        while refusals < MAX_REFUSALS:
            try:
                await self.database.run(store.save_heard, heard, engines, now=self.clock.now())
            except (OperationalError, InterfaceError) as error:
                logger.warning("traps.not_stored error=%s", type(error).__name__)
            except Error as error:
                refusals += 1
                logger.warning("traps.refused_by_database error=%s traps=%s", type(error).__name__, len(heard))
            else:
                return 0
            await asyncio.sleep(RETRY_SECONDS)
        return len(heard)

    async def _refresh(self, listener: TrapListener, book: SenderBook) -> None:
        listener.senders = await self.database.run(book.load)

    async def _settle(self) -> None:
        await self.database.run(store.settle, self.clock.now())

    async def _report(self, listener: TrapListener, opened: socket.socket) -> None:
        lost = count_kernel_drops(opened)
        counts: dict[tuple[str, str], tuple[int, int | None]] = {
            key: (count, next((sender.olt_id for sender in listener.senders.get(key[0], ())), None))
            for key, count in listener.refused.items()
        }
        reported = Counter({key: count for key, (count, _olt_id) in counts.items()})
        fresh = lost - self._lost
        if fresh:
            counts[_plain(self.bind[0]), Reasons.BUFFER.value] = fresh, None
        heard, dropped = listener.received, listener.dropped
        now = self.clock.now()
        await self.database.run(store.save_counts, self.name, counts, heard=heard, dropped=dropped + fresh, now=now)
        # What came while they were stored stays for the next time.
        listener.refused -= reported
        self._lost = lost
        listener.received -= heard
        listener.dropped -= dropped

    async def _repeat(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._try(work)

    async def _try(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do some work with the database; False, and a line of the log, when it is away."""
        try:
            await work()
        except Error as error:
            logger.warning("traps.not_stored error=%s", type(error).__name__)
            return False
        return True


def _open_socket(bind: tuple[str, int], *, is_shared: bool) -> socket.socket:
    family, kind, protocol, _name, address = socket.getaddrinfo(*bind, type=socket.SOCK_DGRAM)[0]
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
    if is_shared:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    opened.setblocking(False)
    opened.bind(address)
    return opened


def count_kernel_drops(opened: socket.socket) -> int:
    """Return how many datagrams the kernel dropped because the buffer of a socket was full; 0 where it does not say."""
    inode = str(os.fstat(opened.fileno()).st_ino)
    for table in (Path("/proc/net/udp"), Path("/proc/net/udp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            columns = line.split()
            if columns[9] == inode:
                return int(columns[12])
    return 0


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


def receiver_name(port: int) -> str:
    """Name the receiver of this machine and port; informs are addressed to its engine."""
    return f"{socket.gethostname()[:60]}/{port}"

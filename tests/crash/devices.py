"""Simulated OLTs that note every datagram: when it came, to whom, and from which process. What counts, counts here."""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from facho.polling.snmp.ber import decode_head
from facho.simulator.agent import Address, Endpoint, Receiver
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig


@dataclass(frozen=True, slots=True)
class Packet:
    """A datagram at a device; `at` is wall time, which all processes of a machine share. Answers have no `pid`."""

    at: float
    port: int
    pid: int | None
    request_id: int


@dataclass(frozen=True, slots=True)
class Held:
    """When which process held an OLT, by what the database says; `until` is None while it still does."""

    turn: str
    port: int
    pid: int
    since: float
    until: float | None

    def covers(self, packet: Packet) -> bool:
        """Tell whether the packet was sent under this claim."""
        # A process that was killed with its first packet on a socket has no name any more.
        is_its = self.port == packet.port and packet.pid in (self.pid, 0)
        return is_its and self.since <= packet.at and (self.until is None or packet.at <= self.until)


@dataclass(slots=True)
class Verdict:
    """What the devices saw against what the database allowed, each as a sentence."""

    strays: list[str] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Devices:
    """The simulated OLTs and their log."""

    olts: list[SimulatedOlt] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    # By socket, and by port the last one that had it: each run has a socket of its own, and ports come again.
    _pids_by_inode: dict[str, int] = field(default_factory=dict)
    _pids_by_port: dict[int, int] = field(default_factory=dict)

    @property
    def max_in_flight(self) -> int:
        """The largest number of different requests that one device ever had at once."""
        return max(olt.counters.max_in_flight for olt in self.olts)

    def note(self, port: int, datagrams: Sequence[tuple[bytes, Address]]) -> None:
        """Add what a device received."""
        at = time.time()
        for data, address in datagrams:
            self.packets.append(Packet(at, port, self._pid_of(int(str(address[1]))), decode_head(data).request_id))

    def note_answer(self, port: int, data: bytes) -> None:
        """Add what a device answered."""
        self.packets.append(Packet(time.time(), port, None, decode_head(data).request_id))

    def count_by_process(self) -> dict[int, int]:
        """Count what each process sent."""
        return dict(Counter(packet.pid for packet in self.packets if packet.pid is not None))

    def _pid_of(self, source_port: int) -> int:
        inode = _socket_on(source_port)
        if inode is not None:
            if inode not in self._pids_by_inode:
                # All at once: to look again for each socket would keep the device from answering.
                self._pids_by_inode = _processes_by_socket()
            self._pids_by_port[source_port] = self._pids_by_inode.get(inode, 0)
        return self._pids_by_port.get(source_port, 0)


@contextmanager
def simulated(*configs: SimulatorConfig) -> Iterator[Devices]:
    """Play OLTs on a thread of their own; fork before, not inside."""
    devices, ready, done = Devices(), threading.Event(), threading.Event()
    _record_into(devices)

    async def play() -> None:
        async with asyncio.TaskGroup() as group:
            gates = [group.create_task(_serve(config, devices, done)) for config in configs]
            while len(devices.olts) < sum(config.olts for config in configs):
                await asyncio.wait(gates, timeout=0.01)
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(play()), name="devices", daemon=True)
    thread.start()
    if not ready.wait(30):
        raise TimeoutError("the simulator did not start")
    try:
        yield devices
    finally:
        done.set()
        thread.join(30)


async def _serve(config: SimulatorConfig, devices: Devices, done: threading.Event) -> None:
    async with Simulation.start(config) as simulation:
        devices.olts += simulation.olts
        await asyncio.to_thread(done.wait)


def _record_into(devices: Devices) -> None:
    listen, send = Endpoint.listen, Endpoint.send

    def listen_and_note(endpoint: Endpoint, receiver: Receiver) -> None:
        def receive(datagrams: list[tuple[bytes, Address]]) -> None:
            devices.note(endpoint.port, datagrams)
            receiver(datagrams)

        listen(endpoint, receive)

    def send_and_note(endpoint: Endpoint, data: bytes, address: Address) -> bool:
        devices.note_answer(endpoint.port, data)
        return send(endpoint, data, address)

    Endpoint.listen = listen_and_note  # type: ignore[method-assign]
    Endpoint.send = send_and_note  # type: ignore[method-assign]


def _socket_on(port: int) -> str | None:
    """Name the socket of a UDP port; None when it is gone already."""
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    return next((f"socket:[{row[9]}]" for row in rows if int(row[1].partition(":")[2], 16) == port), None)


def _processes_by_socket() -> dict[str, int]:
    """Return who has which socket, of this process and those that it started."""
    return {
        file: pid
        for pid in (os.getpid(), *_descendants(os.getpid()))
        for file in _open_files(Path(f"/proc/{pid}"))
        if file.startswith("socket:")
    }


def _descendants(pid: int) -> Iterator[int]:
    """Yield the children of a process and theirs; one that ends meanwhile has none."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from _descendants(child)


def _open_files(process: Path) -> Iterator[str]:
    """Name what a process has open; a file that it closes meanwhile hides none of the others."""
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return
    for descriptor in descriptors:
        with suppress(OSError):
            yield str(descriptor.readlink())


def judge(packets: Sequence[Packet], held: Sequence[Held], *, answer_within: float) -> Verdict:
    """Find datagrams that nobody had a right to send, and operations that met on a device."""
    verdict = Verdict(overlaps=_claims_at_once(held))
    for port in {packet.port for packet in packets}:
        here = sorted((packet for packet in packets if packet.port == port), key=lambda packet: packet.at)
        _judge_device(here, [h for h in held if h.port == port], answer_within, verdict)
    return verdict


def _judge_device(packets: Sequence[Packet], held: Sequence[Held], answer_within: float, verdict: Verdict) -> None:
    """Follow one device: whose turn it is, whose turn is over, and which questions it still works on."""
    turns: list[str] = []
    unanswered: dict[int, tuple[str, float]] = {}
    for packet in packets:
        if packet.pid is None:
            unanswered.pop(packet.request_id, None)
            continue
        owner = next((h.turn for h in held if h.covers(packet)), None)
        if owner is None:
            verdict.strays.append(f"{packet} outside of every claim of its process")
            continue
        if owner not in turns:
            turns.append(owner)
        if owner != turns[-1]:
            verdict.overlaps.append(f"{packet} of {owner} after {turns[-1]} had begun")
        for other, at in unanswered.values():
            if other != owner and packet.at - at < answer_within:
                verdict.overlaps.append(f"{packet} while the device works for {other}")
        unanswered[packet.request_id] = (owner, packet.at)


def _claims_at_once(held: Sequence[Held]) -> list[str]:
    """Find claims on one device that were held at the same time."""
    ordered = sorted(held, key=lambda h: (h.port, h.since))
    return [f"{a} and {b}" for a, b in pairwise(ordered) if a.port == b.port and (a.until is None or b.since < a.until)]

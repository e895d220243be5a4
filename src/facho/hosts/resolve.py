"""Finds the one address behind a host name. A name server that is silent costs a bounded time."""

import math
import queue
import socket
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Thread
from time import monotonic

LOOKUP_SECONDS = 5.0
PARALLEL_LOOKUPS = 32

Address = IPv4Address | IPv6Address


def resolve_all(hosts: Collection[str], *, lookup_seconds: float = LOOKUP_SECONDS) -> dict[str, str]:
    """Resolve hosts to addresses; those that do not resolve in time are missing."""
    found = {host: address for host in hosts if (address := literal_address(host))}
    names = set(hosts) - set(found)
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[str, str | None]] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    workers = min(len(names), PARALLEL_LOOKUPS)
    for _number in range(workers):
        # The system's resolver cannot be interrupted: a daemon thread is the way to leave it behind.
        Thread(target=_work, args=(waiting, answers), daemon=True).start()
    rounds = math.ceil(len(names) / PARALLEL_LOOKUPS)
    deadline = monotonic() + rounds * lookup_seconds
    for _number in range(len(names)):
        try:
            name, answer = answers.get(timeout=max(deadline - monotonic(), 0))
        except queue.Empty:
            break
        if answer:
            found[name] = answer
    return found


def literal_address(host: str) -> str | None:
    try:
        return _usable([ip_address(host)])
    except ValueError:
        return None


def look_up(host: str) -> str | None:
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, ValueError):  # no such name, or a name that cannot be one
        return None
    return _usable([ip_address(str(answer[4][0])) for answer in answers])


def _usable(addresses: Collection[Address]) -> str | None:
    """Prefer IPv4, then the smallest address, so that the result is stable."""
    devices = [device for device in map(_unmapped, addresses) if _can_be_a_device(device)]
    return str(min(devices, key=lambda device: (device.version, int(device)))) if devices else None


def _unmapped(address: Address) -> Address:
    """Convert an IPv4-mapped IPv6 address to IPv4: it is the same device."""
    return getattr(address, "ipv4_mapped", None) or address


def _can_be_a_device(address: Address) -> bool:
    # Without its zone, which means nothing on another machine, an IPv6 address of a link leads nowhere.
    is_of_a_link = address.version == 6 and address.is_link_local
    is_broadcast = int(address) == 0xFFFF_FFFF
    return not (address.is_multicast or address.is_unspecified or is_of_a_link or is_broadcast)


def _work(waiting: "queue.SimpleQueue[str]", answers: "queue.SimpleQueue[tuple[str, str | None]]") -> None:
    while True:
        try:
            name = waiting.get_nowait()
        except queue.Empty:
            return
        answers.put((name, look_up(name)))

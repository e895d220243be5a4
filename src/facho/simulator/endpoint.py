"""A UDP socket in the event loop that hands over everything waiting in it at once."""

import asyncio
import socket
from collections.abc import Callable

MAX_DATAGRAM_BYTES = 65_535
# Bounds one turn of the event loop when a manager floods one agent.
DATAGRAMS_PER_TURN = 256
RECEIVE_BUFFER_BYTES = 1 << 20

Address = tuple[object, ...]
Receiver = Callable[[list[tuple[bytes, Address]]], None]


class PortTaken(OSError):
    """The wanted UDP port cannot be bound."""


class Endpoint:
    """One bound socket. Asyncio's own datagram transport reads a single datagram a turn, which hides bursts."""

    def __init__(self, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise PortTaken(error.errno, f"cannot listen on UDP {host} port {port}: {error.strerror}") from error
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._receiver: Receiver | None = None

    def listen(self, receiver: Receiver) -> None:
        """Hand over datagrams from now on, in the running event loop."""
        self._receiver = receiver
        asyncio.get_running_loop().add_reader(self._socket, self._read_all)

    def send(self, data: bytes, address: Address) -> bool:
        """Send now or never; False when the system would not take the datagram."""
        try:
            self._socket.sendto(data, address)
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self._receiver is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _read_all(self) -> None:
        waiting: list[tuple[bytes, Address]] = []
        for _ in range(DATAGRAMS_PER_TURN):
            try:
                waiting.append(self._socket.recvfrom(MAX_DATAGRAM_BYTES))
            except BlockingIOError:
                break
            except OSError:
                continue  # an error of an earlier send is reported here; the socket still works
        if waiting and self._receiver is not None:
            self._receiver(waiting)

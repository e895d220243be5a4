"""Binds the web's address before anything is started, so that a taken port is told at once."""

import socket

from facho.core.env import split_bind

BACKLOG = 128


class CannotListen(Exception):
    """The address cannot be bound; the message says which and why."""


def listen(bind: str) -> socket.socket:
    """Return a listening socket on HOST:PORT; port 0 takes any free one."""
    host, port = split_bind(bind)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except (OSError, ValueError) as error:
        raise CannotListen(f"{bind}: {getattr(error, 'strerror', None) or error}") from error
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the address to open in a browser on this machine."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

"""Asks a Redis server whether it is there, over a plain socket: no client library is needed to know that."""

import socket
import ssl
from urllib.parse import SplitResult, unquote, urlsplit

DEFAULT_PORT = 6379
MAX_ANSWER_BYTES = 512


class RedisFailure(Exception):
    """No Redis answers there; the message holds neither user nor password."""


def ping(url: str, *, timeout_seconds: float) -> None:
    """Raise unless the server at the URL lets us in and says PONG."""
    try:
        parts = urlsplit(url)
        place = (parts.hostname or "localhost", parts.port or DEFAULT_PORT)
    except ValueError:
        # The parser's own words may repeat the password.
        raise RedisFailure("REDIS_URL cannot be read") from None
    try:
        with _connect(parts, place, timeout_seconds) as connection:
            _converse(connection, parts)
    except OSError as error:
        raise RedisFailure(f"{place[0]}:{place[1]}: {error.strerror or error}") from error


def _connect(parts: SplitResult, place: tuple[str, int], timeout_seconds: float) -> socket.socket:
    plain = socket.create_connection(place, timeout_seconds)
    if parts.scheme != "rediss":
        return plain
    return ssl.create_default_context().wrap_socket(plain, server_hostname=place[0])


def _converse(connection: socket.socket, parts: SplitResult) -> None:
    if parts.password:
        names = [unquote(parts.username)] if parts.username else []
        _expect(connection, ["AUTH", *names, unquote(parts.password)], b"+OK")
    _expect(connection, ["PING"], b"+PONG")


def _expect(connection: socket.socket, words: list[str], wanted: bytes) -> None:
    encoded = [word.encode() for word in words]
    parts = [b"*%d\r\n" % len(encoded), *(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)]
    connection.sendall(b"".join(parts))
    answer = b""
    while not answer.endswith(b"\r\n") and len(answer) < MAX_ANSWER_BYTES:
        block = connection.recv(MAX_ANSWER_BYTES)
        if not block:
            break
        answer += block
    if not answer.startswith(wanted):
        # The server's words may be anything when it is no Redis; its error code is enough.
        code = answer.split(b" ")[0].strip(b"-\r\n").decode("ascii", "replace")[:20]
        raise RedisFailure(f"Redis refused {words[0]}: {code if code.isalpha() else 'no Redis answers'}")

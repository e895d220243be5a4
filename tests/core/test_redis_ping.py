"""Asking Redis over a plain socket, against servers that say one thing or another."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from facho.core.redis import RedisFailure, ping

PATIENCE = 5.0


@contextmanager
def server(*answers: bytes, heard: list[bytes] | None = None) -> Iterator[int]:
    """A server that gives these answers, one to each message."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                for answer in answers:
                    (heard if heard is not None else []).append(connection.recv(1024))
                    connection.sendall(answer)

        thread = Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(timeout=PATIENCE)


def test_a_server_that_says_pong_is_there() -> None:
    heard: list[bytes] = []
    with server(b"+PONG\r\n", heard=heard) as port:
        ping(f"redis://127.0.0.1:{port}/0", timeout_seconds=PATIENCE)

    assert heard == [b"*1\r\n$4\r\nPING\r\n"]


@pytest.mark.parametrize(
    ("login", "words"),
    [
        (":p%40ss", b"*2\r\n$4\r\nAUTH\r\n$4\r\np@ss\r\n"),
        ("ana:p%40ss", b"*3\r\n$4\r\nAUTH\r\n$3\r\nana\r\n$4\r\np@ss\r\n"),
    ],
)
def test_a_login_of_the_url_is_used(login: str, words: bytes) -> None:
    heard: list[bytes] = []
    with server(b"+OK\r\n", b"+PONG\r\n", heard=heard) as port:
        ping(f"redis://{login}@127.0.0.1:{port}", timeout_seconds=PATIENCE)

    assert heard[0] == words


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"-NOAUTH Authentication required.\r\n", "Redis refused PING: NOAUTH"),
        (b"HTTP/1.1 400 Bad Request\r\n", "no Redis answers"),
        (b"", "no Redis answers"),
    ],
)
def test_a_server_that_says_anything_else_is_reported(answer: bytes, reason: str) -> None:
    with server(answer) as port, pytest.raises(RedisFailure, match=reason):
        ping(f"redis://127.0.0.1:{port}", timeout_seconds=PATIENCE)


def test_a_wrong_password_is_not_repeated() -> None:
    with server(b"-WRONGPASS invalid username-password pair\r\n") as port, pytest.raises(RedisFailure) as failure:
        ping(f"redis://:canary-7f3a@127.0.0.1:{port}", timeout_seconds=PATIENCE)

    assert str(failure.value) == "Redis refused AUTH: WRONGPASS"


def test_a_silent_server_costs_a_bounded_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RedisFailure, match="timed out"):
        ping(f"redis://127.0.0.1:{silent.getsockname()[1]}", timeout_seconds=0.05)


def test_nobody_there_is_reported_with_the_address() -> None:
    with pytest.raises(RedisFailure, match=r"127\.0\.0\.1:1: Connection refused"):
        ping("redis://127.0.0.1:1", timeout_seconds=PATIENCE)


def test_an_address_that_is_none_does_not_show_the_password() -> None:
    with pytest.raises(RedisFailure, match="REDIS_URL cannot be read"):
        ping("redis://:canary-7f3a@127.0.0.1:port", timeout_seconds=PATIENCE)


def test_a_plain_server_is_no_encrypted_one() -> None:
    with server(b"+PONG\r\n") as port, pytest.raises(RedisFailure):
        ping(f"rediss://127.0.0.1:{port}", timeout_seconds=PATIENCE)

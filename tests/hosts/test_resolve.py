"""Host names and addresses: one device, one spelling, bounded time."""

import socket
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest

from facho.hosts import resolve
from facho.hosts.resolve import literal_address, look_up, resolve_all


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:DB8:0::7", "2001:db8::7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::1", "::1"),
    ],
)
def test_an_address_has_one_spelling(written: str, stored: str) -> None:
    assert literal_address(written) == stored


@pytest.mark.parametrize(
    "written",
    ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "fe80::1%eth0", "fe80::1"],  # noqa: S104 - refused
)
def test_an_address_that_is_no_single_device_is_refused(written: str) -> None:
    assert literal_address(written) is None
    assert resolve_all([written]) == {}


@pytest.mark.parametrize("name", ["no-such-host.invalid", "a..b", "x" * 300, "", "nul\x00l", "con espacio"])
def test_a_name_that_cannot_be_found_is_left_out(name: str) -> None:
    assert resolve_all([name]) == {}


def test_names_and_addresses_resolve_together() -> None:
    assert resolve_all(["localhost", "192.0.2.7", "no-such-host.invalid"]) == {
        "localhost": look_up("localhost"),
        "192.0.2.7": "192.0.2.7",
    }


def answering(*addresses: str) -> Callable[..., list[Any]]:
    """A resolver that knows these addresses for every name."""
    return lambda *_, **__: [(None, None, None, "", (address, 0)) for address in addresses]


def test_ipv4_comes_before_ipv6_and_the_smallest_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering("2001:db8::1", "192.0.2.9", "192.0.2.10"))

    assert look_up("olt.example") == "192.0.2.9"


def test_ipv6_alone_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering("2001:db8::2", "2001:db8::1"))

    assert look_up("olt.example") == "2001:db8::1"


@pytest.fixture
def silent_name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A resolver that never answers while the test runs."""
    silence = threading.Event()

    def wait(*_: Any, **__: Any) -> list[Any]:
        silence.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    yield
    silence.set()


def test_a_silent_name_server_costs_a_bounded_time(silent_name_server: None) -> None:
    began_at = monotonic()

    found = resolve_all(
        [f"olt-{number}.example" for number in range(resolve.PARALLEL_LOOKUPS + 1)], lookup_seconds=0.05
    )

    assert found == {}
    assert monotonic() - began_at < 5

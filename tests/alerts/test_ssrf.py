"""Which addresses a message may be sent to."""

import pytest

from facho.alerts.sender import MAIL_PORTS, Reach, read_networks

OUTSIDE = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"]
INSIDE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104 nobody binds to it
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "2002:7f00:1::",
]


@pytest.mark.parametrize("address", OUTSIDE)
def test_the_outside_is_open(address: str) -> None:
    assert Reach().allows(address, 443)


@pytest.mark.parametrize("address", INSIDE)
def test_the_inside_is_closed(address: str) -> None:
    assert not Reach().allows(address, 443)


@pytest.mark.parametrize("text", ["localhost", "hook.example.net", "2130706433", "0x7f.1", ""])
def test_what_is_no_address_is_closed(text: str) -> None:
    assert not Reach().allows(text, 443)


def test_what_the_operator_listed_is_open() -> None:
    reach = Reach(read_networks(["10.20.0.0/16", "fd12::/16"]))

    assert reach.allows("10.20.7.7", 8080)
    assert reach.allows("::ffff:10.20.7.7", 8080)
    assert reach.allows("fd12::5", 8080)
    assert not reach.allows("10.21.7.7", 8080)


@pytest.mark.parametrize(
    ("address", "port", "is_open"),
    [
        ("127.0.0.1", 25, True),
        ("10.0.0.5", 587, True),
        ("10.0.0.5", 6379, False),
        ("169.254.169.254", 25, False),
        ("224.0.0.1", 25, False),
    ],
)
def test_mail_servers_inside_are_open_on_their_ports(address: str, port: int, is_open: bool) -> None:
    assert Reach(inside_ports=MAIL_PORTS).allows(address, port) is is_open


@pytest.mark.parametrize("text", ["10.0.0.5/8", "everything", "10.0.0.0/33"])
def test_a_wrong_network_is_no_network(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_networks([text])

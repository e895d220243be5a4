"""A webhook over TLS: the certificate is held against the name in the address, although an address is connected to."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from alerts.outbox_rows import KEY, LOOPBACK
from facho.alerts.delivery import Address, _hand_to_process
from facho.alerts.http_request import post_webhook
from facho.alerts.models import ChannelKind
from facho.alerts.sender import Message, Outcome, Trouble
from facho.infrastructure.secrets import Secret

NAME = "hook.example.net"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of its own authority, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(NAME), x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = tmp_path / "certificate.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()) + made.public_bytes(pem)
    )
    return file


@pytest.fixture
def post(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Outcome]:
    """Posts to a server that has the certificate, whatever the name in the address."""

    def resolve(host: str, port: int, *_args: object, **_options: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    async def exchange(name: str) -> Outcome:
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(certificate)
        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=serving) as server:
            url = f"https://{name}:{server.sockets[0].getsockname()[1]}/"
            return await post_webhook(url, key=KEY, message_id="1", content={}, timestamp=1, reach=LOOPBACK)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return lambda name: asyncio.run(exchange(name))


def test_an_authority_that_nobody_trusts_gets_nothing(post: Callable[[str], Outcome]) -> None:
    assert post(NAME) == Outcome(Trouble.CERTIFICATE)


def test_the_name_of_the_address_counts(
    post: Callable[[str], Outcome], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr("facho.alerts.http_request._trusted", lambda: trusting)

    assert post(NAME) == Outcome()
    assert post("other.example.net") == Outcome(Trouble.CERTIFICATE)


@pytest.mark.parametrize("is_trusted", [True, False], ids=["trusted", "unknown"])
def test_services_believe_the_authorities_that_this_machine_trusts(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    """A company's own authority stands among the system's certificates; the library for HTTP brings others."""
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async def exchange() -> Outcome:
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(certificate)
        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=serving) as server:
            url = f"ntfys://127.0.0.1:{server.sockets[0].getsockname()[1]}/facho"
            address = Address(ChannelKind.APPRISE, Secret(url), Secret(""))
            return await _hand_to_process(address, Message("1", "opened", "warning", "t", "b"), LOOPBACK)

    assert asyncio.run(exchange()).trouble == (None if is_trusted else Trouble.UNREACHABLE)

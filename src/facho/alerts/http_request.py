"""One small HTTP request: to an address that was judged, without proxies, redirects or an answer of any size."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from facho.alerts.outcome import Outcome, Trouble
from facho.alerts.ssrf import AddressRefused, Reach

REQUEST_SECONDS = 15.0
# A status line and each header; more is no answer to a message.
LINE_BYTES = 8_192
PORTS = {"http": 80, "https": 443}
USER_AGENT = "Facho"


def read_http_url(url: str) -> SplitResult:
    """Split an address of a web server; ValueError when it is none, or holds what is never sent."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname or parts.username is not None or parts.fragment:
        raise ValueError
    if not url.isascii() or not url.isprintable() or " " in url or parts.port == 0:
        raise ValueError
    return parts


async def send_request(
    method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"", reach: Reach | None
) -> Outcome:
    """Send and tell how it was answered, in bounded time; without a `reach` any address will do."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            status = await _exchange(method, read_http_url(url), dict(headers or {}), body, reach)
    except TimeoutError:
        return Outcome(Trouble.TIMED_OUT)
    except AddressRefused:
        return Outcome(Trouble.ADDRESS_REFUSED)
    except ssl.SSLCertVerificationError:
        return Outcome(Trouble.CERTIFICATE)
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        return Outcome(Trouble.UNREACHABLE)
    return Outcome() if 200 <= status < 300 else Outcome(Trouble.NOT_TAKEN, answer=status)


async def _exchange(method: str, url: SplitResult, headers: dict[str, str], body: bytes, reach: Reach | None) -> int:
    reader, writer = await _connect(url, reach)
    try:
        writer.write(_head(method, url, headers, len(body)) + body)
        await writer.drain()
        return await _read_status(reader)
    finally:
        # Nobody waits for a farewell: the answer is all that was wanted.
        with suppress(RuntimeError):
            writer.transport.abort()


async def _connect(url: SplitResult, reach: Reach | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Resolve once, and connect to the addresses that were judged and to no other."""
    host, port = str(url.hostname), url.port or PORTS[url.scheme]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found if reach is None or reach.allows(str(entry[4][0]), port)]
    if not addresses:
        raise AddressRefused
    secured = {"ssl": _trusted(), "server_hostname": host} if url.scheme == "https" else {}
    trouble: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port, limit=LINE_BYTES, **secured)  # type: ignore[arg-type]
        except ssl.SSLError:
            raise
        except OSError as error:
            trouble = error
    raise trouble or AddressRefused


def _head(method: str, url: SplitResult, headers: dict[str, str], length: int) -> bytes:
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = {
        "Host": url.netloc,
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Connection": "close",
        "Content-Length": str(length),
        **headers,
    }
    text = "\r\n".join([f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())])
    return f"{text}\r\n\r\n".encode("ascii")


async def _read_status(reader: asyncio.StreamReader) -> int:
    """Return the status of the answer, past those that only announce one."""
    while True:
        version, _space, rest = (await reader.readuntil(b"\r\n")).decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError
        status = int(rest[:3])
        if status >= HTTPStatus.OK:
            return status
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass


@cache
def _trusted() -> ssl.SSLContext:
    """The authorities that this machine trusts; reading them takes longer than a request."""
    return ssl.create_default_context()

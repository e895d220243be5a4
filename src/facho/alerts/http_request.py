"""One small HTTP request to a checked address: no proxies, no redirects, a bounded answer."""

import asyncio
import hashlib
import hmac
import json
import logging
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from typing import Any
from urllib.parse import SplitResult, urlsplit

from facho.alerts.sender import FINAL_ANSWERS, AddressRefused, Outcome, Reach, Trouble

logger = logging.getLogger(__name__)

REQUEST_SECONDS = 15.0
# Somebody waits for the page, and one of few threads with them.
FETCH_SECONDS = 8.0
FETCH_BYTES = 1_000_000
# A status line and each header; more is no answer to a message.
LINE_BYTES = 8_192
PORTS = {"http": 80, "https": 443}
USER_AGENT = "Facho"
ID_HEADER = "Facho-Id"
TIMESTAMP_HEADER = "Facho-Timestamp"
SIGNATURE_HEADER = "Facho-Signature"
# A key that can be guessed signs nothing.
KEY_CHARACTERS = 16


class AnswerRefused(Exception):
    """The server answered, and with no document."""

    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


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
    """Send and return the outcome, in bounded time; without a `reach` any address is allowed."""
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
    reader, writer = await _send(method, url, headers, body, reach)
    try:
        return await _read_status(reader)
    finally:
        # No orderly close: the answer is all that is needed.
        with suppress(RuntimeError):
            writer.transport.abort()


async def _send(
    method: str, url: SplitResult, headers: dict[str, str], body: bytes, reach: Reach | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a request, after which the server closes; the caller ends the connection."""
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = {
        "Host": url.netloc,
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Connection": "close",
        "Content-Length": str(len(body)),
        **headers,
    }
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())])
    reader, writer = await _connect(url, reach)
    try:
        writer.write(f"{head}\r\n\r\n".encode("ascii") + body)
        await writer.drain()
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def _connect(url: SplitResult, reach: Reach | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Resolve once, and connect only to the addresses that were checked."""
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


async def _read_status(reader: asyncio.StreamReader) -> int:
    """Return the status of the answer, past interim ones (1xx)."""
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
    """Load the authorities that this machine trusts, once: it takes longer than a request."""
    return ssl.create_default_context()


async def fetch_json(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    reach: Reach | None,
    seconds: float = FETCH_SECONDS,
) -> Any:
    """Return the JSON of a good answer, in bounded time and size; AnswerRefused, OSError or ValueError without."""
    async with asyncio.timeout(seconds):
        reader, writer = await _send(method, read_http_url(url), dict(headers or {}), body, reach)
        try:
            raw = b""
            while piece := await reader.read(FETCH_BYTES):
                raw += piece
                if len(raw) > FETCH_BYTES:
                    raise ValueError("the answer is too long")
        finally:
            with suppress(RuntimeError):
                writer.transport.abort()
    answer = HTTPResponse(_Received(raw), method=method)  # type: ignore[arg-type]  # all it asks for is a file
    try:
        answer.begin()
        content = answer.read()
    except HTTPException as error:
        raise ValueError("this is no answer of a web server") from error
    if answer.status != HTTPStatus.OK:
        raise AnswerRefused(answer.status)
    return json.loads(content)


@dataclass(frozen=True, slots=True)
class _Received:
    """Bytes that came by a connection, as the parser of the standard library wants them."""

    raw: bytes

    def makefile(self, _mode: str) -> BytesIO:
        return BytesIO(self.raw)


class Heartbeat:
    """Calls one address. The first failure in a row is logged, and its end; the address never is."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._has_failed = False

    async def beat(self) -> None:
        """Call once; the operator of this machine chose the address, so any is allowed."""
        outcome = await send_request("GET", self._url, reach=None)
        if not outcome.is_sent and not self._has_failed:
            logger.warning("heartbeat.failed trouble=%s answer=%s", outcome.trouble, outcome.answer)
        if outcome.is_sent and self._has_failed:
            logger.info("heartbeat.works_again")
        self._has_failed = not outcome.is_sent


def sign(key: str, *, timestamp: int, message_id: str, body: bytes) -> str:
    """Return the signature over time, id and body; the prefix names the method."""
    signed = f"{timestamp}.{message_id}.".encode() + body
    return "v1=" + hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()


async def post_webhook(
    url: str, *, key: str, message_id: str, content: dict[str, Any], timestamp: int, reach: Reach
) -> Outcome:
    """Post one message; the id stays the same at each try, the time does not."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: sign(key, timestamp=timestamp, message_id=message_id, body=body),
    }
    outcome = await send_request("POST", url, headers=headers, body=body, reach=reach)
    return Outcome(outcome.trouble, outcome.answer, is_final=outcome.answer in FINAL_ANSWERS)

"""What is the same for everybody, compressed once: files of pages and the description of the API."""

import asyncio
import gzip
from typing import Any

import pytest
from django.test import RequestFactory

from facho.api.shared.schema import schema
from facho.core.processes.web import Gate, build_application

CSS = "/static/dashboard/facho.css"


@pytest.fixture(scope="module")
def gate() -> Gate:
    return build_application()


def ask(gate: Gate, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "state": {},
    }
    asyncio.run(gate(scope, receive, send))
    named = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], named, b"".join(bytes(each.get("body", b"")) for each in sent[1:])


def test_a_file_is_compressed_for_who_can_read_it(gate: Gate) -> None:
    _, plain_headers, plain = ask(gate, CSS)

    status, headers, packed = ask(gate, CSS, accept_encoding="gzip, br")

    assert (status, headers["content-encoding"], headers["vary"]) == (200, "gzip", "Accept-Encoding")
    assert "content-encoding" not in plain_headers
    assert gzip.decompress(packed) == plain
    assert int(headers["content-length"]) == len(packed) < len(plain) / 3


def test_a_browser_that_has_the_file_is_reported_so(gate: Gate) -> None:
    _, headers, _ = ask(gate, CSS, accept_encoding="gzip")

    status, _, body = ask(gate, CSS, accept_encoding="gzip", if_none_match=headers["etag"])

    assert (status, body) == (304, b"")


def test_a_part_of_a_file_is_sent_as_it_is(gate: Gate) -> None:
    status, headers, body = ask(gate, CSS, accept_encoding="gzip", range="bytes=0-9")

    assert (status, len(body)) == (206, 10)
    assert "content-encoding" not in headers


def test_the_description_of_the_api_is_compressed(gate: Gate) -> None:
    schema(RequestFactory().get("/api/v1/schema/"))

    _, headers, packed = ask(gate, "/api/v1/schema/", accept_encoding="gzip")

    assert headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in headers["vary"]
    assert gzip.decompress(packed).startswith(b"openapi: 3.1.0")
    assert len(packed) < 60_000

"""Servers that receive what alert channels send: real sockets on loopback that a test can take down and bring back."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass(slots=True)
class Received:
    """One HTTP request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class HttpSink:
    """What an HTTP server got, and with what it answers."""

    port: int = 0
    status: int = 200
    location: str = ""
    answer: bytes = b"{}"
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(slots=True)
class SmtpSink:
    """What an SMTP server got."""

    port: int = 0
    received: list[EmailMessage] = field(default_factory=list)


@contextmanager
def http_sink(sink: HttpSink | None = None) -> Iterator[HttpSink]:
    """Serve while the block runs; given a sink that served before, on its port again."""
    served = sink or HttpSink()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            served.received.append(Received(self.command, self.path, dict(self.headers), body))
            self.send_response(served.status)
            if served.location:
                self.send_header("Location", served.location)
            self.send_header("Content-Length", str(len(served.answer)))
            self.end_headers()
            self.wfile.write(served.answer)

        do_GET = do_POST = do_PUT = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with _serving(_HttpServer(("127.0.0.1", served.port), Handler)) as port:
        served.port = port
        yield served


@contextmanager
def smtp_sink(sink: SmtpSink | None = None) -> Iterator[SmtpSink]:
    """Serve mail while the block runs; given a sink that served before, on its port again."""
    served = sink or SmtpSink()

    class Handler(_SmtpHandler):
        received = served.received

    with _serving(_TcpServer(("127.0.0.1", served.port), Handler)) as port:
        served.port = port
        yield served


class _TcpServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class _HttpServer(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True


class _SmtpHandler(socketserver.StreamRequestHandler):
    """Speaks as much SMTP as one message needs."""

    received: ClassVar[list[EmailMessage]]

    def handle(self) -> None:
        self._say("220 sink")
        while line := self.rfile.readline():
            verb = line.strip().upper()
            if verb.startswith(b"DATA"):
                self._take_message()
            elif verb.startswith(b"QUIT"):
                self._say("221 bye")
                return
            elif verb.startswith(b"EHLO"):
                self._say("250-sink\r\n250 AUTH PLAIN")
            else:
                self._say("235 ok" if verb.startswith(b"AUTH") else "250 ok")

    def _take_message(self) -> None:
        self._say("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b"."))
        self.received.append(message_from_bytes(b"".join(lines), policy=policy.default))  # type: ignore[arg-type]
        self._say("250 taken")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

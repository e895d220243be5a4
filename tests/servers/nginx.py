"""A private nginx with one server on a free loopback port: the lines of a page or a file, as they stand.

With a web behind it that answers what a proxy reports of a request.
"""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from servers.child import end_with_parent, free_port

START_SECONDS = 30
STOP_SECONDS = 10


class NginxDidNotStart(Exception):
    """It refused its lines, or stayed silent; the message holds the end of its log."""


class ReportingWeb(BaseHTTPRequestHandler):
    """Answers what it was reported by the proxy, to /slow only when it may."""

    may_answer = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.may_answer.wait(60)
        self.send_response(200)
        self.end_headers()
        reported = (self.headers[name] or "" for name in ("Host", "X-Forwarded-Proto", "X-Forwarded-For"))
        self.wfile.write(" ".join(reported).encode())

    def log_message(self, *_words: object) -> None:
        pass


class _WebServer(ThreadingHTTPServer):
    request_queue_size = 200


@contextmanager
def reporting_web() -> Iterator[int]:
    """Run the web; yields its port."""
    with _WebServer(("127.0.0.1", 0), ReportingWeb) as web:
        threading.Thread(target=web.serve_forever).start()
        try:
            yield web.server_port
        finally:
            web.shutdown()


@contextmanager
def private_nginx(folder: Path, lines: str) -> Iterator[str]:
    """Run a server with these lines; yields its address."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise FileNotFoundError("nginx is not installed: run `make test`, or apt-get install nginx-light")
    port = free_port()
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = f"server {{\nlisten 127.0.0.1:{port};\n{lines}\n}}"
    http = f"access_log off;\ninclude /etc/nginx/mime.types;\n{places}{server}"
    (folder / "nginx.conf").write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/log;\nevents {{}}\nhttp {{\n{http}\n}}\n"
    )
    process = subprocess.Popen(
        [program, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "log"],
        stdin=subprocess.DEVNULL,
        process_group=0,
        preexec_fn=end_with_parent,
    )
    try:
        _wait(process, port, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    for _ in range(START_SECONDS * 20):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            try:
                process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            break
        return
    raise NginxDidNotStart(log.read_text()[-2000:])

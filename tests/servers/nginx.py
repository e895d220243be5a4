"""A private nginx with one server on a free loopback port: the lines of a page or a file, as they stand."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.child import end_with_parent, free_port

START_SECONDS = 30
STOP_SECONDS = 10


class NginxDidNotStart(Exception):
    """It refused its lines, or stayed silent; the message holds the end of its log."""


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

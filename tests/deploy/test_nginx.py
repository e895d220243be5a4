"""The file for nginx before a web of the test's own: a flood of tries is refused with 429, the rest gets through."""

import http.client
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from deploy_files import DEPLOY

from servers.nginx import ReportingWeb, reporting_web

NAME = "facho.example.net"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") or "nginx"
MAIN = """\
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/facho.conf;
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[int]:
    """Start nginx with the file as it stands, but for its ports, its certificate and the web behind it."""
    port = free_port()
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-days", "2"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    with ExitStack() as left:
        _write(tmp_path, port, left.enter_context(reporting_web()))
        nginx = subprocess.Popen([NGINX, "-c", tmp_path / "nginx.conf", "-e", tmp_path / "error.log"])
        left.callback(nginx.wait)
        left.callback(nginx.terminate)
        while nginx.poll() is None and not answers(port):
            pass
        assert nginx.poll() is None, (tmp_path / "error.log").read_text()
        yield port


def _write(folder: Path, port: int, behind: int) -> None:
    text = (DEPLOY / "nginx/facho.conf").read_text()
    for found, put in {
        "    listen 80;": f"    listen 127.0.0.1:{free_port()};",
        "    listen [::]:80;\n": "",
        "    listen 443 ssl": f"    listen 127.0.0.1:{port} ssl",
        "    listen [::]:443 ssl http2;\n": "",
        "127.0.0.1:8000": f"127.0.0.1:{behind}",
        f"/etc/letsencrypt/live/{NAME}/fullchain.pem": str(folder / "certificate.pem"),
        f"/etc/letsencrypt/live/{NAME}/privkey.pem": str(folder / "key.pem"),
    }.items():
        assert found in text
        text = text.replace(found, put)
    (folder / "facho.conf").write_text(text)
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return False
    return True


def ask(port: int, path: str) -> http.client.HTTPSConnection:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    connection.request("GET", path, headers={"Host": NAME, "X-Forwarded-For": "x"})
    return connection


def get(port: int, path: str) -> tuple[int, str]:
    connection = ask(port, path)
    answer = connection.getresponse()
    status, text = answer.status, answer.read().decode()
    connection.close()
    return status, text


def test_tries_beyond_the_limit_are_refused_with_429_and_pages_are_not(proxy: int) -> None:
    tries = [get(proxy, "/login/")[0] for _number in range(15)]

    # The burst of ten and the one that is due.
    assert tries[:11] == [200] * 11
    assert set(tries[12:]) == {429}
    assert get(proxy, "/") == (200, f"{NAME} https 127.0.0.1")


def test_connections_of_one_address_beyond_the_limit_are_refused_with_429_until_others_end(proxy: int) -> None:
    ReportingWeb.may_answer.clear()
    (limit,) = re.findall(r"limit_conn facho_visitors (\d+);", (DEPLOY / "nginx/facho.conf").read_text())
    waiting = [ask(proxy, "/slow") for _number in range(int(limit))]
    try:
        refused = get(proxy, "/")[0]
    finally:
        ReportingWeb.may_answer.set()
    served = [connection.getresponse().status for connection in waiting]
    for connection in waiting:
        connection.close()

    assert (refused, served) == (429, [200] * int(limit))
    assert get(proxy, "/")[0] == 200

"""The proxy of docs/status-page.md in a real nginx: it passes the page for customers, and nothing else."""

from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from docs_pages import ROOT, blocks
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from servers.nginx import private_nginx

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def ask(url: str, path: str) -> int:
    """Return the status; no proxy of this machine's environment is in between."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_proxy_of_the_page_shows_strangers_the_status_page_alone(
    live_server: LiveServer, settings: Settings, tmp_path: Path
) -> None:
    settings.FACHO_STATUS_PAGE = True
    [lines] = blocks(ROOT / "docs/status-page.md", "nginx")
    files = ("facho.css", "status.css", "status.js")
    shown, hidden = (
        ["/status/", *(f"/static/dashboard/{name}" for name in files)],
        ["/", "/login/", "/status/x", "/readyz"],
    )
    assert [ask(live_server.url, path) for path in ("/login/", "/readyz")] != [404, 404]

    with private_nginx(tmp_path, lines.replace("127.0.0.1:8000", urlsplit(live_server.url).netloc)) as url:
        statuses = {path: ask(url, path) for path in (*shown, *hidden)}

    assert statuses == {**dict.fromkeys(shown, 200), **dict.fromkeys(hidden, 404)}

"""The proxies of docs/status-page.md, for the page for customers alone, and of docs/operations.md, in a real nginx."""

from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from docs_pages import ROOT, blocks
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from servers.nginx import private_nginx, reporting_web


def ask(url: str, path: str, **headers: str) -> tuple[int, str]:
    """Return status and answer; no proxy of this machine's environment is in between."""
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=30)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")


@pytest.mark.django_db(transaction=True)
@pytest.mark.any_database
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
    assert [ask(live_server.url, path)[0] for path in ("/login/", "/readyz")] != [404, 404]

    with private_nginx(tmp_path, lines.replace("127.0.0.1:8000", urlsplit(live_server.url).netloc)) as url:
        statuses = {path: ask(url, path)[0] for path in (*shown, *hidden)}

    assert statuses == {**dict.fromkeys(shown, 200), **dict.fromkeys(hidden, 404)}


def test_the_proxy_of_the_operators_page_reports_name_scheme_and_address(tmp_path: Path) -> None:
    """What a visitor claims of the address does not count."""
    [lines] = blocks(ROOT / "docs/operations.md", "nginx")

    with (
        reporting_web() as port,
        private_nginx(tmp_path, lines.replace("127.0.0.1:8000", f"127.0.0.1:{port}")) as url,
    ):
        answer = ask(url, "/", Host="facho.example.net", **{"X-Forwarded-For": "192.0.2.9"})

    assert answer == (200, "facho.example.net http 127.0.0.1")

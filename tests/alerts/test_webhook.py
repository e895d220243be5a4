"""The signed webhook: whoever receives it can prove what it is, and it goes nowhere else."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from alerts.outbox_rows import KEY, LOOPBACK
from alerts.sinks import HttpSink, http_sink
from facho.alerts.http_request import post_webhook
from facho.alerts.sender import Outcome, Reach, Trouble, read_networks

ALERTS_PAGE = Path(__file__).parents[2] / "docs/alerts.md"
NOW_SECONDS = 1_900_000_000


def post(url: str, *, reach: Reach = LOOPBACK) -> Outcome:
    return asyncio.run(
        post_webhook(url, key=KEY, message_id="opened 1 2", content={"ñ": 1}, timestamp=NOW_SECONDS, reach=reach)
    )


def example_of_the_page() -> Any:
    """The function that the page shows to who receives webhooks."""
    names: dict[str, Any] = {}
    code = ALERTS_PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    exec(code, names)  # noqa: S102 our own page
    return names["is_ours"]


@pytest.fixture
def sink() -> Any:
    with http_sink() as served:
        yield served


def test_the_example_of_the_page_takes_what_we_send(sink: HttpSink) -> None:
    assert post(f"{sink.url}/in?x=1").is_sent
    [request], is_ours, seen = sink.received, example_of_the_page(), set[str]()

    assert (request.method, request.path, json.loads(request.body)) == ("POST", "/in?x=1", {"ñ": 1})
    assert is_ours(request.headers, request.body, KEY, seen, now=NOW_SECONDS + 5)
    assert not is_ours(request.headers, request.body, KEY, seen, now=NOW_SECONDS + 5), "the same again"


def test_the_example_of_the_page_refuses_forgeries(sink: HttpSink) -> None:
    post(sink.url)
    [request], is_ours = sink.received, example_of_the_page()

    assert not is_ours(request.headers, request.body + b" ", KEY, set(), now=NOW_SECONDS)
    assert not is_ours(request.headers, request.body, "another key of ours", set(), now=NOW_SECONDS)
    assert not is_ours({**request.headers, "Facho-Id": "x"}, request.body, KEY, set(), now=NOW_SECONDS)
    assert not is_ours(request.headers, request.body, KEY, set(), now=NOW_SECONDS + 301), "recorded and sent later"


def test_a_redirect_is_not_followed(sink: HttpSink) -> None:
    with http_sink() as other:
        sink.status, sink.location = 302, other.url

        assert post(sink.url) == Outcome(Trouble.NOT_TAKEN, answer=302)
    assert other.received == []


@pytest.mark.parametrize(("status", "is_final"), [(422, True), (413, True), (404, False), (429, False), (503, False)])
def test_some_answers_are_final(sink: HttpSink, status: int, is_final: bool) -> None:
    sink.status = status

    assert post(sink.url) == Outcome(Trouble.NOT_TAKEN, answer=status, is_final=is_final)


def test_proxies_of_the_environment_are_ignored(sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_sink() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)

        assert post(sink.url).is_sent
    assert (len(sink.received), proxy.received) == (1, [])


def test_a_name_is_resolved_once_and_judged_by_what_it_stands_for(
    sink: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def resolve(host: str, port: int, *_args: object, **_options: object) -> list[Any]:
        """Stand for the outside at the first question and for this machine at any other, as an attacker would."""
        asked.append(host)
        address = "198.18.0.1" if asked.count(host) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    assert post(f"http://rebind.example.net:{sink.port}/").trouble is Trouble.ADDRESS_REFUSED
    assert post(f"http://rebind.example.net:{sink.port}/").is_sent
    assert sink.received[0].headers["Host"] == f"rebind.example.net:{sink.port}"
    assert asked == ["rebind.example.net"] * 2


def test_this_machine_is_refused_unless_listed(sink: HttpSink) -> None:
    assert post(sink.url, reach=Reach()).trouble is Trouble.ADDRESS_REFUSED
    assert post(f"http://localhost:{sink.port}/", reach=Reach()).trouble is Trouble.ADDRESS_REFUSED
    assert post(sink.url, reach=Reach(read_networks(["10.0.0.0/8"]))).trouble is Trouble.ADDRESS_REFUSED
    assert sink.received == []


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 abc\r\n\r\n", b"x" * 100_000])
def test_an_answer_of_any_kind_harms_nobody(answer: bytes) -> None:
    async def exchange() -> Outcome:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}/"
            return await post_webhook(url, key=KEY, message_id="1", content={}, timestamp=1, reach=LOOPBACK)

    assert asyncio.run(exchange()).trouble is Trouble.UNREACHABLE


def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.alerts.http_request.REQUEST_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert post(f"http://127.0.0.1:{silent.getsockname()[1]}/").trouble is Trouble.TIMED_OUT

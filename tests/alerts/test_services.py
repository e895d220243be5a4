"""What each service is handed: apprise itself, with the server of the service replaced by one of the test's."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests

from alerts.sinks import HttpSink, http_sink
from facho.alerts.sender import UNJOINED, Message, hand_over, open_service

MESSAGE = Message("opened 1 2", "opened", "critical", "Corte en 0/1/3", "64 ONUs\n<!channel> @everyone <i>")
TOKEN = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
SERVERS = {
    "tgram": ("telegram.NotifyTelegram", "notify_url", "/bot"),
    "slack": ("slack.NotifySlack", "webhook_url", "/services"),
    "discord": ("discord.NotifyDiscord", "notify_url", "/api/webhooks"),
    "whatsapp": ("whatsapp.NotifyWhatsApp", "notify_url", "/{fb_ver}/{phone_id}/messages"),
}
ADDRESSES = {
    "tgram": f"tgram://123456789:{TOKEN}/-100123456",
    "slack": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
    "discord": f"discord://4174216298/{TOKEN}",
    "whatsapp": f"whatsapp://alerta:{TOKEN}@12345678901234/+573001234567?lang=es&:body=1",
}


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    with http_sink() as served:
        yield served


def send(scheme: str, sink: HttpSink, monkeypatch: pytest.MonkeyPatch, message: Message = MESSAGE) -> bool:
    service = open_service(ADDRESSES[scheme])
    assert service is not None
    place, name, path = SERVERS[scheme]
    # What Slack says when it took a message.
    sink.answer = b"ok" if scheme == "slack" else sink.answer
    monkeypatch.setattr(f"apprise.plugins.{place}.{name}", sink.url + path)
    return hand_over(service, scheme, message)


@pytest.mark.parametrize("scheme", sorted(ADDRESSES))
def test_a_message_is_one_request_that_says_it_all(
    scheme: str, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert send(scheme, sink, monkeypatch)

    [request] = sink.received
    text = json.dumps(json.loads(request.body), ensure_ascii=False)
    assert "Corte en 0/1/3" in text
    assert "64 ONUs" in text
    assert "github" not in text


@pytest.mark.parametrize("scheme", ["tgram", "slack", "discord"])
def test_a_name_that_a_device_chose_calls_nobody(scheme: str, sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    send(scheme, sink, monkeypatch)

    text = json.dumps(json.loads(sink.received[0].body), ensure_ascii=False)
    assert f"@{UNJOINED}everyone" in text
    assert not [call for call in ("@everyone", "<!channel>", "<i>") if call in text]


def test_whatsapp_fills_the_variable_of_its_template_without_line_breaks(
    sink: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    send("whatsapp", sink, monkeypatch)

    [request] = sink.received
    body: dict[str, Any] = json.loads(request.body)
    [variable] = body["template"]["components"][0]["parameters"]
    assert (request.headers["Authorization"], body["template"]["name"]) == (f"Bearer {TOKEN}", "alerta")
    assert variable["text"] == "Corte en 0/1/3 · 64 ONUs <!channel> @everyone <i>"


@pytest.mark.parametrize("scheme", sorted(ADDRESSES))
def test_a_refusal_is_one(scheme: str, sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    sink.status = 401

    assert not send(scheme, sink, monkeypatch)
    assert len(sink.received) == 1


LINKS = "Open: https://facho.example/alerts/1/\nAcknowledge: https://facho.example/acknowledge/1-0-9.x_y/"
HOSTILE = "[pay here](https://evil.example) https://evil.example <https://evil.example|x>"


def send_to_teams(message: Message, sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> bool:
    service = open_service(f"workflows://prod-1.example.net:443/abcdef0123456789/{TOKEN}?pa=yes&ver=1")
    assert service is not None
    post = requests.post
    monkeypatch.setattr(requests, "post", lambda url, **given: post(f"{sink.url}/{url.partition('/')[2]}", **given))
    return hand_over(service, "workflows", message)


def test_teams_gets_a_card_with_links_of_ours_alone(sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    message = replace(MESSAGE, body=HOSTILE, footer=LINKS)

    assert send_to_teams(message, sink, monkeypatch)

    [request] = sink.received
    text = json.dumps(json.loads(request.body), ensure_ascii=False)
    assert "[Acknowledge](https://facho.example/acknowledge/1-0-9.x_y/)" in text
    assert text.count("](") == 2
    assert "https://evil" not in text
    assert "workflows/abcdef0123456789/triggers/manual" in request.path


@pytest.mark.parametrize("scheme", ["tgram", "slack", "discord"])
def test_text_of_a_device_makes_no_link_and_ours_stay_whole(
    scheme: str, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(scheme, sink, monkeypatch, replace(MESSAGE, body=HOSTILE, footer=LINKS))

    text = json.dumps(json.loads(sink.received[0].body), ensure_ascii=False)
    assert "https://facho.example/acknowledge/1-0-9.x_y/" in text.replace("\\_", "_")
    assert "https://evil.example" not in text
    assert "](" not in text


def test_a_long_text_loses_its_end_and_not_its_links(sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    send("discord", sink, monkeypatch, replace(MESSAGE, body="x" * 5_000, footer=LINKS))
    send("whatsapp", sink, monkeypatch, replace(MESSAGE, body="x" * 5_000, footer=LINKS))

    for request in sink.received:
        assert b"/acknowledge/1-0-9.x_y/" in request.body

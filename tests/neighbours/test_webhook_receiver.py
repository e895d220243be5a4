"""What docs/webhooks.md shows runs as it stands: its receiver acts on what is ours, once, and on nothing else."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from alerts.outbox_rows import KEY, StillClock
from alerts.sinks import http_sink
from api.rows import make_user
from dashboard.outage_rows import make_outage
from docs.docs_pages import ROOT, blocks
from facho.accounts.roles import Role
from facho.alerts.http_request import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from facho.neighbours.models import Webhook, WebhookDelivery
from facho.neighbours.webhooks import replay
from neighbours.webhook_rows import NOW, Network, Office, bodies, make_webhook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
PAGE = ROOT / "docs/webhooks.md"


class Receiver:
    """The program of the page, as a process."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        [code] = blocks(PAGE, "python")
        environ = {**os.environ, "WEBHOOK_KEY": KEY, "WEBHOOK_PORT": str(self.port)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**environ, "WEBHOOK_SEEN": str(folder / "seen.sqlite3")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def wait_for(self) -> None:
        """Return once it answers."""
        while self._process.poll() is None:
            try:
                self.post(b"{}", {})
            except OSError:
                continue
            return
        raise AssertionError(self._process.communicate()[1])

    def post(self, body: bytes, headers: dict[str, str]) -> int:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", "/", body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def stop(self) -> list[str]:
        """End it and return what it acted on."""
        self._process.terminate()
        return self._process.communicate(timeout=30)[0].splitlines()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    program = Receiver(tmp_path)
    try:
        program.wait_for()
        yield program
    finally:
        program.stop()


def test_the_receiver_of_the_page_acts_on_every_event_once(receiver: Receiver) -> None:
    now = timezone.now()
    network, office = Network(), Office(StillClock(now))
    webhook = make_webhook(receiver.url)
    network.event("down", at=now)
    make_outage(network.olt, started_at=now)
    office.send()
    replay(webhook.pk, now)
    network.event("up", at=now)
    office.send()

    assert [line.split()[0] for line in receiver.stop()] == ["down", "outage_began", "up"]
    assert list(WebhookDelivery.objects.order_by("id").values_list("state", "count")) == [("sent", 2), ("sent", 3)]


def test_the_receiver_of_the_page_refuses_what_is_forged_or_old(receiver: Receiver) -> None:
    now = timezone.now()
    network = Network()
    webhook = make_webhook(receiver.url)
    network.event()
    Office(StillClock(now.replace(year=now.year - 1))).send()
    assert "403" in Webhook.objects.get(pk=webhook.pk).last_error

    body, stamp = b'{"events": [{"id": "x", "kind": "gone", "at": "", "olt": null}]}', int(now.timestamp())
    forged = sign("another key of sixteen", timestamp=stamp, message_id="x", body=body)
    headers = {ID_HEADER: "x", TIMESTAMP_HEADER: str(stamp), SIGNATURE_HEADER: forged}
    assert receiver.post(body, headers) == 403
    assert receiver.post(body, {}) == 403

    assert receiver.stop() == []


def test_the_batch_of_the_page_has_the_keys_and_kinds_of_value_of_one_that_is_sent() -> None:
    network = Network()
    with http_sink() as sink:
        webhook = make_webhook(sink.url)
        network.event("down", cause="dying_gasp")
        make_outage(network.olt, started_at=NOW)
        Office().send()
    [shown] = [json.loads(block) for block in blocks(PAGE, "json")]
    [sent] = bodies(sink)

    assert webhook.name == shown["webhook"]
    assert [event["kind"] for event in shown["events"]] == [event["kind"] for event in sent["events"]]
    assert kinds_of(shown) == kinds_of(sent)


def test_the_replay_of_the_page_is_taken() -> None:
    client = APIClient()
    client.force_login(make_user(Role.ADMIN))
    webhook = make_webhook("https://crm.example.net/")
    [request] = [block for block in blocks(PAGE, "http") if block.startswith("POST ")]
    line, _empty, body = request.partition("\n\n")

    answer = client.post(line.removeprefix("POST ").format(id=webhook.pk), body, content_type="application/json")

    assert (answer.status_code, answer.json()) == (202, {"events": 0, "events_is_exact": True, "outages": 0})


def kinds_of(value: Any) -> Any:
    """Replace values by the names of their types."""
    if isinstance(value, dict):
        return {key: kinds_of(each) for key, each in value.items()}
    if isinstance(value, list):
        return [kinds_of(each) for each in value]
    return type(value).__name__

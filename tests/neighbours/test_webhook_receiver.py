"""The receiver that the page shows runs as it stands: it acts on what is ours, once, and on nothing else."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.utils import timezone

from alerts.outbox_rows import KEY, StillClock
from dashboard.outage_rows import make_outage
from facho.alerts.http_request import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from facho.neighbours.models import Webhook, WebhookDelivery
from facho.neighbours.webhooks import replay
from neighbours.webhook_rows import Network, Office, make_webhook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
PAGE = Path(__file__).parents[2] / "docs/webhooks.md"


class Receiver:
    """The program of the page, as a process."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        code = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
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

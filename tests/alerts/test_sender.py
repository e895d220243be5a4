"""The process that hands messages to apprise: what it may do, and that it ends."""

import asyncio
import socket
import sys

import pytest

from alerts.outbox_rows import LOOPBACK
from facho.alerts import delivery as alerts_delivery
from facho.alerts.delivery import Address, Parcel
from facho.alerts.models import ChannelKind
from facho.alerts.sender import FORBIDDEN, AddressRefused, Guard, Message, Outcome, Reach, Trouble, judge
from facho.infrastructure.secrets import Secret
from factories import NOW

MESSAGE = Message("opened 1 2", "opened", "critical", "North is silent", "Since noon.")


def send(url: str) -> Outcome:
    address = Address(ChannelKind.APPRISE, Secret(url), Secret(""))
    return asyncio.run(alerts_delivery.send(Parcel(1, 1, 1, MESSAGE, NOW, {}, address), LOOPBACK, now=NOW))


@pytest.mark.parametrize("address", [("127.0.0.1", 80), ("::1", 80, 0, 0), "/run/docker.sock", ("localhost", 80)])
def test_every_connect_is_judged(address: object) -> None:
    guard = Guard(Reach())

    with pytest.raises(AddressRefused):
        guard.watch("socket.connect", (None, address))

    assert guard.has_refused


@pytest.mark.parametrize("event", sorted(FORBIDDEN))
def test_it_starts_no_program_and_serves_nobody(event: str) -> None:
    with pytest.raises(PermissionError):
        Guard(Reach()).watch(event, ())


def test_the_outside_may_be_reached() -> None:
    guard = Guard(Reach())

    guard.watch("socket.connect", (None, ("1.1.1.1", 443)))

    assert not guard.has_refused


def test_a_sender_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts_delivery, "PATIENCE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = send(f"ntfy://127.0.0.1:{silent.getsockname()[1]}/topic")

    assert outcome == Outcome(Trouble.TIMED_OUT)


def test_an_address_that_apprise_cannot_read_any_more_is_reported() -> None:
    assert send("slack://x") == Outcome(Trouble.UNUSABLE)


@pytest.mark.parametrize(
    ("scheme", "answer", "is_final"),
    [
        ("ntfy", 400, True),
        ("discord", 413, True),
        ("tgram", 400, False),
        ("tgram", 413, True),
        ("whatsapp", 400, False),
    ],
)
def test_some_answers_of_services_are_final(scheme: str, answer: int, is_final: bool) -> None:
    assert judge(Outcome(Trouble.NOT_TAKEN, answer), scheme).is_final is is_final


@pytest.mark.parametrize(
    ("program", "trouble"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGALRM)", Trouble.TIMED_OUT),
        ("raise SystemExit(1)", Trouble.CRASHED),
    ],
)
def test_a_sender_that_dies_is_an_outcome(monkeypatch: pytest.MonkeyPatch, program: str, trouble: Trouble) -> None:
    monkeypatch.setattr(alerts_delivery, "COMMAND", (sys.executable, "-I", "-c", program))

    assert send("ntfy://127.0.0.1/topic") == Outcome(trouble)

"""Channels by form: what each service asks for, the test on the same page, and what is refused before it is saved."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from pytest_django import Settings

from alerts.outbox_rows import LOOPBACK, Post, StillClock, deliver
from alerts.sinks import HttpSink, SmtpSink, http_sink, smtp_sink
from api.rows import make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.alerts import channels
from facho.alerts.channels import SERVICES
from facho.alerts.links import load_public_address
from facho.alerts.models import AlertChannel, AlertRule, ChannelKind, Notice
from facho.alerts.sender import read_networks
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db
CANARY = "canary_5e1f0a9b8c7d6e5f4a3b"
DAYS = {"on_call_days": list("1234567")}
KEY = f"{CANARY}-of-sixteen"


@pytest.fixture(autouse=True)
def _loopback_is_listed(settings: Settings) -> None:
    """Let channels reach the servers of the test."""
    settings.FACHO_WEBHOOK_ALLOW = read_networks(["127.0.0.0/8"])


@pytest.fixture
def web() -> Iterator[HttpSink]:
    with http_sink() as sink:
        yield sink


@pytest.fixture
def mail() -> Iterator[SmtpSink]:
    with smtp_sink() as sink:
        yield sink


@pytest.fixture
def _services_are_here(web: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the servers of services whose address is fixed."""
    monkeypatch.setattr(channels, "HOSTS", dict.fromkeys(channels.HOSTS, "127.0.0.1"))
    monkeypatch.setitem(channels.PORTS, "https", web.port)


def text(client: Client, path: str, **given: Any) -> str:
    answer = client.get(path, given)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def add(client: Client, code: str, **given: Any) -> Any:
    return client.post(f"/settings/channels/add/{code}/", {"name": "night shift", **DAYS, **given})


def email(sink: SmtpSink) -> dict[str, Any]:
    return {
        "recipient": "noc@isp.example",
        "cc": "ana@isp.example, luis@isp.example",
        "sender": "facho@isp.example",
        "server": "127.0.0.1",
        "port": str(sink.port),
        "security": "none",
        "user": "facho@isp.example",
        "password": f"p@:/?#% {CANARY}",
    }


@pytest.mark.parametrize("code", SERVICES)
def test_each_service_asks_for_its_own_with_an_example(administrator: Client, code: str) -> None:
    page = text(administrator, f"/settings/channels/add/{code}/")

    for each in SERVICES[code].inputs:
        assert f'name="{each.name}"' in page
        assert not each.example or "placeholder=" in page
    strange = {each.name for other in SERVICES.values() for each in other.inputs} - {
        each.name for each in SERVICES[code].inputs
    }
    assert not [name for name in strange if f'name="{name}"' in page]


@pytest.mark.django_db(transaction=True)
def test_an_email_channel_is_saved_and_its_test_arrives(administrator: Client, mail: SmtpSink) -> None:
    answer = add(administrator, "email", **email(mail))
    page = text(administrator, answer.headers["Location"])
    assert "Sending…" in page

    deliver(Post(StillClock(Notice.objects.get().created_at), LOOPBACK))

    assert "It arrived: the service accepted the test message." in text(administrator, answer.headers["Location"])
    [message] = mail.received
    assert message["To"] == "noc@isp.example"
    assert {each.strip() for each in message["Cc"].split(",")} == {"ana@isp.example", "luis@isp.example"}
    assert CANARY not in text(administrator, f"/settings/channels/{AlertChannel.objects.get().pk}/")


@pytest.mark.django_db(transaction=True)
def test_a_webhook_that_answers_an_error_is_named_in_words(administrator: Client, web: HttpSink) -> None:
    web.status = 500
    answer = add(administrator, "webhook", address=f"{web.url}/hook", signing_key=KEY)
    test = Notice.objects.get()
    deliver(Post(StillClock(test.created_at), LOOPBACK))

    part = administrator.get(f"/settings/channels/{test.channel_id}/test/{test.pk}/")

    assert "It did not arrive. The server refused it with status 500." in " ".join(part.content.decode().split())
    assert "hx-trigger" not in part.content.decode()
    assert answer.status_code == 302


@pytest.mark.usefixtures("_services_are_here")
@pytest.mark.parametrize(
    ("code", "given", "stored"),
    [
        ("telegram", {"token": f"123456789:{CANARY}", "chat": "-100123"}, f"tgram://123456789:{CANARY}/-100123"),
        (
            "whatsapp",
            {
                "number": "+573001234567",
                "phone_id": "12345678901",
                "token": "EAAGcanary",
                "template": "facho",
                "lang": "es",
            },
            "whatsapp://facho:EAAGcanary@12345678901/+573001234567?lang=es&:body=1",
        ),
        (
            "slack",
            {"address": "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"},
            "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        ),
        ("other", {"address": f"ntfys://{CANARY}"}, f"ntfys://{CANARY}"),
    ],
)
def test_services_become_addresses(administrator: Client, code: str, given: dict[str, str], stored: str) -> None:
    assert add(administrator, code, **given).status_code == 302

    channel = AlertChannel.objects.get()
    assert channel.url.reveal() == stored
    assert CANARY not in text(administrator, "/settings/channels/")


def test_a_workflow_of_teams_is_taken_as_copied(administrator: Client, web: HttpSink) -> None:
    path = "workflows/ab12cd34/triggers/manual/paths/invoke?api-version=1&sp=%2Ftriggers&sv=1.0"
    add(administrator, "teams", address=f"https://127.0.0.1:{web.port}/{path}&sig={CANARY}")

    channel = AlertChannel.objects.get()
    assert channel.url.reveal() == f"workflows://127.0.0.1:{web.port}/ab12cd34/{CANARY}?ver=1"


@pytest.mark.parametrize(
    ("code", "given", "words"),
    [
        ("telegram", {"token": "123", "chat": "-100123"}, "Use this format: 123456789:AAExample"),
        ("telegram", {"token": "", "chat": "-100123"}, "This is required."),
        ("slack", {"address": "https://evil.example/services/a/b/c"}, "Use this format: https://hooks.slack.com/"),
        ("webhook", {"address": "https://hooks.example.net", "signing_key": "short"}, "This is too short."),
        ("other", {"address": "json://10.0.0.1/"}, "Add a channel of the kind webhook for this"),
        ("email", {"recipient": "noc", "server": "a b"}, "Use this format: noc@example.net"),
    ],
)
def test_wrong_input_is_marked_and_said_how_to_write_it(
    administrator: Client, code: str, given: dict[str, str], words: str
) -> None:
    answer = add(administrator, code, **given)

    page = answer.content.decode()
    assert words in page
    assert 'class="field wrong"' in page
    assert not AlertChannel.objects.exists()


def test_what_was_typed_stays_except_secrets(administrator: Client, mail: SmtpSink) -> None:
    given = email(mail) | {"recipient": "no mailbox", "digest": "hour", "on_call_from": "08:00"}

    page = add(administrator, "email", **given).content.decode()

    assert 'value="no mailbox"' in page
    assert 'value="ana@isp.example, luis@isp.example"' in page
    assert 'value="08:00"' in page
    assert '<option value="hour" selected>' in page
    assert "Hours need both their beginning and their end." in page
    assert CANARY not in page


def test_a_server_that_does_not_answer_is_refused_before_saving(administrator: Client) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        page = add(administrator, "webhook", address=f"http://127.0.0.1:{port}/x", signing_key=KEY).content.decode()

    assert f"127.0.0.1 does not answer on port {port}: check both, and the firewall." in page
    assert f'value="http://127.0.0.1:{port}/x"' in page
    assert not AlertChannel.objects.exists()


def test_a_name_that_does_not_exist_is_refused_before_saving(administrator: Client) -> None:
    page = add(administrator, "webhook", address="https://nothing.invalid/x", signing_key=KEY).content.decode()

    assert "The host name nothing.invalid does not resolve: check it." in page


def test_a_server_inside_is_refused_before_saving(administrator: Client, web: HttpSink, settings: Settings) -> None:
    settings.FACHO_WEBHOOK_ALLOW = ()

    page = add(administrator, "webhook", address=f"{web.url}/x", signing_key=KEY).content.decode()

    assert "The server is inside the network and not listed in FACHO_WEBHOOK_ALLOW." in page
    assert (web.received, AlertChannel.objects.count()) == ([], 0)


def make_webhook(administrator: Client, web: HttpSink) -> AlertChannel:
    add(administrator, "webhook", address=f"{web.url}/x", signing_key=KEY)
    return AlertChannel.objects.get()


def test_a_stored_address_stays_when_nothing_is_typed(administrator: Client, web: HttpSink) -> None:
    channel = make_webhook(administrator, web)

    answer = administrator.post(
        f"/settings/channels/{channel.pk}/",
        {"name": "boss", "digest": "day", "on_call_from": "22:00", "on_call_to": "06:00", "on_call_days": ["1", "7"]},
    )

    assert answer.status_code == 302
    channel.refresh_from_db()
    assert (channel.name, channel.digest, channel.on_call_days) == ("boss", "day", "17")
    assert (channel.url.reveal(), channel.signing_key.reveal()) == (f"{web.url}/x", KEY)
    assert Notice.objects.count() == 1
    assert CANARY not in "".join(LogEntry.objects.values_list("change_message", flat=True))


def test_another_server_needs_another_key(administrator: Client, web: HttpSink) -> None:
    channel = make_webhook(administrator, web)
    with http_sink() as other:
        page = administrator.post(
            f"/settings/channels/{channel.pk}/", {"name": "x", "address": f"{other.url}/y", **DAYS}
        ).content.decode()

    assert "Give a signing key: the stored one is not used for another server." in page
    channel.refresh_from_db()
    assert channel.url.reveal() == f"{web.url}/x"


def test_two_channels_have_two_names(administrator: Client, web: HttpSink) -> None:
    make_webhook(administrator, web)

    page = add(administrator, "webhook", address=f"{web.url}/z", signing_key=KEY).content.decode()

    assert "Another channel has this name." in page


def test_a_channel_is_disabled_and_then_tests_nothing(administrator: Client, web: HttpSink) -> None:
    channel = make_webhook(administrator, web)

    administrator.post(f"/settings/channels/{channel.pk}/switch/", {"enabled": "no"})
    answer = administrator.post(f"/settings/channels/{channel.pk}/test/", follow=True)

    assert "This channel is disabled: nothing is sent through it." in answer.content.decode()
    assert Notice.objects.count() == 1
    administrator.post(f"/settings/channels/{channel.pk}/switch/", {"enabled": "yes"})
    assert AlertChannel.objects.get().enabled


def test_deleting_says_which_rules_lose_it_and_asks_once(administrator: Client, web: HttpSink) -> None:
    channel = make_webhook(administrator, web)
    other = AlertChannel.objects.create(name="other")
    AlertRule.objects.all().delete()
    for name, its in (("Alone", [channel]), ("Both", [channel, other]), ("Neither", [other])):
        AlertRule.objects.create(name=name, kind="weak_light").channels.set(its)

    page = text(administrator, f"/settings/channels/{channel.pk}/delete/")

    losing = page.split('id="losing"')[1].split("</ul>")[0]
    assert "Alone <span" in losing
    assert "Both</li>" in losing
    assert "Neither" not in losing
    assert AlertChannel.objects.count() == 2
    administrator.post(f"/settings/channels/{channel.pk}/delete/")
    assert list(AlertChannel.objects.values_list("name", flat=True)) == ["other"]


def test_links_are_revoked_by_one_press(administrator: Client, web: HttpSink) -> None:
    channel = make_webhook(administrator, web)

    administrator.post(f"/settings/channels/{channel.pk}/revoke/")

    assert AlertChannel.objects.get().link_version == 1


@pytest.mark.parametrize(
    ("typed", "kept"), [("https://facho.isp.example/", "https://facho.isp.example"), ("facho", "")]
)
def test_the_address_of_the_pages_is_asked_for_here_too(administrator: Client, typed: str, kept: str) -> None:
    assert "Messages have no links yet" in text(administrator, "/settings/channels/")

    answer = administrator.post("/settings/channels/address/", {"url": typed}, follow=True)

    assert load_public_address() == kept
    assert not kept or f"<strong>{kept}</strong>" in answer.content.decode()
    assert kept or f'value="{typed}"' in answer.content.decode()


def test_what_people_wrote_is_text(administrator: Client) -> None:
    script = "<script>alert(1)</script>"
    channel = AlertChannel.objects.create(name=script)
    Notice.objects.create(
        key="1", channel=channel, kind="opened", severity="info", title=script, created_at="2030-01-01T00:00Z"
    )

    for path in ("", f"{channel.pk}/", f"{channel.pk}/delete/"):
        page = text(administrator, f"/settings/channels/{path}")
        assert script not in page
        assert "&lt;script&gt;" in page


PAGES = [
    ("get", "/settings/channels/"),
    ("post", "/settings/channels/address/"),
    ("get", "/settings/channels/add/email/"),
    ("get", "/settings/channels/{channel}/"),
    ("post", "/settings/channels/{channel}/test/"),
    ("get", "/settings/channels/{channel}/test/1/"),
    ("post", "/settings/channels/{channel}/switch/"),
    ("post", "/settings/channels/{channel}/revoke/"),
    ("post", "/settings/channels/{channel}/delete/"),
    ("get", "/settings/rules/"),
    ("post", "/settings/rules/add/"),
    ("post", "/settings/rules/{rule}/"),
    ("post", "/settings/rules/{rule}/delete/"),
]


@pytest.mark.parametrize(("method", "path"), PAGES)
def test_administrators_of_everything_alone_set_alerts_up(method: str, path: str) -> None:
    channel, rule = AlertChannel.objects.create(name="c"), AlertRule.objects.create(name="r", kind="weak_light")
    address = path.format(channel=channel.pk, rule=rule.pk)
    limited = make_user(Role.ADMIN)
    Profile.objects.get_or_create(user=limited)[0].olt_groups.add(OltGroup.objects.create(name="North"))

    for user in (make_user(Role.VIEWER), make_user(Role.OPERATOR), limited):
        client = Client()
        client.force_login(user)
        assert getattr(client, method)(address).status_code == 403
    assert getattr(Client(), method)(address).status_code == 302
    assert (AlertChannel.objects.count(), AlertRule.objects.filter(pk=rule.pk).count()) == (1, 1)


def test_the_list_costs_the_same_however_many_channels_there_are(
    administrator: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(20):
        AlertChannel.objects.create(name=f"c{number}", kind=ChannelKind.WEBHOOK)

    with django_assert_max_num_queries(9):
        text(administrator, "/settings/channels/")

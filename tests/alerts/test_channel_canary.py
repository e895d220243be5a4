"""The address of a channel and its key are seen nowhere but on the wire: used for real, then looked for everywhere."""

import asyncio
import logging
import traceback
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection
from django.test import Client
from django.urls import reverse

from alerts.outbox_rows import Post, make_channel
from alerts.sinks import http_sink
from facho.accounts.roles import Role, give_role
from facho.alerts.channels import ChannelSecrets, save_channel, write_test
from facho.alerts.delivery import claim_next
from facho.alerts.models import AlertChannel, ChannelKind, Notice
from facho.hosts.csv import write_entries
from facho.hosts.inventory import export_entries
from facho.infrastructure.secrets import Secret
from factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canary8c21"
KEY = f"{CANARY}-signing-key"


@pytest.fixture
def used(caplog: pytest.LogCaptureFixture) -> None:
    """Channels of both kinds, each used twice: the server took one message and was gone at the other."""
    caplog.set_level(logging.DEBUG)
    post = Post()
    with http_sink() as sink:
        webhook = AlertChannel(name="Hook", kind=ChannelKind.WEBHOOK)
        save_channel(webhook, ChannelSecrets(Secret(f"{sink.url}/{CANARY}?token={CANARY}"), Secret(KEY)))
        channels = [webhook, make_channel(f"ntfy://tk_{CANARY}@127.0.0.1:{sink.port}/{CANARY}")]
        _send(post, channels)
        assert len(sink.received) == 2
    _send(post, channels)
    assert set(Notice.objects.values_list("state", flat=True)) == {"sent", "failed"}


def _send(post: Post, channels: list[AlertChannel]) -> None:
    for channel in channels:
        write_test(channel, now=NOW)
    asyncio.run(post.deliver())


@pytest.fixture
def admin(client: Client) -> Client:
    user = User.objects.create_user("root", password="x")
    give_role(user, Role.ADMIN)
    client.force_login(user)
    return client


def test_the_canary_is_in_no_log(used: None, caplog: pytest.LogCaptureFixture) -> None:
    lines = [record.getMessage() for record in caplog.get_records("setup")]

    assert any(line.startswith("notice.failed") for line in lines)
    assert not [line for line in lines if CANARY in line]


def test_the_canary_is_in_no_column_no_dump_and_no_file(used: None) -> None:
    """So a backup without its key tells nothing."""
    with connection.cursor() as cursor:
        for model in apps.get_models():
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(model._meta.db_table)}")  # noqa: S608 our own names
            assert CANARY not in str(cursor.fetchall()), model
    assert CANARY not in serializers.serialize("json", [*AlertChannel.objects.all(), *Notice.objects.all()])
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        files = [file for file in path.parent.glob(f"{path.name}*") if CANARY.encode() in file.read_bytes()]
        assert files == []


def test_the_canary_is_in_no_answer_and_on_no_page(used: None, admin: Client) -> None:
    channels = AlertChannel.objects.values_list("id", flat=True)
    pages = ["/api/v1/alert-channels/"]
    pages += [f"/api/v1/alert-channels/{pk}/" for pk in channels]
    pages += [f"/api/v1/alert-channels/{pk}/notices/" for pk in channels]
    pages += [reverse("admin:alerts_alertchannel_changelist"), reverse("admin:alerts_notice_changelist")]
    pages += [reverse("admin:alerts_alertchannel_change", args=[pk]) for pk in channels]
    pages += [reverse("admin:alerts_notice_change", args=[Notice.objects.latest("id").pk])]

    for page in pages:
        answer = admin.get(page)
        assert answer.status_code == 200, page
        assert CANARY not in answer.content.decode(), page


def test_the_canary_is_in_no_export(used: None) -> None:
    assert CANARY not in write_entries(export_entries())


def test_the_canary_is_in_no_traceback(used: None) -> None:
    """Also not in one that shows local variables."""

    def fail(channel_id: int) -> None:
        write_test(AlertChannel.objects.get(id=channel_id), now=NOW)
        parcel = claim_next(channel_id, NOW)
        channel = AlertChannel.objects.get(id=channel_id)
        raise RuntimeError(f"{parcel!r} {channel!r} {channel.url} {channel.signing_key!r}")

    with pytest.raises(RuntimeError) as caught:
        fail(AlertChannel.objects.earliest("id").pk)

    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert CANARY not in "".join(shown.format())


def test_an_admin_enters_secrets_on_a_page_and_a_wrong_one_is_not_repeated(admin: Client) -> None:
    add = reverse("admin:alerts_alertchannel_add")
    form = {"name": "Hook", "kind": "webhook", "language": "", "enabled": "on"}

    refused = admin.post(
        add, {**form, "new_url": f"ftp://{CANARY}", "new_signing_key": CANARY}, headers={"accept-language": "en"}
    )
    taken = admin.post(add, {**form, "new_url": f"https://hook.example.net/{CANARY}", "new_signing_key": KEY})

    assert refused.status_code == 200
    assert "Enter https://HOST/PATH" in refused.content.decode()
    assert CANARY not in refused.content.decode()
    assert taken.status_code == 302
    channel = AlertChannel.objects.get()
    assert (channel.url.reveal(), channel.shown_as) == (
        f"https://hook.example.net/{CANARY}",
        "https://hook.example.net/…",
    )


def test_a_new_channel_has_examples_and_a_stored_one_says_that_it_stays(admin: Client) -> None:
    channel = make_channel(f"ntfys://{CANARY}")
    stays = "Never shown. Leave empty to keep the stored one"

    english = {"accept-language": "en"}
    new = admin.get(reverse("admin:alerts_alertchannel_add"), headers=english).content.decode()
    stored = admin.get(reverse("admin:alerts_alertchannel_change", args=[channel.pk]), headers=english).content.decode()

    assert "Telegram: <code>tgram://BOT-TOKEN/CHAT-ID</code>" in new
    assert stays not in new
    assert "tgram://" not in stored
    assert stored.count(stays) == 2


def test_an_admin_sends_a_test_and_keeps_the_secrets(admin: Client) -> None:
    channel = make_channel(f"ntfys://{CANARY}")
    action = {"action": "send_test", "_selected_action": [channel.pk]}
    admin.post(reverse("admin:alerts_alertchannel_changelist"), action)
    change = {
        "name": "Other",
        "kind": "apprise",
        "language": "en",
        "enabled": "on",
        "new_url": "",
        "new_signing_key": "",
    }
    admin.post(reverse("admin:alerts_alertchannel_change", args=[channel.pk]), change)

    channel = AlertChannel.objects.get()
    assert (channel.name, channel.url.reveal()) == ("Other", f"ntfys://{CANARY}")
    assert Notice.objects.get().kind == "test"

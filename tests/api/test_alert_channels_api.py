"""Channels over the API: admins make and test them, nobody reads an address or a key back."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.alerts.channels import write_test
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice, NoticeKind
from facho.hosts.models import Olt, OltGroup

pytestmark = pytest.mark.django_db

CHANNELS = "/api/v1/alert-channels/"
ENGLISH = {"accept-language": "en"}
KEY = "0123456789abcdef"
HOOK = {"name": "NOC", "kind": "webhook", "url": "https://hook.example.net/secret-path", "signing_key": KEY}


def make(admin: APIClient, **changes: Any) -> Any:
    answer = admin.post(CHANNELS, {**HOOK, **changes}, format="json", headers=ENGLISH)
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_a_channel_shows_where_it_leads_and_no_secret(admin: APIClient) -> None:
    made = make(admin)

    assert (made["address"], made["enabled"]) == ("https://hook.example.net/…", True)
    answers = [admin.get(CHANNELS), admin.get(f"{CHANNELS}{made['id']}/")]
    assert not [
        answer for answer in answers if "secret-path" in answer.content.decode() or KEY in answer.content.decode()
    ]
    stored = AlertChannel.objects.get()
    assert (stored.url.reveal(), stored.signing_key.reveal()) == (HOOK["url"], KEY)


def test_a_change_keeps_the_secrets_that_it_does_not_name(admin: APIClient) -> None:
    made = make(admin)

    answer = admin.patch(f"{CHANNELS}{made['id']}/", {"enabled": False, "url": ""}, format="json")

    assert (answer.status_code, answer.json()["enabled"]) == (200, False)
    stored = AlertChannel.objects.get()
    assert (stored.url.reveal(), stored.signing_key.reveal(), stored.enabled) == (HOOK["url"], KEY, False)


def test_a_channel_of_another_kind_needs_an_address_of_that_kind(admin: APIClient) -> None:
    made = make(admin)

    refused = admin.patch(f"{CHANNELS}{made['id']}/", {"kind": "apprise"}, format="json")
    taken = admin.patch(f"{CHANNELS}{made['id']}/", {"kind": "apprise", "url": "ntfys://topic-9"}, format="json")

    assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (400, ["url"])
    assert (taken.status_code, taken.json()["address"]) == (200, "ntfys://ntfy.sh/…")
    assert not AlertChannel.objects.get().signing_key


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"kind": "apprise", "url": "file:///etc/passwd"}, "url", "An address begins with one of"),
        ({"kind": "apprise", "url": "jsons://hook.example.net/"}, "url", "kind webhook"),
        ({"url": "ftp://hook.example.net/"}, "url", "https://HOST/PATH"),
        ({"url": ""}, "url", "https://HOST/PATH"),
        ({"signing_key": "short"}, "signing_key", "at least 16 characters"),
        ({"language": "xx"}, "language", "not a valid choice"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(
    admin: APIClient, changes: dict[str, str], field: str, sentence: str
) -> None:
    answer = admin.post(CHANNELS, {**HOOK, **changes}, format="json", headers=ENGLISH)

    [error] = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (400, field)
    assert sentence in error["detail"]
    assert not AlertChannel.objects.exists()


def test_a_test_is_written_and_seen_in_the_log(admin: APIClient, viewer: APIClient) -> None:
    made = make(admin, language="en")

    answer = admin.post(f"{CHANNELS}{made['id']}/test/")

    assert (answer.status_code, answer.json()["kind"], answer.json()["state"]) == (202, "test", "waiting")
    log = viewer.get(f"{CHANNELS}{made['id']}/notices/").json()
    assert [(row["title"], row["tries"]) for row in log["results"]] == [("Facho: Test", 0)]
    assert viewer.get(f"{CHANNELS}{made['id']}/notices/?state=sent").json()["count"] == 0


def test_a_disabled_channel_is_not_tested(admin: APIClient) -> None:
    made = make(admin, enabled=False)

    assert admin.post(f"{CHANNELS}{made['id']}/test/").status_code == 409
    assert not Notice.objects.exists()


def test_only_admins_write(admin: APIClient, operator: APIClient, viewer: APIClient, anonymous: APIClient) -> None:
    one = f"{CHANNELS}{make(admin)['id']}/"

    for client, status in ((operator, 403), (viewer, 403), (anonymous, 401)):
        assert client.post(CHANNELS, HOOK, format="json").status_code == status
        assert client.patch(one, {"enabled": False}, format="json").status_code == status
        assert client.post(f"{one}test/").status_code == status
        assert client.delete(one).status_code == status
    assert (viewer.get(one).status_code, anonymous.get(f"{one}notices/").status_code) == (200, 401)


@pytest.mark.parametrize(
    "url", ["https://evil.example/x", "https://hooks.example.net:8443/x", "http://hooks.example.net/x"]
)
def test_a_stored_signing_key_signs_nothing_for_another_server(admin: APIClient, url: str) -> None:
    """What it receives could be passed on to the old server as ours."""
    one = f"{CHANNELS}{make(admin)['id']}/"

    refused = admin.patch(one, {"url": url}, format="json", headers=ENGLISH)
    changed = admin.patch(one, {"url": url, "signing_key": "another key of our own"}, format="json")

    assert (refused.status_code, changed.status_code) == (400, 200)
    assert "the stored one is not used for another server" in refused.content.decode()
    assert AlertChannel.objects.get().signing_key.reveal() == "another key of our own"


def test_who_did_what_is_written_down_without_secrets(admin: APIClient) -> None:
    one = f"{CHANNELS}{make(admin)['id']}/"
    admin.patch(one, {"url": f"{HOOK['url']}-other-secret"}, format="json")
    admin.post(f"{one}test/")

    assert admin.delete(one).status_code == 204

    entries = list(LogEntry.objects.order_by("id").values_list("action_flag", "object_repr", "change_message"))
    assert [flag for flag, _name, _message in entries] == [1, 2, 2, 3]
    assert "secret" not in str(entries)
    assert entries[1][2] == "url"


def test_a_message_about_an_olt_out_of_scope_is_not_shown(admin: APIClient) -> None:
    channel = AlertChannel.objects.get(id=make(admin)["id"])
    own, other = make_olt("Own"), make_olt("Other")
    group = OltGroup.objects.create(name="North")
    Olt.objects.filter(id=own.id).update(group=group)
    for olt in (own, other):
        _write(channel, olt)
    write_test(channel, now=timezone.now())
    client = _limited_to(group)

    log = client.get(f"{CHANNELS}{channel.id}/notices/").json()

    assert [row["kind"] for row in log["results"]] == ["test", "opened"]
    assert log["results"][1]["title"] == "Own is silent"


@pytest.mark.parametrize("deleted", [AlertRule, Olt])
def test_a_message_does_not_show_an_olt_out_of_scope_when_its_alert_is_gone(
    admin: APIClient, deleted: type[Model]
) -> None:
    channel, group = AlertChannel.objects.get(id=make(admin)["id"]), OltGroup.objects.create(name="North")
    _write(channel, make_olt("Other"))
    address = f"{CHANNELS}{channel.id}/notices/"

    deleted._default_manager.all().delete()

    assert _limited_to(group).get(address).json()["results"] == []
    assert [row["title"] for row in admin.get(address).json()["results"]] == ["Other is silent"]


def _limited_to(group: OltGroup) -> APIClient:
    user = make_user(Role.VIEWER)
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(group)
    client = APIClient()
    client.force_login(user)
    return client


def _write(channel: AlertChannel, olt: Olt) -> None:
    now = timezone.now()
    rule, _ = AlertRule.objects.get_or_create(name="Silent", kind="olt_unreachable")
    alert = Alert.objects.create(rule=rule, subject=f"olt {olt.id}", olt=olt, severity="critical", began_at=now)
    notice = Notice.objects.create(
        key=olt.name,
        channel=channel,
        kind=NoticeKind.OPENED,
        severity="critical",
        title=f"{olt.name} is silent",
        body="",
        created_at=now,
        next_try_at=now,
    )
    notice.alerts.add(alert)


def test_the_list_costs_the_same_however_long_it_is(admin: APIClient, django_assert_max_num_queries: Any) -> None:
    for number in range(3):
        make(admin, name=f"NOC {number}")

    with django_assert_max_num_queries(6):
        assert admin.get(CHANNELS).json()["count"] == 3


def test_what_is_shown_of_a_very_long_address_fits(admin: APIClient) -> None:
    made = make(admin, url=f"https://{'a' * 1_500}.example.net/")

    assert len(made["address"]) == 300

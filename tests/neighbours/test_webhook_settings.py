"""Webhooks by form and over the API: made, tested, changed and sent again; no address and no key comes back."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from alerts.outbox_rows import KEY, StillClock
from alerts.sinks import HttpSink, http_sink
from api.rows import make_user
from facho.accounts.roles import Role
from facho.alerts.sender import read_networks
from facho.hosts.models import OltGroup
from facho.neighbours.models import DeliveryState, Webhook, WebhookDelivery
from facho.neighbours.webhooks import ALL_KINDS
from neighbours.webhook_rows import NOW, Network, Office, bodies, make_webhook, numbers

pytestmark = pytest.mark.django_db
CANARY = "canary_0a9b8c7d6e5f"
API = "/api/v1/webhooks/"
WISH = {"name": "crm", "url": f"https://crm.example.net/{CANARY}", "signing_key": f"{CANARY}-key", "kinds": ["down"]}


@pytest.fixture(autouse=True)
def _loopback_is_listed(settings: Settings) -> None:
    """Let webhooks reach the servers of the test."""
    settings.FACHO_WEBHOOK_ALLOW = read_networks(["127.0.0.0/8"])


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    with http_sink() as served:
        yield served


@pytest.fixture
def administrator(client: Client) -> Client:
    client.force_login(make_user(Role.ADMIN))
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


@pytest.fixture
def api() -> APIClient:
    client = APIClient(headers={"Accept-Language": "en"})
    client.force_login(make_user(Role.ADMIN))
    return client


def text(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def add(client: Client, **given: Any) -> Any:
    return client.post("/settings/webhooks/add/", {"name": "crm", "kinds": ["down", "outage_began"], **given})


@pytest.mark.django_db(transaction=True)
def test_a_webhook_is_saved_and_its_test_arrives(administrator: Client, sink: HttpSink) -> None:
    answer = add(administrator, url=f"{sink.url}/{CANARY}", signing_key=KEY)
    assert "Sending…" in text(administrator.get(answer.headers["Location"]))

    Office(StillClock(WebhookDelivery.objects.get().created_at)).send()

    page = text(administrator.get(answer.headers["Location"]))
    assert "It arrived: your program accepted the test." in page
    [webhook] = Webhook.objects.all()
    assert (webhook.kinds, webhook.enabled, webhook.url.reveal()) == (
        ["down", "outage_began"],
        True,
        f"{sink.url}/{CANARY}",
    )
    assert [body["kind"] for body in bodies(sink)] == ["test"]
    for path in ("/settings/webhooks/", f"/settings/webhooks/{webhook.pk}/"):
        assert CANARY not in text(administrator.get(path))
        assert KEY not in text(administrator.get(path))
    assert not [entry for entry in LogEntry.objects.all() if CANARY in entry.change_message]


def test_what_is_wrong_is_said_at_its_input_and_nothing_is_saved(administrator: Client) -> None:
    with http_sink() as gone:
        url = gone.url
    for given, words in (
        ({"url": url, "signing_key": KEY}, "does not answer on port"),
        ({"url": "ftp://example.net", "signing_key": KEY}, "Enter https://HOST/PATH"),
        ({"url": "http://10.1.2.3/", "signing_key": KEY}, "not listed in FACHO_WEBHOOK_ALLOW"),
        ({"url": url, "signing_key": "short"}, "at least 16 characters"),
        ({"url": url, "signing_key": KEY, "kinds": []}, "Choose at least one kind of event."),
    ):
        assert words in text(add(administrator, **given)), words
    assert not Webhook.objects.exists()


def test_a_change_keeps_the_secrets_and_another_server_needs_another_key(administrator: Client, sink: HttpSink) -> None:
    webhook = make_webhook(f"{sink.url}/one")
    page = f"/settings/webhooks/{webhook.pk}/"
    given = {"name": "billing", "kinds": list(ALL_KINDS[:2]), "url": "", "signing_key": ""}

    assert administrator.post(page, given).status_code == 302
    stored = Webhook.objects.get()
    assert (stored.name, stored.kinds, stored.url.reveal(), stored.signing_key.reveal()) == (
        "billing",
        list(ALL_KINDS[:2]),
        f"{sink.url}/one",
        KEY,
    )
    with http_sink() as other:
        assert "is not used for another server" in text(administrator.post(page, {**given, "url": other.url}))


def test_a_webhook_that_fails_is_seen_on_its_page_and_in_the_list(administrator: Client) -> None:
    webhook = make_webhook("https://crm.example.net/")
    since = timezone.now() - timedelta(hours=3)
    Webhook.objects.update(failing_since=since, last_error="Status 503.")
    WebhookDelivery.objects.create(
        webhook=webhook, count=7, tries=9, created_at=since, next_try_at=since + timedelta(days=1)
    )

    listed, page = (text(administrator.get(f"/settings/webhooks/{end}")) for end in ("", f"{webhook.pk}/"))

    assert re.search(r"not accepted</span>.*3 h ago.*Status 503\.", listed)
    assert re.search(r"does not accept what is sent\. Status 503\..*3 h ago.*Next try:", page)
    assert "9 tries" in page


@pytest.mark.django_db(transaction=True)
def test_the_page_sends_again_since_a_time_on_the_clock_of_its_reader(administrator: Client, sink: HttpSink) -> None:
    network, webhook = Network(), make_webhook(sink.url)
    rows = [network.event(at=NOW + timedelta(hours=hour)) for hour in range(3)]
    Office().send()
    sink.received.clear()
    administrator.post("/account/reading/", {"language": "en", "time_zone": "America/Bogota"})
    page = f"/settings/webhooks/{webhook.pk}/"

    assert "Give a time." in text(administrator.post(f"{page}replay/", {"since": "soon"}))
    answer = administrator.post(f"{page}replay/", {"since": (NOW - timedelta(hours=4)).strftime("%Y-%m-%dT%H:%M")})
    assert answer.status_code == 302
    assert re.findall(r"\d+ events? (?:are|is) sent again", text(administrator.get(page))) == [
        "2 events are sent again"
    ]
    Office().send()

    assert numbers(sink) == [row.pk for row in rows[1:]]


def test_a_webhook_is_switched_off_and_on_and_deleted_with_its_log(administrator: Client) -> None:
    webhook = make_webhook("https://crm.example.net/")
    page = f"/settings/webhooks/{webhook.pk}/"
    administrator.post(f"{page}switch/", {"enabled": "no"})
    administrator.post(f"{page}test/")
    assert (Webhook.objects.get().enabled, WebhookDelivery.objects.exists()) == (False, False)
    administrator.post(f"{page}switch/", {"enabled": "yes"})
    administrator.post(f"{page}test/")
    assert WebhookDelivery.objects.get().is_test
    assert "Delete the webhook crm?" in text(administrator.get(f"{page}delete/"))

    administrator.post(f"{page}delete/")

    assert not Webhook.objects.exists()
    assert not WebhookDelivery.objects.exists()
    assert LogEntry.objects.filter(content_type__model="webhook").count() == 4


def test_the_api_makes_changes_tests_and_deletes(api: APIClient) -> None:
    group = OltGroup.objects.create(name="North")
    made = api.post(API, {**WISH, "olt_group_id": group.pk}, format="json")
    assert made.status_code == 201
    address = f"{API}{made.json()['id']}/"
    assert made.json()["address"] == "https://crm.example.net/…"
    changed = api.patch(address, {"kinds": ["up", "down", "up"], "name": "billing", "enabled": True}, format="json")
    assert (changed.status_code, changed.json()["kinds"]) == (200, ["up", "down"])
    tested = api.post(f"{address}test/")
    assert (tested.status_code, tested.json()["is_test"], tested.json()["state"]) == (202, True, "waiting")
    assert api.patch(address, {"enabled": False}, format="json").status_code == 200
    assert api.post(f"{address}test/").status_code == 409

    answers = [api.get(API), api.get(address), api.get(f"{address}deliveries/"), made, changed]
    assert not [each for each in answers if CANARY in each.content.decode()]
    assert api.get(f"{address}deliveries/?state=sent").json()["results"] == []
    assert Webhook.objects.get().signing_key.reveal() == f"{CANARY}-key"
    assert api.delete(address).status_code == 204
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"kinds": []}, "kinds"),
        ({"kinds": ["rain"]}, "kinds"),
        ({"url": "https://user:pass@example.net/"}, "url"),
        ({"signing_key": "short"}, "signing_key"),
        ({"olt_group_id": 99}, "olt_group_id"),
        ({"event_cursor": 0}, "event_cursor"),
    ],
)
def test_the_api_names_what_is_wrong(api: APIClient, given: dict[str, Any], field: str) -> None:
    answer = api.post(API, {**WISH, **given}, format="json")

    assert answer.status_code == 400
    assert [error["field"].partition(".")[0] for error in answer.json()["errors"]] == [field]


def test_a_name_is_taken_once(api: APIClient) -> None:
    assert api.post(API, WISH, format="json").status_code == 201

    again = api.post(API, WISH, format="json")

    assert (again.status_code, [error["field"] for error in again.json()["errors"]]) == (400, ["name"])


@pytest.mark.django_db(transaction=True)
def test_the_api_sends_again(api: APIClient, sink: HttpSink) -> None:
    network, webhook = Network(), make_webhook(sink.url)
    row = network.event()
    Office().send()

    answer = api.post(f"{API}{webhook.pk}/replay/", {"since": NOW.isoformat()}, format="json")

    assert (answer.status_code, answer.json()) == (202, {"events": 1, "events_is_exact": True, "outages": 0})
    Office().send()
    assert numbers(sink) == [row.pk, row.pk]
    assert LogEntry.objects.filter(change_message__contains=NOW.isoformat()).count() == 1


def test_a_group_that_a_webhook_is_limited_to_cannot_be_deleted(api: APIClient) -> None:
    group = OltGroup.objects.create(name="North")
    make_webhook("https://crm.example.net/", group=group)

    answer = api.post("/settings/groups/", {"delete": group.pk})

    assert answer.status_code in (200, 302)
    assert OltGroup.objects.filter(pk=group.pk).exists()


def test_pages_ask_few_questions_however_many_events_wait(
    administrator: Client, django_assert_max_num_queries: Any
) -> None:
    network = Network()
    webhook = make_webhook("https://crm.example.net/")
    network.events(50)
    for number in range(20):
        WebhookDelivery.objects.create(webhook=webhook, count=number, state=DeliveryState.SENT, created_at=NOW)
    for number in range(20):
        make_webhook("https://crm.example.net/", name=f"crm {number}")
    administrator.get("/settings/webhooks/")

    with django_assert_max_num_queries(8):
        administrator.get("/settings/webhooks/")
    with django_assert_max_num_queries(13):
        administrator.get(f"/settings/webhooks/{webhook.pk}/")

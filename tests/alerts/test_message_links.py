"""What a message gets when it is sent: links, a signed link that acknowledges once, and the affected customers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from pytest_django import Settings

from alerts.alert_world import add_onus, answering_olt, cut, make_channel, make_rule, minute, passes, repair
from alerts.outbox_rows import KEY, LOOPBACK, Post, StillClock, deliver
from alerts.outbox_rows import make_channel as make_real_channel
from alerts.sinks import http_sink, smtp_sink
from facho.accounts.acknowledge import who_acknowledged
from facho.alerts.delivery import Parcel, claim_next
from facho.alerts.links import (
    acknowledge_by_link,
    load_public_address,
    open_link,
    page_path,
    read_public_address,
    save_public_address,
    sign_link,
)
from facho.alerts.models import Alert, AlertChannel, ChannelKind, Notice
from facho.alerts.sender import with_footer
from facho.hosts.models import Olt
from facho.onus.models import Onu, OnuCustomer, Outage

pytestmark = pytest.mark.django_db
ADDRESS = "https://facho.example"


def customers_of(olt: Olt, number: int, *, label: str = "Customer {}") -> list[Onu]:
    onus = add_onus(olt, number)
    OnuCustomer.objects.bulk_create(
        OnuCustomer(onu=onu, label=label.format(onu.onu_id), phone="+57 300 1", address="=1+1") for onu in onus
    )
    return onus


def one_message(channel: AlertChannel, onus: int = 12) -> Notice:
    """Let a cut of some customers be written for a channel."""
    olt = answering_olt()
    make_rule("pon_outage", channel)
    cut(olt, customers_of(olt, onus))
    passes(0)
    return Notice.objects.select_related("channel").get()


def claim(channel: AlertChannel) -> Parcel:
    parcel = claim_next(channel.pk, minute(1))
    assert parcel is not None
    return parcel


def test_a_message_leads_to_its_page_and_names_the_first_customers() -> None:
    save_public_address(ADDRESS)
    channel = make_channel()
    notice = one_message(channel)
    alert = Alert.objects.get()

    parcel = claim(channel)

    names = ", ".join(f"Customer {number}" for number in range(10))
    assert f"Affected: {names} and 2 more" in parcel.message.body
    assert parcel.message.footer.splitlines() == [
        f"Open: {ADDRESS}/alerts/{alert.pk}/",
        f"Acknowledge: {ADDRESS}/acknowledge/{sign_link(notice)}/",
    ]
    assert parcel.message.csv.splitlines()[0] == "customer,phone,address,description,serial,OLT,place"
    assert len(parcel.message.csv.splitlines()) == 13
    # A spreadsheet runs none of it.
    assert "Customer 0,'+57 300 1,'=1+1," in parcel.message.csv


def test_a_spanish_channel_is_written_to_in_spanish() -> None:
    save_public_address(ADDRESS)
    channel = make_channel(language="es")
    one_message(channel, onus=3)

    parcel = claim(channel)

    assert "Afectados: Customer 0, Customer 1, Customer 2" in parcel.message.body
    assert parcel.message.footer.startswith("Abrir: ")
    assert "\nReconocer: " in parcel.message.footer


def test_nothing_of_it_is_stored_where_others_read() -> None:
    save_public_address(ADDRESS)
    channel = make_channel()
    one_message(channel)
    claim(channel)

    stored = str(Notice.objects.values().get())

    assert ADDRESS not in stored
    assert "Customer 1" not in stored


def test_without_an_address_there_are_no_links() -> None:
    channel = make_channel()
    one_message(channel)

    assert claim(channel).message.footer == ""


def test_the_environment_wins_over_what_was_stored(settings: Settings) -> None:
    save_public_address(ADDRESS)
    settings.FACHO_PUBLIC_URL = "https://noc.example/"

    assert load_public_address() == "https://noc.example"


@pytest.mark.parametrize(
    "text", ["", "facho.example", "ftp://a", "https://a:b@c", "https://a/b", "https://a?b", "x" * 9]
)
def test_what_is_not_an_address_of_pages_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        read_public_address(text)


def test_paths_are_those_of_the_pages() -> None:
    channel = make_channel()
    one_message(channel)
    alert = Alert.objects.select_related("rule").get()

    assert page_path([alert]) == reverse("alert", args=[alert.pk])
    assert page_path([alert, alert]) == f"{reverse('alerts')}?kind=pon_outage&olt={alert.olt_id}"
    assert reverse("acknowledge-link", args=["T"]) == "/acknowledge/T/"


def test_the_end_has_a_page_and_nothing_to_acknowledge() -> None:
    save_public_address(ADDRESS)
    channel = make_channel()
    one_message(channel)
    Notice.objects.update(state="sent")
    repair(Outage.objects.get(), at=minute(5))
    passes(5)
    parcel = claim_next(channel.pk, minute(6))

    assert parcel is not None
    assert (parcel.message.kind, parcel.message.csv) == ("resolved", "")
    assert "/alerts/" in parcel.message.footer
    assert "/acknowledge/" not in parcel.message.footer


def test_a_link_acknowledges_what_its_message_is_about_once() -> None:
    notice = one_message(make_channel())
    token = sign_link(notice)
    opened = open_link(token, now=minute(5))
    assert opened is not None

    assert acknowledge_by_link(opened, now=minute(5)) == 1

    alert = Alert.objects.get()
    assert alert.acknowledged_at == minute(5)
    assert who_acknowledged(alert) == "someone through the channel night shift"
    assert "night shift" in LogEntry.objects.get(object_id=str(alert.pk)).change_message
    # Withdrawn by a person, the same link does nothing more.
    Alert.objects.update(acknowledged_at=None, acknowledged_through="")
    assert acknowledge_by_link(opened, now=minute(6)) == 0
    assert Alert.objects.get().acknowledged_at is None


def test_a_link_acknowledges_nothing_of_another_message() -> None:
    channel = make_channel()
    notice = one_message(channel)
    olt = answering_olt()
    cut(olt, add_onus(olt, 5, port=7), port=7, at=minute(1))
    passes(1)

    opened = open_link(sign_link(notice), now=minute(5))
    assert opened is not None
    acknowledge_by_link(opened, now=minute(5))

    assert Alert.objects.filter(acknowledged_at=None).count() == 1


@pytest.mark.parametrize("change", ["", "x", "other", "expired", "key"])
def test_a_link_that_was_changed_is_none(change: str) -> None:
    notice = one_message(make_channel())
    token = sign_link(notice)
    value, _dot, signature = token.partition(".")
    number, version, expires = value.split("-")
    forged = {
        "": "",
        "x": f"{token}x",
        "other": f"{int(number) + 1}-{version}-{expires}.{signature}",
        "expired": f"{number}-{version}-{int(expires) + 9}.{signature}",
        "key": f"{value}.{signature[::-1]}",
    }[change]

    assert open_link(forged, now=minute(1)) is None
    assert open_link(token, now=minute(1)) == notice


def test_a_link_expires_and_can_be_revoked() -> None:
    channel = make_channel()
    notice = one_message(channel)
    token = sign_link(notice)

    assert open_link(token, now=minute(0) + timedelta(days=6)) == notice
    assert open_link(token, now=minute(0) + timedelta(days=7)) is None
    AlertChannel.objects.update(enabled=False)
    assert open_link(token, now=minute(1)) is None
    AlertChannel.objects.update(enabled=True, link_version=1)
    assert open_link(token, now=minute(1)) is None


def test_a_claim_costs_the_same_however_many_customers_there_are(
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    save_public_address(ADDRESS)
    channel = make_channel()
    one_message(channel, onus=40)

    with django_assert_max_num_queries(12):
        claim(channel)


@pytest.mark.django_db(transaction=True)
def test_an_email_carries_the_links_and_the_list() -> None:
    save_public_address(ADDRESS)
    with smtp_sink() as sink:
        channel = make_real_channel(f"mailto://127.0.0.1:{sink.port}?from=facho@isp.example&to=noc@isp.example")
        AlertChannel.objects.update(language="en")
        one_message(channel)

        deliver(Post(StillClock(minute(1)), LOOPBACK))

    [mail] = sink.received
    text, table = mail.iter_parts()
    assert f"Open: {ADDRESS}/alerts/" in text.get_content().replace("=\n", "")
    assert table.get_filename() == "facho.csv"
    assert "Customer 11" in table.get_content()


@pytest.mark.django_db(transaction=True)
def test_a_webhook_gets_the_links_as_fields() -> None:
    save_public_address(ADDRESS)
    with http_sink() as sink:
        make_real_channel(f"{sink.url}/hook", kind=ChannelKind.WEBHOOK)
        one_message(AlertChannel.objects.get())

        deliver(Post(StillClock(minute(1)), LOOPBACK))

    body = sink.received[0].body.decode()
    assert f'"page":"{ADDRESS}/alerts/' in body
    assert f'"acknowledge":"{ADDRESS}/acknowledge/' in body
    assert KEY not in body


def test_links_stay_whole_where_a_text_must_be_cut() -> None:
    text = with_footer("x" * 500, "Open: https://a/1", room=100)

    assert text.endswith("x…\n\nOpen: https://a/1")
    assert len(text) == 100

"""The page behind the signed link of a message: what it shows, one press, and links that are not valid."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt
from facho.alerts.links import sign_link
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice

pytestmark = pytest.mark.django_db


def make_message(*alerts: Alert, **fields: object) -> Notice:
    channel, _ = AlertChannel.objects.get_or_create(name="night shift")
    values = {"kind": "opened", "severity": "critical", "created_at": timezone.now(), **fields}
    notice = Notice.objects.create(key=str(Notice.objects.count()), channel=channel, **values)
    notice.alerts.set(alerts)
    return notice


def make_alert(name: str = "North", **fields: object) -> Alert:
    rule, _ = AlertRule.objects.get_or_create(name="silent", defaults={"kind": "olt_unreachable"})
    now = timezone.now()
    values = {"state": "firing", "severity": "critical", "began_at": now, "fired_at": now, "facts": {"olt": name}}
    return Alert.objects.create(rule=rule, subject=name, olt=make_olt(), **{**values, **fields})


def path(notice: Notice) -> str:
    return f"/acknowledge/{sign_link(notice)}/"


def text(client: Client, address: str) -> str:
    return " ".join(client.get(address, headers={"accept-language": "en"}).content.decode().split())


def test_opening_it_shows_what_would_be_acknowledged_and_changes_nothing(client: Client) -> None:
    alert = make_alert("<b>North")
    notice = make_message(alert)

    page = text(client, path(notice))
    client.head(path(notice))

    assert "Acknowledge 1 alert?" in page
    assert "<bdi>&lt;b&gt;North does not answer</bdi>" in page
    assert "night shift" in page
    assert "/onus/" not in page
    alert.refresh_from_db()
    assert alert.acknowledged_at is None


def test_one_press_acknowledges_through_the_channel_without_a_login(client: Client, viewer: Client) -> None:
    alert, other = make_alert(), make_alert("South")
    notice = make_message(alert)

    answer = client.post(path(notice), headers={"accept-language": "en"}, follow=True)

    assert "Recorded as acknowledged through the channel night shift." in answer.content.decode()
    alert.refresh_from_db()
    other.refresh_from_db()
    assert (alert.acknowledged_through, other.acknowledged_at) == ("night shift", None)
    assert "acknowledged by someone through the channel night shift" in text(viewer, "/alerts/")


def test_pressed_again_it_changes_nothing_even_after_a_withdrawal(client: Client, administrator: Client) -> None:
    alert = make_alert()
    notice = make_message(alert)
    client.post(path(notice))
    administrator.post(f"/alerts/{alert.pk}/acknowledge/", {"take_back": "1"})

    client.post(path(notice))

    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.acknowledged_through) == (None, "")
    assert 'id="acknowledge"' not in text(client, path(notice))


def test_what_is_over_or_acknowledged_offers_no_button(client: Client) -> None:
    now = timezone.now()
    over, seen = make_alert(state="resolved", resolved_at=now), make_alert("South", acknowledged_at=now)

    page = text(client, path(make_message(over, seen)))

    assert "Nothing to acknowledge" in page
    assert 'id="acknowledge"' not in page


@pytest.mark.parametrize("fault", ["forged", "expired", "revoked", "disabled", "end"])
def test_a_link_that_is_not_valid_is_gone_and_says_nothing_about_alerts(client: Client, fault: str) -> None:
    alert = make_alert()
    written = timezone.now() - timedelta(days=8 if fault == "expired" else 0)
    notice = make_message(alert, created_at=written, kind="resolved" if fault == "end" else "opened")
    address = path(notice).replace("/acknowledge/", "/acknowledge/1") if fault == "forged" else path(notice)
    if fault == "revoked":
        AlertChannel.objects.update(link_version=1)
    if fault == "disabled":
        AlertChannel.objects.update(enabled=False)

    shown, pressed = client.get(address), client.post(address)

    assert (shown.status_code, pressed.status_code) == (410, 410)
    assert "North" not in shown.content.decode()
    alert.refresh_from_db()
    assert alert.acknowledged_at is None


def test_a_page_elsewhere_cannot_press_the_button() -> None:
    notice = make_message(make_alert())

    assert Client(enforce_csrf_checks=True).post(path(notice)).status_code == 403


def test_it_is_not_kept_by_browsers_nor_found_by_search(client: Client) -> None:
    answer = client.get(path(make_message(make_alert())))

    assert "no-store" in answer.headers["Cache-Control"]
    assert '<meta name="robots" content="noindex">' in answer.content.decode()

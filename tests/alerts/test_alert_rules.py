"""Rules and alerts in the admin."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from alerts.alert_world import answering_olt, make_channel, make_rule, minute
from facho.accounts.roles import Role, give_role
from facho.alerts.models import Alert, AlertRule

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    user = User.objects.create(username="root")
    give_role(user, Role.ADMIN)
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    return client


def test_the_admin_writes_a_rule_and_is_reported_what_cannot_be_meant(admin: Client) -> None:
    channel = make_channel()
    wish = {
        "name": "Dark",
        "kind": "weak_light",
        "severity": "warning",
        "enabled": "on",
        "threshold": "-26.5",
        "clear_margin": "1",
        "hold_minutes": "5",
        "clear_minutes": "5",
        "channels": [channel.id],
        "sends_resolved": "on",
    }
    address = reverse("admin:alerts_alertrule_add")

    refused = admin.post(address, {**wish, "threshold": "26"})
    assert "Enter a number from -40 to 0." in refused.content.decode()
    assert admin.post(address, wish).status_code == 302

    rule = AlertRule.objects.get()
    assert (rule.threshold, [*rule.channels.all()]) == (-26.5, [channel])
    page = admin.get(reverse("admin:alerts_alertrule_changelist")).content.decode()
    assert "night shift" in page

    stored = reverse("admin:alerts_alertrule_change", args=[rule.id])
    other = admin.post(stored, {**wish, "kind": "power_step", "threshold": "3"})
    assert "The condition of a rule cannot be changed: add another rule." in other.content.decode()
    assert admin.post(stored, {**wish, "threshold": "-27"}).status_code == 302


def test_the_admin_takes_note_of_alerts_and_writes_none(admin: Client) -> None:
    olt = answering_olt()
    alert = Alert.objects.create(
        rule=make_rule("olt_unreachable"),
        subject="olt 1",
        olt=olt,
        severity="critical",
        state="firing",
        facts={"olt": olt.name},
        began_at=minute(0),
        fired_at=minute(0),
    )
    address = reverse("admin:alerts_alert_changelist")

    answer = admin.post(address, {"action": "take_note", "_selected_action": [alert.id]}, follow=True)

    assert "1 alert acknowledged." in answer.content.decode()
    assert f"{olt.name} does not answer" in answer.content.decode()
    alert.refresh_from_db()
    assert alert.acknowledged_by is not None
    assert admin.get(reverse("admin:alerts_alert_change", args=[alert.id])).status_code == 200
    assert admin.get(reverse("admin:alerts_alert_add")).status_code == 403

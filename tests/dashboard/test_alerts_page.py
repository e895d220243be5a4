"""Alerts on pages: what fires, what is over, who was notified, who takes care, and who may see what."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_node, make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
from facho.alerts.store import why_unsent
from facho.hosts.models import Olt, OltGroup
from facho.infrastructure.secrets import Secret

pytestmark = pytest.mark.django_db
CANARY = "canary-4d2e"
NOON = datetime(2030, 5, 6, 12, tzinfo=UTC)


def make_alert(olt: Olt | None, minutes: int = 5, **fields: Any) -> Alert:
    rule, _ = AlertRule.objects.get_or_create(name="silent", defaults={"kind": "olt_unreachable"})
    at = timezone.now() - timedelta(minutes=minutes, seconds=5)
    values = {
        "state": "firing",
        "severity": "critical",
        "began_at": at,
        "fired_at": at,
        "subject": str(Alert.objects.count()),
    }
    return Alert.objects.create(rule=rule, olt=olt, facts={"olt": olt.name if olt else "?"}, **{**values, **fields})


def text(client: Client, path: str = "/alerts/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_what_fires_is_shown_first_and_the_gravest_before_the_rest(viewer: Client) -> None:
    north, south, west = make_olt("North"), make_olt("South"), make_olt("West")
    make_alert(north, severity="warning")
    make_alert(south, minutes=90, is_flapping=True)
    make_alert(west, state="resolved", resolved_at=timezone.now())
    make_alert(make_olt("East"), state="pending", fired_at=None)

    page = text(viewer)

    order = [page.index(f"{name} does not answer") for name in ("South", "North", "West")]
    assert order == sorted(order)
    assert "2 alerts now <span>1 critical</span>" in page
    assert '<span class="tag">flapping</span>' in page
    assert "East does not answer" not in page


def test_the_form_narrows_the_list(viewer: Client) -> None:
    seen, unseen = make_olt("North"), make_olt("South")
    make_alert(seen, acknowledged_at=timezone.now())
    make_alert(unseen, severity="info")

    assert "North does not" not in text(viewer, "/alerts/?show=unseen")
    assert "South does not" not in text(viewer, "/alerts/?severity=critical")
    assert "South does not" not in text(viewer, f"/alerts/?olt={seen.id}")
    assert "does not answer" not in text(viewer, "/alerts/?show=over")
    assert "does not answer" not in text(viewer, "/alerts/?kind=weak_light")


def test_a_page_names_who_was_notified_and_no_address(viewer: Client) -> None:
    alert = make_alert(make_olt("North"))
    channel = AlertChannel.objects.create(name="night shift", url=Secret(f"json://{CANARY}"))
    notice = Notice.objects.create(
        key="1", channel=channel, kind="opened", severity="critical", created_at=timezone.now(), last_error="no route"
    )
    notice.alerts.add(alert)

    page = text(viewer, f"/alerts/{alert.id}/")

    assert "night shift" in page
    assert '<span class="step waiting">waiting</span> <span class="muted">no route</span>' in page
    assert CANARY not in page


def test_a_rule_without_an_enabled_channel_says_so_and_leads_an_admin_to_one(
    viewer: Client, administrator: Client
) -> None:
    alert = make_alert(make_olt("North"))
    alert.rule.channels.add(AlertChannel.objects.create(name="off", enabled=False))

    page, admins = text(viewer, f"/alerts/{alert.id}/"), text(administrator, f"/alerts/{alert.id}/")

    assert "Not sent: its rule has no enabled channel, so it is only shown here." in page
    assert "/settings/channels/" not in page
    assert "/settings/channels/" in admins


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Not sent yet: its rule is quiet until 00:00 (UTC)."),
        ({"told_at": NOON}, "Not sent: when it fired, its rule had none of its current channels."),
        ({"acknowledged_at": NOON}, "Not sent: it was acknowledged before a message was due."),
        ({"state": "resolved", "resolved_at": NOON}, "Not sent: it was over before a message was due."),
    ],
)
def test_with_a_channel_it_is_said_why_nothing_was_sent(fields: dict[str, Any], words: str) -> None:
    alert = make_alert(None, **fields)
    alert.rule.channels.add(AlertChannel.objects.create(name="night shift"))
    alert.rule.quiet_from, alert.rule.quiet_to = time(8), time(0)

    assert why_unsent(alert, NOON).words == words


def test_outside_the_quiet_hours_it_is_about_to_be_sent() -> None:
    alert = make_alert(None)
    alert.rule.channels.add(AlertChannel.objects.create(name="night shift"))

    assert why_unsent(alert, NOON).words == "Not sent yet."


@pytest.mark.parametrize("path", ["/", "/live/"])
def test_admins_hear_on_the_first_page_that_no_rule_has_a_channel(
    path: str, viewer: Client, administrator: Client
) -> None:
    make_olt("North")
    alert = make_alert(None)

    assert "Alerts are only shown here" in text(administrator, path)
    assert "Alerts are only shown here" not in text(viewer, path)
    alert.rule.channels.add(AlertChannel.objects.create(name="night shift"))
    assert "Alerts are only shown here" not in text(administrator, path)


def test_the_last_of_the_first_steps_says_it_too_once_there_is_data(administrator: Client) -> None:
    olt = make_olt("North")
    make_node(olt)
    before = text(administrator, f"/olts/add/{olt.id}/")
    make_onu(olt)

    assert "Alerts are only shown here" not in before
    assert "Alerts are only shown here" in text(administrator, f"/olts/add/{olt.id}/")


def test_an_operator_takes_note_and_a_viewer_may_not(viewer: Client) -> None:
    alert = make_alert(make_olt("North"))
    ana = Client(headers={"accept-language": "en"})
    ana.force_login(make_user(Role.OPERATOR, "ana"))

    assert viewer.post(f"/alerts/{alert.id}/acknowledge/", {"note": "me"}).status_code == 403
    ana.post(f"/alerts/{alert.id}/acknowledge/", {"note": "the crew is under way"})

    assert "the crew is under way" in text(viewer, f"/alerts/{alert.id}/")
    assert "acknowledged by ana" in text(viewer)


def test_who_sees_one_group_sees_its_alerts_alone() -> None:
    group = OltGroup.objects.create(name="North")
    inside, outside, everywhere = make_alert(make_olt("In", group=group)), make_alert(make_olt("Out")), make_alert(None)
    user = make_user(Role.OPERATOR)
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(group)
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)

    page = text(client)

    assert "In does not answer" in page
    assert "Out does not answer" not in page
    assert client.get(f"/alerts/{inside.id}/").status_code == 200
    for hidden in (outside, everywhere):
        assert client.get(f"/alerts/{hidden.id}/").status_code == 404
        assert client.post(f"/alerts/{hidden.id}/acknowledge/").status_code == 404


def test_the_page_costs_the_same_however_many_alerts_there_are(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[None]]
) -> None:
    for number in range(30):
        make_alert(make_olt(), **({"state": "resolved", "resolved_at": timezone.now()} if number % 2 else {}))

    with django_assert_max_num_queries(8):
        text(viewer)


def test_nobody_looks_without_logging_in(client: Client) -> None:
    assert client.get("/alerts/").status_code == 302

"""Alerts and their rules over the API."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from rest_framework.test import APIClient

from api.rows import NOW, make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.alerts.models import Alert, AlertChannel, AlertRule
from facho.hosts.models import Olt, OltGroup
from facho.infrastructure.secrets import Secret

ALERTS, RULES = "/api/v1/alerts/", "/api/v1/alert-rules/"
CANARY = "canary-9b1c"


@pytest.fixture
def admin(db: None) -> APIClient:
    client = APIClient()
    client.force_login(make_user(Role.ADMIN))
    AlertRule.objects.all().delete()
    return client


def make_rule(kind: str = "olt_unreachable", **fields: Any) -> AlertRule:
    return AlertRule.objects.create(**{"name": f"rule {kind}", "kind": kind, **fields})


def make_alert(rule: AlertRule, olt: Olt | None = None, **fields: Any) -> Alert:
    subject = f"{olt.id if olt else ''} {Alert.objects.count()}"
    values = {"state": "firing", "severity": rule.severity, "began_at": NOW, "fired_at": NOW, "subject": subject}
    facts = {"olt": olt.name, "affected": 8} if olt else {}
    return Alert.objects.create(rule=rule, olt=olt, facts=facts, **{**values, **fields})


def rows(client: APIClient, address: str) -> list[dict[str, Any]]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


def test_an_alert_says_what_is_wrong_in_the_language_of_the_request(viewer: APIClient) -> None:
    olt = make_olt("North")
    make_alert(make_rule(severity="critical"), olt)

    (row,) = rows(viewer, ALERTS)

    assert row["sentence"] == "North does not answer; 8 ONUs were online behind it"
    assert (row["kind"], row["severity"], row["state"], row["olt"]) == (
        "olt_unreachable",
        "critical",
        "firing",
        "North",
    )
    assert row["facts"] == {"olt": "North", "affected": 8}


def test_alerts_are_found_by_what_they_are_and_the_pending_are_not(viewer: APIClient) -> None:
    rule, other = make_rule(), make_rule("no_leader")
    firing = make_alert(rule, make_olt("North"))
    over = make_alert(other, state="resolved", resolved_at=NOW)
    make_alert(rule, make_olt(), state="pending", fired_at=None)

    def ids(query: str) -> list[int]:
        return [row["id"] for row in rows(viewer, f"{ALERTS}?{query}")]

    assert ids("") == [over.id, firing.id]
    assert ids("state=firing") == ids("olt=North") == ids("kind=olt_unreachable") == [firing.id]
    assert (
        ids("state=resolved") == ids(f"rule={other.id}") == ids("to=2030-05-06T12:00:01Z&kind=no_leader") == [over.id]
    )
    assert ids("acknowledged=true") == ids("severity=critical") == []
    assert viewer.get(f"{ALERTS}?state=pending").status_code == 400


def test_an_operator_takes_note_and_a_viewer_does_not(operator: APIClient, viewer: APIClient) -> None:
    alert = make_alert(make_rule(), make_olt())
    address = f"{ALERTS}{alert.id}/acknowledge/"

    assert viewer.post(address, {"note": "me"}, format="json").status_code == 403
    assert operator.post(address, {"note": "on it"}, format="json").json()["acknowledgement"] == "on it"

    assert Alert.objects.get().acknowledgement == "on it"


def test_who_sees_one_group_sees_its_alerts_alone(viewer: APIClient) -> None:
    group, rule = OltGroup.objects.create(name="North"), make_rule()
    inside, outside, everywhere = (
        make_alert(rule, make_olt(group=group)),
        make_alert(rule, make_olt()),
        make_alert(make_rule("no_leader")),
    )
    user = make_user(Role.OPERATOR)
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(group)
    client = APIClient()
    client.force_login(user)

    assert [row["id"] for row in rows(client, ALERTS)] == [inside.id]
    for hidden in (outside, everywhere):
        assert client.get(f"{ALERTS}{hidden.id}/").status_code == 404
        assert client.post(f"{ALERTS}{hidden.id}/acknowledge/").status_code == 404


def test_a_list_of_alerts_costs_the_same_however_long_it_is(
    viewer: APIClient, django_assert_max_num_queries: Callable[[int], AbstractContextManager[None]]
) -> None:
    rule = make_rule()
    for _ in range(20):
        make_alert(rule, make_olt())

    with django_assert_max_num_queries(8):
        assert len(rows(viewer, ALERTS)) == 20


def test_an_admin_makes_changes_and_deletes_rules(admin: APIClient) -> None:
    channel = AlertChannel.objects.create(name="night", url=Secret(f"json://{CANARY}"))
    wish = {
        "name": "Dark",
        "kind": "weak_light",
        "threshold": -26.5,
        "quiet_from": "22:00",
        "quiet_to": "07:00",
        "channel_ids": [channel.id],
        "escalate_minutes": 30,
        "escalation_channel_ids": [channel.id],
    }

    made = admin.post(RULES, wish, format="json")
    assert made.status_code == 201, made.content
    address = f"{RULES}{made.json()['id']}/"
    changed = admin.patch(address, {"hold_minutes": 10}, format="json").json()

    assert (changed["threshold"], changed["hold_minutes"], changed["quiet_to"]) == (-26.5, 10, "07:00:00")
    assert changed["channel_ids"] == changed["escalation_channel_ids"] == [channel.id]
    assert CANARY not in made.content.decode()
    assert admin.delete(address).status_code == 204
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"kind": "no_leader", "threshold": 1}, "threshold"),
        ({"kind": "weak_light", "threshold": 12}, "threshold"),
        ({"kind": "power_step", "threshold": 1}, "threshold"),
        ({"kind": "pon_outage", "clear_margin": 1}, "clear_margin"),
        ({"kind": "pon_outage", "quiet_from": "22:00"}, "quiet_to"),
        ({"kind": "pon_outage", "quiet_from": "22:00", "quiet_to": "22:00"}, "quiet_to"),
        ({"kind": "pon_outage", "escalate_minutes": 5}, "escalate_minutes"),
        ({"kind": "rain"}, "kind"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(admin: APIClient, wish: dict[str, Any], field: str) -> None:
    answer = admin.post(RULES, {"name": "odd", **wish}, format="json")

    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_rule_keeps_what_it_looks_for(admin: APIClient) -> None:
    rule = AlertRule.objects.create(name="Cut", kind="pon_outage")

    answer = admin.patch(f"{RULES}{rule.id}/", {"kind": "weak_light"}, format="json")

    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (400, ["kind"])
    assert admin.patch(f"{RULES}{rule.id}/", {"kind": "pon_outage"}, format="json").status_code == 200


def test_a_rule_for_a_group_must_be_about_olts(admin: APIClient) -> None:
    group = OltGroup.objects.create(name="North")

    answer = admin.post(RULES, {"name": "odd", "kind": "no_leader", "olt_group_id": group.id}, format="json")

    assert [error["field"] for error in answer.json()["errors"]] == ["olt_group_id"]


def test_others_read_rules_and_change_none(viewer: APIClient, operator: APIClient, anonymous: APIClient) -> None:
    rule = make_rule()

    assert viewer.get(f"{RULES}{rule.id}/").json()["kind"] == "olt_unreachable"
    assert anonymous.get(RULES).status_code == 401
    for client in (viewer, operator):
        assert client.post(RULES, {"name": "x", "kind": "no_leader"}, format="json").status_code == 403
        assert client.patch(f"{RULES}{rule.id}/", {"enabled": False}, format="json").status_code == 403
        assert client.delete(f"{RULES}{rule.id}/").status_code == 403

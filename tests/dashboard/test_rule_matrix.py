"""The matrix of rules: rows saved one by one, with and without scripts, and wrong input marked in its cell."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from facho.alerts.conditions import CONDITIONS
from facho.alerts.models import Alert, AlertChannel, AlertRule
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db
PART = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _no_rules(db: None) -> None:
    AlertRule.objects.all().delete()


def weak_light(**fields: Any) -> AlertRule:
    return AlertRule.objects.create(**{"name": "Weak light", "kind": "weak_light", "hold_minutes": 15, **fields})


def row(rule: AlertRule, **given: Any) -> dict[str, Any]:
    """What a browser sends of a row."""
    values = {
        "name": rule.name,
        "enabled": "on",
        "threshold": "",
        "hold_minutes": "15",
        "severity": "warning",
        "clear_margin": "0",
        "clear_minutes": "0",
        "sends_resolved": "on",
    }
    return {f"rule{rule.pk}-{name}": value for name, value in {**values, **given}.items() if value is not None}


def save(client: Client, rule: AlertRule, *, part: bool = True, **given: Any) -> str:
    answer = client.post(f"/settings/rules/{rule.pk}/", row(rule, **given), headers=PART if part else {})
    return " ".join(answer.content.decode().split())


def page_of(client: Client) -> str:
    answer = client.get("/settings/rules/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_a_row_is_saved_in_place_with_channels_and_hours(administrator: Client) -> None:
    rule, channel = weak_light(), AlertChannel.objects.create(name="night shift")

    part = save(
        administrator,
        rule,
        threshold="-25.5",
        hold_minutes="30",
        severity="critical",
        channels=[channel.pk],
        quiet_from="22:00",
        quiet_to="06:00",
    )

    assert "Saved" in part
    assert "<html" not in part
    rule.refresh_from_db()
    assert (rule.threshold, rule.hold_minutes, rule.severity) == (-25.5, 30, "critical")
    assert list(rule.channels.all()) == [channel]
    assert f"{rule.quiet_from:%H:%M}–{rule.quiet_to:%H:%M}" == "22:00–06:00"  # noqa: RUF001 a range
    assert "night shift" in LogEntry.objects.get(object_id=str(rule.pk)).change_message


def test_without_scripts_the_same_form_leads_back_to_its_row(administrator: Client) -> None:
    rule = weak_light()

    answer = administrator.post(f"/settings/rules/{rule.pk}/", row(rule, hold_minutes="7"))

    assert answer.headers["Location"] == f"/settings/rules/#rule-{rule.pk}"
    assert AlertRule.objects.get().hold_minutes == 7


@pytest.mark.parametrize(
    ("given", "cell", "words"),
    [
        ({"threshold": "-99"}, "threshold", "Enter a number from -40 to 0."),
        ({"threshold": "a"}, "threshold", "Enter a number."),
        ({"hold_minutes": "-1"}, "hold_minutes", "greater than or equal to 0"),
        ({"hold_minutes": "20000"}, "hold_minutes", "less than or equal to 10080"),
        ({"quiet_from": "22:00"}, "quiet_to", "Quiet hours need both their beginning and their end."),
        ({"quiet_from": "22:00", "quiet_to": "22:00"}, "quiet_to", "Quiet hours must not end when"),
        ({"escalate_minutes": "5"}, "escalate_minutes", "Escalation needs both minutes and channels."),
        ({"severity": "odd"}, "severity", "Select a valid choice."),
        ({"channels": ["99"]}, "channels", "Select a valid choice."),
        ({"name": ""}, "name", "This field is required."),
    ],
)
def test_wrong_input_marks_its_cell_and_changes_nothing(
    administrator: Client, given: dict[str, Any], cell: str, words: str
) -> None:
    rule = weak_light()

    part = save(administrator, rule, **given)
    whole = save(administrator, rule, part=False, **given)

    for answer in (part, whole):
        fault = answer.split(f'id="id_rule{rule.pk}-{cell}-fault"')[1].split("</span>")[0]
        assert words in fault
        assert "Not saved" in answer
    assert "<html" in whole
    # What was typed is still there.
    typed = next(iter(given.values()))
    assert isinstance(typed, list) or not typed or f'value="{typed}"' in whole or cell == "severity"
    assert AlertRule.objects.get().hold_minutes == 15


def test_a_fault_that_was_mended_leaves_its_cell(administrator: Client) -> None:
    rule = weak_light()
    save(administrator, rule, threshold="-99")

    part = save(administrator, rule, threshold="-30")

    assert f'<span id="id_rule{rule.pk}-threshold-fault" class="fault" hx-swap-oob="true"></span>' in part


def test_a_row_offers_what_its_condition_has(administrator: Client) -> None:
    OltGroup.objects.create(name="North")
    light = weak_light()
    leader = AlertRule.objects.create(name="Leader", kind="no_leader")

    page = page_of(administrator)

    assert f'name="rule{light.pk}-threshold"' in page
    assert 'min="-40.0"' in page
    assert 'max="0.0"' in page
    assert "dBm at the ONU" in page
    assert f'name="rule{light.pk}-olt_group"' in page
    assert f'name="rule{leader.pk}-threshold"' not in page
    assert f'name="rule{leader.pk}-olt_group"' not in page


def test_every_condition_fits_the_matrix(administrator: Client) -> None:
    for kind in CONDITIONS:
        AlertRule.objects.create(name=kind, kind=kind)
    AlertChannel.objects.create(name="<b>night")
    AlertChannel.objects.create(name="away", enabled=False)

    page = page_of(administrator)

    assert page.count("<tr id=") == len(CONDITIONS)
    assert "&lt;b&gt;night" in page
    assert "away (disabled)" in page


def test_a_rule_is_added_as_usual_and_deleted_after_one_question(administrator: Client) -> None:
    administrator.post("/settings/rules/add/", {"kind": "weak_light", "name": "North"})
    rule = AlertRule.objects.get()
    Alert.objects.create(rule=rule, subject="1", severity="info", state="firing", began_at=timezone.now())

    question = " ".join(administrator.get(f"/settings/rules/{rule.pk}/delete/").content.decode().split())

    assert (rule.hold_minutes, rule.clear_margin) == (15, 1.0)
    assert "Its 1 alert is deleted too." in question
    assert "1 of them is open" in question
    administrator.post(f"/settings/rules/{rule.pk}/delete/")
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "weak_light", "name": "Weak light"}, "Another rule has this name."),
        ({"kind": "weak_light", "name": ""}, "Give it a name of at most 80 characters."),
        ({"kind": "odd", "name": "kept"}, "Choose what it looks for."),
    ],
)
def test_what_cannot_be_added_says_why_and_keeps_the_name(
    administrator: Client, given: dict[str, str], words: str
) -> None:
    weak_light()

    page = administrator.post("/settings/rules/add/", given).content.decode()

    assert words in page
    assert f'value="{given["name"]}"' in page
    assert AlertRule.objects.count() == 1


def test_the_matrix_costs_the_same_however_many_rules_there_are(
    administrator: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    OltGroup.objects.create(name="North")
    channels = [AlertChannel.objects.create(name=f"c{number}") for number in range(5)]
    for number in range(20):
        weak_light(name=f"r{number}").channels.set(channels)

    with django_assert_max_num_queries(10):
        page_of(administrator)

"""What each condition finds, and of what it says nothing."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from alerts.alert_world import (
    add_onus,
    answering_olt,
    cut,
    drop_light,
    kinds,
    make_channel,
    make_rule,
    messages,
    minute,
    open_subjects,
    passes,
    repair,
    set_light,
)
from facho.accounts.acknowledge import acknowledge
from facho.alerts.condition import Stall
from facho.alerts.engine import on_sent, run_pass
from facho.alerts.models import Alert, Notice
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.executions.models import Execution, ProductProcess
from facho.hosts.models import Olt, WaitingOnu
from facho.infrastructure.standstill import Standstill
from facho.onus.models import Onu, OnuReading, Outage, PonPort
from facho.plant.models import FindingOnu, LightFinding
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.models import Poller
from factories import NOW, make_node

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def violate(olt: Olt, hours_ago: int = 1) -> QuotaViolation:
    start = NOW - hours_ago * HOUR
    return QuotaViolation.objects.create(
        olt=olt, period_start=start, period_end=start + HOUR, severity="HIGH", report={"tasks": []}
    )


def test_weak_light_is_judged_of_who_is_online_and_in_no_outage() -> None:
    make_rule("weak_light")
    olt, silent = answering_olt(), answering_olt()
    Olt.objects.filter(id=silent.id).update(reachability="down")
    weak, away, gone = add_onus(olt, 3, port=1, dbm=-30)
    OnuReading.objects.filter(onu=away).update(run_state="offline")
    Onu.objects.filter(id=gone.id).update(is_present=False, absent_since=NOW)
    out = add_onus(olt, 3, port=2, dbm=-30)
    cut(olt, out, port=2)
    OnuReading.objects.filter(onu=out[0]).update(run_state="online")  # the first one back, while the cut goes on
    add_onus(silent, 1, dbm=-30)
    add_onus(olt, 1, port=3, dbm=-27)

    passes(0)

    assert open_subjects() == [f"onu {weak.id}"]


def test_weak_light_on_a_port_that_nobody_knows_names_none() -> None:
    make_rule("weak_light")
    add_onus(answering_olt(), 1, dbm=-30)
    PonPort.objects.update(is_known=False)

    passes(0)

    assert [alert.facts["place"] for alert in Alert.objects.all()] == ["?"]


@pytest.mark.parametrize("change", ["offline", "silent", "absent"])
def test_weak_light_that_cannot_be_seen_stands_until_the_onu_has_left(change: str) -> None:
    make_rule("weak_light", make_channel())
    olt = answering_olt()
    (onu,) = add_onus(olt, 1, dbm=-30)
    passes(0)

    if change == "offline":
        OnuReading.objects.update(run_state="offline")
    elif change == "silent":
        Olt.objects.update(reachability="down")
    else:
        Onu.objects.update(is_present=False, absent_since=NOW)
    passes(1)

    assert kinds() == (["opened", "resolved"] if change == "absent" else ["opened"])
    assert onu.olt == olt


def test_a_power_step_is_a_drop_against_what_was_usual_within_a_day() -> None:
    make_rule("power_step", make_channel(), threshold=5, clear_margin=2)
    olt = answering_olt()
    twice, small = add_onus(olt, 2, dbm=-18)
    drop_light(twice, -18, -21)
    drop_light(twice, -21, -24.5, at=minute(1))
    drop_light(small, -18, -22)

    passes(1)
    set_light([twice], -22)  # 4 dB below: within the margin
    passes(2)
    set_light([twice], -20)
    passes(3)

    where = f"{olt.name} 0/1/0: ONU {twice.serial}"
    assert [title for _, title in messages()] == [
        f"{where} receives -24.50 dBm, down from -18.00",
        f"Over: {where} receives -22.00 dBm, down from -18.00",
    ]


def test_after_a_day_less_light_is_usual() -> None:
    make_rule("power_step")
    (onu,) = add_onus(answering_olt(), 1)
    drop_light(onu, -18, -24)

    passes(0, 24 * 60 + 1)

    assert Alert.objects.get().state == "resolved"


def lose_in_common(onus: list[Onu], *, hit: list[Onu]) -> None:
    step = LightFinding.objects.create(
        kind="common_step",
        pon_port=onus[0].pon_port,
        since=NOW,
        found_at=NOW,
        judged_at=NOW,
        size_db=-3.14,
        onus_read=len(onus),
    )
    FindingOnu.objects.bulk_create(FindingOnu(finding=step, onu=onu, is_hit=onu in hit) for onu in onus)


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        ({}, {"branch_step": 1, "power_step": 1, "weak_light": 1}),
        ({"threshold": 4.0}, {"power_step": 4, "weak_light": 4}),
        ({"enabled": False}, {"power_step": 4, "weak_light": 4}),
    ],
)
def test_onus_that_a_rule_tells_of_together_are_not_reported_of_one_by_one(
    rule: dict[str, Any], reported: dict[str, int]
) -> None:
    make_rule("branch_step", **rule)
    make_rule("power_step")
    make_rule("weak_light")
    onus = add_onus(answering_olt(), 6)
    for onu in onus[:4]:
        drop_light(onu, -24.2, -27.4)
    # One of the four fell by itself.
    lose_in_common(onus, hit=onus[:3])

    passes(0)

    assert Counter(Alert.objects.values_list("rule__kind", flat=True)) == reported


def decay_in_common(onus: list[Onu], *, rate_db: float, days: int) -> None:
    decay = LightFinding.objects.create(
        kind="branch_decay",
        pon_port=onus[0].pon_port,
        since=NOW - timedelta(days=days),
        found_at=NOW,
        judged_at=NOW,
        size_db=rate_db,
        onus_read=len(onus),
    )
    FindingOnu.objects.bulk_create(FindingOnu(finding=decay, onu=onu, is_hit=True) for onu in onus)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({}, {"branch_decay": 1, "weak_light": 1}),
        ({"threshold": 1.3}, {"weak_light": 4}),
        ({"enabled": False}, {"weak_light": 4}),
    ],
)
def test_onus_of_a_degraded_branch_are_not_told_of_one_by_one(rule: dict[str, Any], told: dict[str, int]) -> None:
    make_rule("branch_decay", **rule)
    make_rule("weak_light")
    onus = add_onus(answering_olt(), 4, dbm=-27.4)
    decay_in_common(onus[:3], rate_db=0.12, days=10)

    passes(0)

    assert Counter(Alert.objects.values_list("rule__kind", flat=True)) == told


def test_a_degraded_branch_is_told_with_what_it_loses_and_lost() -> None:
    make_rule("branch_decay", make_channel())
    olt = answering_olt()
    decay_in_common(add_onus(olt, 3), rate_db=0.12, days=10)

    passes(0)
    LightFinding.objects.update(ended_at=minute(1))
    passes(1)

    text = f"{olt.name} 0/1/0: 3 ONUs of a branch lose 0.12 dB a day, 1.2 dB so far: water in a box, or its feed"
    assert [title for _, title in messages()] == [text, f"Over: {text}"]


def test_light_lost_in_common_is_one_alert_until_it_is_back() -> None:
    make_rule("branch_step", make_channel())
    olt = answering_olt()
    onus = add_onus(olt, 4)
    lose_in_common(onus, hit=onus[1:])
    passes(0)
    LightFinding.objects.update(ended_at=minute(1))
    passes(1)

    text = f"{olt.name} 0/1/0: 3 of 4 ONUs lost 3.1 dB at once: a splitter, or the fibre to it"
    assert [title for _, title in messages()] == [text, f"Over: {text}"]


def test_decaying_light_is_reported_when_it_is_near_enough() -> None:
    make_rule("light_decay", make_channel(), threshold=14)
    olt = answering_olt()
    near, far = add_onus(olt, 2)
    for onu, days in ((near, 10.0), (far, 25.0)):
        LightFinding.objects.create(
            kind="decay",
            pon_port=onu.pon_port,
            onu=onu,
            since=NOW - timedelta(days=9),
            found_at=NOW,
            judged_at=NOW,
            size_db=0.12,
            level_dbm=-25.8,
            days_soonest=days - 2,
            days_likely=days,
            days_latest=days + 3,
        )

    passes(0)

    assert [title for _, title in messages()] == [
        f"{olt.name} 0/1/0: ONU {near.serial} loses 0.12 dB a day and falls below -27 dBm in 8 to 13 days"
    ]


def test_what_ends_because_its_olt_is_disabled_says_so() -> None:
    make_rule("pon_outage", make_channel())
    olt = answering_olt()
    cut(olt, add_onus(olt, 3))
    passes(0)

    Olt.objects.filter(id=olt.id).update(enabled=False)
    passes(1)

    end = Notice.objects.get(kind="resolved")
    assert (kinds(), open_subjects()) == (["opened", "resolved"], [])
    assert end.title.startswith("Not watched any more: ")
    assert "its OLT is disabled" in end.body
    assert end.payload["alerts"][0]["facts"]["ended_by"] == "olt"


def test_what_is_over_says_so_although_another_olt_is_disabled() -> None:
    make_rule("olt_unreachable", make_channel())
    repaired, disabled = answering_olt(), answering_olt()
    outages = [
        Outage.objects.create(olt=olt, scope="olt", cause="olt", started_at=NOW, resumed_at=NOW, affected=0, down=0)
        for olt in (repaired, disabled)
    ]
    passes(0)

    repair(outages[0], at=minute(1))
    Olt.objects.filter(id=disabled.id).update(enabled=False)
    passes(1)

    end = Notice.objects.get(kind="resolved")
    assert end.title == "Over: OLT unreachable: 2 on 2 OLTs"
    assert [line for line in end.body.split("\n") if "its OLT is disabled" in line] == [
        line for line in end.body.split("\n") if disabled.name in line
    ]


def test_a_suspended_node_is_reported_with_its_reason_and_a_silent_olt_by_itself() -> None:
    make_rule("node_suspended", make_channel())
    olt = answering_olt()
    broken, unheard, off = make_node(olt), make_node(olt), make_node(olt, enabled=False)
    for node, reason in ((broken, "auth"), (unheard, "unreachable"), (off, "auth")):
        WorkflowNode.objects.filter(id=node.id).update(suspended_at=NOW, suspend_reason=reason, next_run_at=None)

    passes(0)

    (title,) = [title for _, title in messages()]
    assert title.startswith(f"{olt.name}: node {broken.job.name} is suspended: It refuses our credentials")


def test_a_violation_is_notified_when_its_message_is_sent_and_not_before() -> None:
    make_rule("quota_violated", make_channel())
    olt = answering_olt()
    first = violate(olt)
    passes(5)
    opened = Notice.objects.get()
    assert not QuotaViolation.objects.get().notified

    opened.sent_at = minute(6)
    on_sent(opened)
    second = violate(olt, hours_ago=0)  # the next hour too: no second message
    passes(65)

    first.refresh_from_db()
    assert (first.notified, first.notified_at) == (True, minute(6))
    assert kinds() == ["opened"]
    passes(60 + 71)
    resolved = Notice.objects.get(kind="resolved")
    resolved.sent_at = minute(140)
    on_sent(resolved)
    for violation in (first, second):
        violation.refresh_from_db()
    assert (first.notified_at, second.notified_at) == (minute(6), minute(140))
    assert resolved.title.startswith(f"Over: {olt.name} violated its quotas in 2 hours")


def test_an_acknowledged_violation_is_not_escalated() -> None:
    rule = make_rule("quota_violated", make_channel(), escalate_minutes=5)
    rule.escalation_channels.add(make_channel("boss"))
    violation = violate(answering_olt())
    passes(0)

    acknowledge(violation, User.objects.create(username="ana"), "", now=minute(1))
    passes(10)

    assert kinds() == ["opened"]


def test_a_quota_at_risk_is_one_of_this_hour_that_will_be_missed() -> None:
    make_rule("quota_at_risk", make_channel())
    olt = answering_olt()
    for task_type, will_miss_at, start in (("discovery", NOW, NOW), ("get_a", None, NOW), ("get_b", NOW, NOW - HOUR)):
        QuotaTracker.objects.create(
            olt=olt,
            task_type=task_type,
            period_start=start,
            period_end=start + HOUR,
            quota_required=4,
            quota_completed=1,
            will_miss_at=will_miss_at,
        )

    passes(1)

    assert messages() == [("opened", f"{olt.name} will miss its discovery quota: 1 of 4")]


def test_pollers_are_saturated_by_group_and_recover_below_the_margin() -> None:
    make_rule("pollers_saturated", make_channel(), clear_margin=10)
    Poller.objects.bulk_create([Poller(poller_id=0), Poller(poller_id=1, group="north")])
    node = make_node(answering_olt())
    run = Execution.objects.create(
        olt=node.workflow.olt,
        node=node,
        address="192.0.2.1",
        port=161,
        task_type="get",
        status="RUNNING",
        token=1,
        poller_id=1,
        created_at=NOW,
        started_at=NOW,
    )
    passes(1)
    Execution.objects.filter(id=run.id).update(status="SUCCESS", finished_at=minute(1.7))
    passes(2)  # 70 %
    passes(3)

    assert [title for _, title in messages()] == [
        "The pollers of the group north are busy 100 % of the time",
        "Over: The pollers of the group north are busy 70 % of the time",
    ]


def test_a_node_that_lost_a_slot_by_waiting_is_an_overload() -> None:
    make_rule("queue_overload", make_channel())
    silent = make_node(answering_olt(), next_run_at=minute(-6)).workflow.olt
    Olt.objects.filter(id=silent.id).update(reachability="down")
    passes(0)
    assert messages() == []  # the OLT has an alert of its own

    make_node(answering_olt(), next_run_at=minute(-6))
    passes(1)

    assert messages() == [("opened", "1 nodes are late by more than their interval; 2 wait")]


def test_nobody_leads_when_who_looks_has_seen_so() -> None:
    make_rule("no_leader", make_channel(), hold_minutes=2)

    for number in (1, 3):
        run_pass(minute(number), stall=Stall(minute(0.5), Standstill.NO_LEADER))
    passes(4)

    reported = "Nothing is polled. No scheduler leads"
    assert messages() == [("opened", reported), ("resolved", f"Over: {reported}")]
    assert Alert.objects.get().began_at == minute(0.5)


def test_no_worker_takes_messages_where_none_reports() -> None:
    make_rule("messages_not_taken", make_channel())
    Poller.objects.bulk_create([Poller(poller_id=0), Poller(poller_id=1, group="north")])
    passes(0)
    assert messages() == []  # embedded: there are no such processes

    now = minute(0)
    for owner, groups in (("scheduler", []), ("worker", [""])):
        ProductProcess.objects.create(
            owner=owner, version="1", groups=groups, started_at=now, clock_at=now, seen_at="2999-01-01T00:00:00Z"
        )
    passes(1)

    assert messages() == [("opened", "No worker reports, so nothing is polled (group north)")]


def test_an_onu_waits_until_it_is_authorised() -> None:
    make_rule("onu_waiting", make_channel())
    olt = answering_olt()
    hostile = "AB\x1b[31m\nCD\u202e"
    for number, serial in enumerate((hostile, "HWTC0001")):
        times = {"first_seen_at": NOW, "last_seen_at": NOW}
        WaitingOnu.objects.create(olt=olt, frame=0, slot=1, port=number, serial=serial, **times)

    passes(0)
    WaitingOnu.objects.filter(serial="HWTC0001").delete()
    passes(1)

    titles = [title for _, title in messages()]
    assert f"Over: {olt.name} 0/1/1: ONU HWTC0001 waits for authorisation" in titles
    texts = [text for notice in Notice.objects.all() for text in (notice.title, *notice.body.splitlines())]
    assert all(text.isprintable() for text in texts)
    assert all(
        alert["facts"]["onu"].isprintable() for notice in Notice.objects.all() for alert in notice.payload["alerts"]
    )

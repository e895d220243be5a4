"""The pass over all rules: one message for one trouble, one for its end, and none in between."""

from dataclasses import replace
from datetime import time

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alerts.alert_world import (
    add_onus,
    answering_olt,
    cut,
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
from facho.alerts.conditions import CONDITIONS
from facho.alerts.engine import run_pass
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice, NoticeState
from facho.hosts.models import Olt, OltGroup
from facho.hosts.store import end_pauses, pause, plan_pauses
from facho.onus.models import Outage

pytestmark = pytest.mark.django_db


def test_a_cut_of_sixty_four_onus_is_one_message_and_its_repair_another() -> None:
    channel, olt = make_channel(), answering_olt()
    make_rule("pon_outage", channel, severity="critical")
    make_rule("weak_light", channel)
    onus = add_onus(olt, 64, port=3)
    outage = cut(olt, onus, port=3)
    set_light(onus, -35)  # what some OLTs repeat of ONUs that are away

    passes(0, 1, 2)
    repair(outage, at=minute(30))
    set_light(onus, -20)
    passes(30, 31)

    where = f"{olt.name}, PON port 0/1/3: 64 ONUs out, probably: fibre cut"
    assert messages() == [("opened", where), ("resolved", f"Over: {where}")]
    assert Alert.objects.get().state == "resolved"


def test_weak_light_of_a_whole_port_is_one_message_too() -> None:
    channel, olt = make_channel(), answering_olt()
    make_rule("weak_light", channel, clear_margin=1)
    onus = add_onus(olt, 64, port=3, dbm=-28)

    passes(0)
    set_light(onus, -26.5)  # within the margin: not good enough
    passes(1)
    set_light(onus, -25)
    passes(2, 3)

    title = f"weak light: 64 on {olt.name} 0/1/3"
    assert messages() == [("opened", title), ("resolved", f"Over: {title}")]
    first = Notice.objects.get(kind="opened")
    assert first.alerts.count() == first.payload["count"] == len(first.payload["alerts"]) == 64
    assert first.body.count("\n") < 30


def test_many_ports_at_once_are_a_few_messages() -> None:
    make_rule("weak_light", make_channel())
    olts = [answering_olt() for _ in range(3)]
    for olt in olts:
        for port in range(4):
            add_onus(olt, 2, port=port, dbm=-30)

    passes(0)

    assert sorted(title for _, title in messages()) == sorted(f"weak light: 8 on {olt.name}" for olt in olts)


def test_a_flapping_onu_is_damped() -> None:
    make_rule("weak_light", make_channel())
    (onu,) = add_onus(answering_olt(), 1)

    for number in range(60):
        set_light([onu], -30 if number % 2 else -20)
        passes(number)
    assert kinds() == ["opened", "resolved"] * 3 + ["opened"]
    assert messages()[-1][1].startswith("Flapping: ")
    set_light([onu], -20)
    passes(60, 75, 91)

    assert kinds()[-2:] == ["opened", "resolved"]
    assert open_subjects() == []


def test_quiet_hours_put_off_what_goes_on_and_swallow_what_is_over() -> None:
    olt = answering_olt()
    # NOW is noon of UTC, and so are the hours of the tests.
    make_rule("pon_outage", make_channel(), quiet_from=time(12), quiet_to=time(13))
    short = cut(olt, add_onus(olt, 3, port=1), port=1)
    cut(olt, add_onus(olt, 3, port=2), port=2)

    passes(0, 1)
    repair(short, at=minute(20))
    passes(20, 59)
    assert messages() == []
    assert Alert.objects.filter(state="resolved").count() == 1
    passes(60, 61)

    assert [title for _, title in messages()] == [f"{olt.name}, PON port 0/1/2: 3 ONUs out, probably: fibre cut"]


def test_who_was_reported_before_quiet_hours_hears_of_the_end_after_them() -> None:
    olt = answering_olt()
    rule = make_rule("pon_outage", make_channel())
    outage = cut(olt, add_onus(olt, 3))
    passes(0)
    AlertRule.objects.filter(id=rule.id).update(quiet_from=time(12), quiet_to=time(13))
    repair(outage, at=minute(5))

    passes(5)

    end = Notice.objects.get(kind="resolved")
    assert (end.state, end.next_try_at) == (NoticeState.WAITING, minute(60))


def test_what_nobody_acknowledges_goes_to_the_others() -> None:
    olt, first, later = answering_olt(), make_channel(), make_channel("boss")
    rule = make_rule("pon_outage", first, escalate_minutes=15)
    rule.escalation_channels.add(later)
    unseen, seen = (cut(olt, add_onus(olt, 3, port=port), port=port) for port in (1, 2))
    passes(0)
    alert = Alert.objects.get(facts__outage_id=seen.id)
    acknowledge(alert, User.objects.create(username="ana"), "on it", now=minute(1))

    passes(14, 15, 16)
    for outage in (unseen, seen):
        repair(outage, at=minute(20))
    passes(20)

    (escalated,) = Notice.objects.filter(kind="escalated")
    assert escalated.channel == later
    assert escalated.alerts.get().facts["outage_id"] == unseen.id
    # Each channel hears of the end of what it heard of.
    ends = Notice.objects.filter(kind="resolved")
    assert {(notice.channel, notice.alerts.count()) for notice in ends} == {(first, 2), (later, 1)}


def test_an_acknowledged_outage_troubles_nobody_else() -> None:
    olt, later = answering_olt(), make_channel("boss")
    rule = make_rule("pon_outage", make_channel(), escalate_minutes=5)
    rule.escalation_channels.add(later)
    outage = cut(olt, add_onus(olt, 3))
    passes(0)

    acknowledge(outage, User.objects.create(username="ana"), "", now=minute(1))
    passes(6)

    assert kinds() == ["opened"]


def test_a_rule_without_channels_only_shows() -> None:
    olt = answering_olt()
    make_rule("pon_outage")
    make_rule("pon_outage", make_channel(enabled=False), name="off duty")
    cut(olt, add_onus(olt, 3))

    passes(0)

    assert Alert.objects.filter(state="firing").count() == 2
    assert messages() == []


@pytest.mark.parametrize("is_added", [True, False])
def test_a_channel_that_comes_later_is_reported_of_what_still_goes_on(is_added: bool) -> None:
    olt, channel = answering_olt(), make_channel(enabled=is_added)
    rule = make_rule("pon_outage", *([] if is_added else [channel]))
    over, *_going_on = (cut(olt, add_onus(olt, 3, port=port), port=port) for port in (1, 2, 3))
    passes(0)
    repair(over, at=minute(1))
    passes(1)

    rule.channels.add(channel)
    AlertChannel.objects.update(enabled=True)
    passes(2, 3)

    assert messages() == [("opened", f"PON outage: 2 on {olt.name}")]


def test_an_escalation_waits_for_a_channel_too() -> None:
    olt, boss = answering_olt(), make_channel("boss", enabled=False)
    make_rule("pon_outage", make_channel(), escalate_minutes=5).escalation_channels.add(boss)
    cut(olt, add_onus(olt, 3))
    passes(0, 6)
    assert kinds() == ["opened"]

    AlertChannel.objects.update(enabled=True)
    passes(7, 8)

    assert kinds() == ["opened", "escalated"]


def test_a_channel_that_gave_up_the_beginning_hears_no_end() -> None:
    olt = answering_olt()
    make_rule("pon_outage", make_channel())
    outage = cut(olt, add_onus(olt, 3))
    passes(0)
    Notice.objects.update(state=NoticeState.FAILED)

    repair(outage, at=minute(1))
    passes(1)

    assert kinds() == ["opened"]


def test_a_channel_that_is_disabled_meanwhile_keeps_beginning_and_end_together() -> None:
    olt, channel = answering_olt(), make_channel()
    make_rule("pon_outage", channel)
    outage = cut(olt, add_onus(olt, 3))
    passes(0)
    AlertChannel.objects.update(enabled=False)

    repair(outage, at=minute(1))
    passes(1)
    cut(olt, add_onus(olt, 3, port=1), port=1, at=minute(2))
    passes(2)

    assert kinds() == ["opened", "resolved"]


def test_a_rule_that_is_switched_off_says_so_once() -> None:
    olt = answering_olt()
    rule = make_rule("pon_outage", make_channel(), clear_minutes=10)
    cut(olt, add_onus(olt, 3))
    passes(0)

    AlertRule.objects.filter(id=rule.id).update(enabled=False)
    passes(1, 2)

    assert kinds() == ["opened", "resolved"]
    end = Notice.objects.get(kind="resolved")
    assert end.title.startswith("Not watched any more: ")
    assert "The rule was switched off." in end.body


def test_what_flaps_ends_at_once_with_its_rule() -> None:
    rule = make_rule("weak_light", make_channel())
    (onu,) = add_onus(answering_olt(), 1)
    for number in range(8):
        set_light([onu], -30 if number % 2 else -20)
        passes(number)

    AlertRule.objects.filter(id=rule.id).update(enabled=False)
    passes(8)

    assert messages()[-2][1].startswith("Flapping: ")
    assert kinds()[-2:] == ["opened", "resolved"]


def test_a_rule_of_a_group_looks_at_its_olts_alone() -> None:
    group, inside, outside = OltGroup.objects.create(name="North"), answering_olt(), answering_olt()
    Olt.objects.filter(id=inside.id).update(group=group)
    make_rule("weak_light", olt_group=group)
    for olt in (inside, outside):
        add_onus(olt, 1, dbm=-30)

    passes(0)

    assert [alert.olt for alert in Alert.objects.all()] == [inside]


def test_in_maintenance_nothing_begins_and_nothing_ends() -> None:
    known, quiet = answering_olt(), answering_olt()
    make_rule("pon_outage", make_channel())
    outage = cut(known, add_onus(known, 3))
    passes(0)
    pause(None, minutes=60, note="", now=minute(1))
    repair(outage, at=minute(2))
    cut(quiet, add_onus(quiet, 3), at=minute(2))
    passes(2, 3)
    assert kinds() == ["opened"]

    end_pauses(None, now=minute(4))
    passes(5)

    assert sorted(kinds()) == ["opened", "opened", "resolved"]


def test_a_silenced_olt_is_polled_and_begins_no_alert() -> None:
    silent, loud = answering_olt(), answering_olt()
    make_rule("pon_outage", make_channel())
    plan_pauses([silent], starts_at=minute(0), ends_at=minute(10), note="", keeps_polling=True)
    for olt in (silent, loud):
        cut(olt, add_onus(olt, 3), at=minute(1))

    passes(2)
    assert [alert.olt for alert in Alert.objects.all()] == [loud]

    passes(11)
    assert Alert.objects.count() == 2


def test_two_rules_of_a_kind_judge_by_their_own_thresholds() -> None:
    loose = make_rule("weak_light", name="loose", threshold=-25)
    tight = make_rule("weak_light", name="tight", threshold=-28)
    olt = answering_olt()
    for number, dbm in enumerate((-24, -26, -29)):
        add_onus(olt, 1, port=number, dbm=dbm)

    passes(0)

    assert (loose.alerts.count(), tight.alerts.count()) == (2, 1)


def test_a_condition_that_fails_silences_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    olt = answering_olt()
    make_rule("weak_light", make_channel())
    make_rule("pon_outage", make_channel("day shift"))
    add_onus(olt, 1, port=1, dbm=-30)
    passes(0)
    cut(olt, add_onus(olt, 3))
    monkeypatch.setitem(CONDITIONS, "weak_light", replace(CONDITIONS["weak_light"], find=_break))

    passes(1)

    # And nothing counts as over because nobody could look.
    assert kinds() == ["opened", "opened"]


def _break(_question: object) -> dict[str, object]:
    raise ValueError


def test_a_pass_takes_as_many_queries_for_a_network_as_for_an_olt() -> None:
    for kind in CONDITIONS:
        make_rule(kind, make_channel(f"channel of {kind}"))

    def trouble(count: int) -> None:
        for _ in range(count):
            olt = answering_olt()
            add_onus(olt, 2, port=1, dbm=-30)
            cut(olt, add_onus(olt, 3))

    def queries(at: float) -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            run_pass(minute(at))
        return len(captured)

    trouble(1)
    queries(0)
    trouble(1)
    few = queries(1)
    trouble(8)
    many = queries(2)

    assert many == few <= 60
    assert queries(3) <= 45


def test_an_alert_that_goes_on_is_not_written_again() -> None:
    olt = answering_olt()
    make_rule("pon_outage", make_channel())
    cut(olt, add_onus(olt, 3))
    passes(0)

    with CaptureQueriesContext(connection) as captured:
        passes(1)

    assert not [query for query in captured if query["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]


def test_parts_of_a_lost_network_are_reported_as_one() -> None:
    make_rule("olt_unreachable", make_channel())
    make_rule("network_lost", make_channel("boss"))
    one, *others = (answering_olt() for _ in range(3))

    def silence(olt: Olt | None, scope: str, **fields: object) -> Outage:
        times = {"started_at": minute(0), "resumed_at": minute(0)}
        return Outage.objects.create(olt=olt, scope=scope, cause=scope, affected=0, down=0, **times, **fields)

    first = silence(one, "olt")
    passes(0)
    network = silence(None, "network", affected_olts=3)
    Outage.objects.filter(id=first.id).update(part_of=network)
    for olt in others:
        silence(olt, "olt", part_of=network)
    passes(1)
    Outage.objects.update(ended_at=minute(9))
    passes(9)

    assert [title for _, title in messages()] == [
        f"{one.name} does not answer",
        "The poller lost its network: 3 OLTs do not answer",
        f"Over: {one.name} does not answer",
        "Over: The poller lost its network: 3 OLTs do not answer",
    ]


def test_a_message_is_reported_only_after_it_lasted() -> None:
    olt = answering_olt()
    make_rule("pon_outage", make_channel(), hold_minutes=5)
    outage = cut(olt, add_onus(olt, 3))
    passes(0, 4)
    assert Alert.objects.get().state == "pending"
    repair(outage, at=minute(4))

    passes(5)

    assert not Alert.objects.exists()


def test_a_recurring_outage_gives_its_intervals_and_its_messages_agree_with_it() -> None:
    olt = answering_olt()
    onus = add_onus(olt, 4)
    make_rule("pon_outage", make_channel(), clear_minutes=5)
    outage = cut(olt, onus)
    passes(0)
    repair(outage, at=minute(20))
    passes(20, 26)
    back = [[minute(20).isoformat(), minute(31).isoformat()]]
    Outage.objects.filter(id=outage.id).update(ended_at=None, resumed_at=minute(31), breaks=back, down=4)

    passes(31)

    began, over, again = Notice.objects.order_by("id")
    assert (began.kind, over.kind, again.kind) == ("opened", "resolved", "opened")
    assert "from 2026-03-01 12:00 to 2026-03-01 12:20" in over.body
    assert "out since 2026-03-01 12:00, back 12:20–12:31" in again.title  # noqa: RUF001 a range
    assert "(since 2026-03-01 12:31)" in again.body
    assert Alert.objects.get(state="firing").began_at == minute(31)

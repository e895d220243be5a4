"""Light that ONUs lose together is one finding, whoever watches it; decays are found by their days."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from facho.onus.history import POLLS_PER_BUNDLE, Samples, append
from facho.onus.history_models import HistoryPoll, Metric
from facho.onus.models import Onu, OnuReading
from facho.plant.days import judge_days, load_light_days, load_normal
from facho.plant.models import FindingKinds, FindingOnu, LightFinding, OnuBox
from facho.plant.watch import SETTLED, LightWatcher
from factories import NOW
from history_world import FIVE_MINUTES, compact_all, make_onus, make_ports, poll

pytestmark = pytest.mark.django_db
HOUR = 12


def settled(polls: int) -> datetime:
    return NOW + (polls - 1) * FIVE_MINUTES + SETTLED


def play(onus: list[Onu], polls: range, *, lost: dict[Onu, float] | None = None) -> None:
    """Let polls read steady light, less what some ONUs lost."""
    rng = np.random.default_rng(polls.start)
    for number in polls:
        powers = {onu: -20.0 - (lost or {}).get(onu, 0.0) + rng.normal(0, 0.04) for onu in onus}
        poll(NOW + number * FIVE_MINUTES, powers)


def look(now: datetime, watcher: LightWatcher | None = None) -> LightWatcher:
    watcher = watcher or LightWatcher()
    while watcher.look(now):
        pass
    return watcher


def cut_in_common() -> tuple[list[Onu], list[Onu]]:
    """Eight ONUs of a port; three of them lose 3 dB after an hour. Return all, and these."""
    (port,) = make_ports(1)
    onus = make_onus(port, 8, now=NOW)
    for number, onu in enumerate(onus):
        OnuReading.objects.create(onu=onu, distance_m=1_000 + 10 * number)
    hit = onus[2:5]
    play(onus, range(HOUR))
    play(onus, range(HOUR, HOUR + 3), lost=dict.fromkeys(hit, 3.0))
    return onus, hit


def test_light_lost_in_common_is_one_finding_with_its_onus() -> None:
    onus, hit = cut_in_common()

    look(settled(HOUR + 3))

    finding = LightFinding.objects.get()
    assert (finding.kind, finding.since, finding.onus_read) == (
        FindingKinds.COMMON_STEP, NOW + HOUR * FIVE_MINUTES, len(onus)
    )  # fmt: skip
    assert finding.size_db == pytest.approx(-3.0, abs=0.15)
    assert list(finding.members.filter(is_hit=True).order_by("onu_id").values_list("onu_id", flat=True)) == [
        onu.id for onu in hit
    ]


def test_a_new_process_finds_the_same_and_adds_nothing() -> None:
    cut_in_common()
    look(settled(HOUR + 3))

    look(settled(HOUR + 3))

    assert LightFinding.objects.count() == 1


def test_polls_are_looked_at_once() -> None:
    cut_in_common()
    watcher = look(settled(HOUR + 3))

    assert watcher.look(settled(HOUR + 3)) == 0


def test_polls_that_are_bundled_meanwhile_are_looked_at_once() -> None:
    onus, hit = cut_in_common()
    watcher = look(settled(HOUR + 1))
    play(onus, range(HOUR + 3, POLLS_PER_BUNDLE + 4), lost=dict.fromkeys(hit, 3.0))
    assert HistoryPoll.objects.count() < POLLS_PER_BUNDLE

    look(settled(POLLS_PER_BUNDLE + 4), watcher)

    assert LightFinding.objects.get().since == NOW + HOUR * FIVE_MINUTES


def test_light_that_comes_back_ends_the_finding() -> None:
    onus, hit = cut_in_common()
    watcher = look(settled(HOUR + 3))
    play(onus, range(HOUR + 3, HOUR + 9), lost=dict.fromkeys(hit, 3.0))
    play(onus, range(HOUR + 9, HOUR + 12))

    look(settled(HOUR + 12), watcher)

    assert LightFinding.objects.get().ended_at == NOW + (HOUR + 9) * FIVE_MINUTES


def test_light_that_comes_back_after_some_minutes_ends_the_finding() -> None:
    onus, _hit = cut_in_common()
    watcher = look(settled(HOUR + 3))
    play(onus, range(HOUR + 3, HOUR + 6))

    look(settled(HOUR + 6), watcher)

    assert LightFinding.objects.get().ended_at == NOW + (HOUR + 3) * FIVE_MINUTES


def test_a_loss_in_the_middle_of_a_poll_is_one_finding() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 8, now=NOW)
    play(onus, range(HOUR))
    play(onus, range(HOUR, HOUR + 1), lost={onus[0]: 3.0})
    play(onus, range(HOUR + 1, HOUR + 6), lost=dict.fromkeys(onus[:4], 3.0))

    look(settled(HOUR + 6))

    assert LightFinding.objects.get().members.filter(is_hit=True).count() == 4


def test_zero_which_agents_report_for_no_light_is_neither_a_rise_nor_a_loss_after_it() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 8, now=NOW)
    play(onus, range(HOUR))
    for number in range(HOUR, 2 * HOUR):
        poll(NOW + number * FIVE_MINUTES, dict.fromkeys(onus[:4], 0.0) | dict.fromkeys(onus[4:], -20.0))
    play(onus, range(2 * HOUR, 3 * HOUR))

    look(settled(3 * HOUR))

    assert not LightFinding.objects.exists()


def test_a_day_with_zeros_is_summed_up_by_its_other_readings() -> None:
    (port,) = make_ports(1)
    lit, dark = make_onus(port, 2, now=NOW)
    for hour in range(24):
        zero = hour % 3 != 0
        poll(MIDNIGHT + timedelta(hours=hour), {lit: 0.0 if zero else -24.0, dark: 0.0})
    compact_all(MIDNIGHT + timedelta(days=1, hours=3))

    judge(1)

    assert [[day.median_dbm for day in load_light_days(onu.id, port.id)] for onu in (lit, dark)] == [[-24.0], [None]]


def test_what_was_hit_together_is_a_box() -> None:
    onus, hit = cut_in_common()

    look(settled(HOUR + 3))

    numbers = dict(OnuBox.objects.values_list("onu_id", "number"))
    own = {numbers[onu.id] for onu in hit}
    assert len(numbers) == len(onus)
    assert len(own) == 1
    assert own.isdisjoint({numbers[onu.id] for onu in onus if onu not in hit})


def test_an_onu_that_moved_begins_anew() -> None:
    here, there = make_ports(2)
    onus = make_onus(here, 4, now=NOW)
    play(onus, range(HOUR))
    for onu in onus:
        onu.pon_port = there
        onu.save()
    play(onus, range(HOUR, HOUR + 3), lost=dict.fromkeys(onus, 4.0))

    look(settled(HOUR + 3))

    assert not LightFinding.objects.exists()


MIDNIGHT = NOW.replace(hour=0, minute=0, second=0, microsecond=0)


def days_of(onu_rates: dict[Onu, float], days: int, *, first: int = 0, is_judged: bool = True) -> datetime:
    """Write so many days of light, some polls each, and judge each; return the end of the last."""
    rng = np.random.default_rng(1)
    for day in range(first, first + days):
        for hour in (3, 9, 15, 21):
            powers = {onu: -24.0 - rate * (day - first) + rng.normal(0, 0.03) for onu, rate in onu_rates.items()}
            poll(MIDNIGHT + timedelta(days=day, hours=hour), powers)
        compact_all(MIDNIGHT + timedelta(days=day + 1, hours=3))
        if is_judged:
            judge(day + 1)
    return MIDNIGHT + timedelta(days=first + days)


def judge(day: int) -> None:
    while judge_days(MIDNIGHT + timedelta(days=day, hours=1)):
        pass


def test_a_decay_is_found_with_its_forecast_and_renewed_each_day() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 6, now=NOW)

    days_of(dict.fromkeys(onus, 0.0) | {onus[2]: 0.1}, 20)

    finding = LightFinding.objects.get()
    assert (finding.kind, finding.onu_id, finding.ended_at) == (FindingKinds.DECAY, onus[2].id, None)
    assert finding.size_db == pytest.approx(0.1, rel=0.15)
    assert float(finding.days_soonest or 0) < (27 - 24 - 1.9) / 0.1 < float(finding.days_latest or 0)
    assert finding.found_at < finding.judged_at


def test_a_port_that_was_never_judged_brings_the_days_that_its_history_has() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 6, now=NOW)
    days_of(dict.fromkeys(onus, 0.0) | {onus[2]: 0.1}, 20, is_judged=False)

    judge(20)

    finding = LightFinding.objects.get()
    assert (finding.kind, finding.onu_id) == (FindingKinds.DECAY, onus[2].id)
    assert finding.size_db == pytest.approx(0.1, rel=0.15)


def test_a_decay_that_moved_with_its_onu_stays_one_finding_of_the_new_port() -> None:
    new, old = make_ports(2)
    assert new.id < old.id
    (onu,) = make_onus(old, 1, now=NOW)
    others = make_onus(new, 5, now=NOW)
    days_of({onu: 0.1}, 12)
    onu.pon_port, onu.onu_id = new, 99
    onu.save()

    days_of(dict.fromkeys(others, 0.0) | {onu: 0.1}, 14, first=12)

    before, now = LightFinding.objects.order_by("found_at")
    assert (before.pon_port_id, before.ended_at is None) == (old.id, False)
    assert (now.pon_port_id, now.ended_at) == (new.id, None)
    assert now.judged_at - now.found_at > timedelta(days=2)


@pytest.mark.parametrize("hit", [1, 4])
def test_light_that_came_back_while_nobody_looked_ends_the_finding_with_its_day(hit: int) -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 6, now=NOW)
    days_of(dict.fromkeys(onus, 0.0), 4)
    step = {"pon_port": port, "found_at": NOW, "judged_at": NOW, "size_db": -3.0}
    since = MIDNIGHT + timedelta(days=3, hours=12)
    if hit == 1:
        finding = LightFinding.objects.create(kind=FindingKinds.STEP, onu=onus[0], since=since, **step)
    else:
        finding = LightFinding.objects.create(kind=FindingKinds.COMMON_STEP, since=since, **step)
        FindingOnu.objects.bulk_create(FindingOnu(finding=finding, onu=onu, is_hit=True) for onu in onus[:hit])
    judge(4)
    assert LightFinding.objects.get().ended_at is None

    days_of(dict.fromkeys(onus, 0.0), 1, first=4)

    assert LightFinding.objects.get().ended_at == MIDNIGHT + timedelta(days=5)


def test_light_that_stayed_lost_stays_a_finding_however_many_days_pass() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 6, now=NOW)
    days_of(dict.fromkeys(onus, 0.0), 3)
    since = MIDNIGHT + timedelta(days=2, hours=23)
    step = {"pon_port": port, "found_at": NOW, "judged_at": NOW, "size_db": -3.0, "since": since}
    finding = LightFinding.objects.create(kind=FindingKinds.STEP, onu=onus[0], **step)

    for day in range(3, 6):
        for hour in (3, 9, 15, 21):
            moment = MIDNIGHT + timedelta(days=day, hours=hour)
            poll(moment, {onu: -27.0 if onu == onus[0] else -24.0 for onu in onus})
        judge(day + 1)

    finding.refresh_from_db()
    assert finding.ended_at is None


def test_a_port_is_judged_once_a_day() -> None:
    make_ports(2)

    assert (judge_days(NOW), judge_days(NOW), judge_days(NOW + timedelta(days=1))) == (2, 0, 2)


def test_what_one_onu_loses_alone_is_its_own_finding_until_it_is_back() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 6, now=NOW)
    play(onus, range(HOUR))
    play(onus, range(HOUR, HOUR + 8), lost={onus[1]: 2.0})
    play(onus, range(HOUR + 8, HOUR + 11))

    look(settled(HOUR + 11))
    look(settled(HOUR + 11))

    finding = LightFinding.objects.get()
    assert (finding.kind, finding.onu_id, finding.since) == (
        FindingKinds.STEP, onus[1].id, NOW + HOUR * FIVE_MINUTES
    )  # fmt: skip
    assert finding.ended_at == NOW + (HOUR + 8) * FIVE_MINUTES
    assert finding.confidence > 0.5


def read_both(onus: list[Onu], polls: range, *, lost: float, upstream: float) -> None:
    rng = np.random.default_rng(polls.start)
    for number in polls:
        down, up = (
            [level - (loss if onu in onus[2:5] else 0.0) + rng.normal(0, 0.04) for onu in onus]
            for level, loss in ((-20.0, lost), (-24.0, upstream))
        )
        values = {Metric.RX_POWER: down, Metric.OLT_RX_POWER: up}
        append(NOW + number * FIVE_MINUTES, Samples.of([o.id for o in onus], [o.pon_port_id for o in onus], values))


@pytest.mark.parametrize(("upstream", "hint"), [(3.0, "connector"), (1.5, "bend"), (0.0, "receiver")])
def test_a_loss_is_compared_with_what_the_olt_receives(upstream: float, hint: str) -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 8, now=NOW)
    read_both(onus, range(HOUR), lost=0.0, upstream=0.0)
    read_both(onus, range(HOUR, HOUR + 3), lost=3.0, upstream=upstream)

    look(settled(HOUR + 3))

    finding = LightFinding.objects.get()
    assert (finding.hint, finding.upstream_db) == (hint, pytest.approx(-upstream, abs=0.15))


def test_onus_that_decay_together_are_one_finding_and_one_event_of_the_tree() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 8, now=NOW)
    for onu in onus:
        OnuReading.objects.create(onu=onu, distance_m=1_000)

    days_of(dict.fromkeys(onus, 0.0) | dict.fromkeys(onus[2:6], 0.1), 16)

    finding = LightFinding.objects.get()
    assert (finding.kind, finding.onu_id, finding.ended_at) == (FindingKinds.BRANCH_DECAY, None, None)
    assert {row.onu_id for row in finding.members.filter(is_hit=True)} == {onu.id for onu in onus[2:6]}
    assert finding.size_db == pytest.approx(0.1, rel=0.15)
    assert len({box.number for box in OnuBox.objects.filter(onu__in=onus[2:6])}) == 1


def test_light_that_flaps_for_days_is_found_and_ends_when_it_is_calm() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 3, now=NOW)
    start = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
    rng = np.random.default_rng(4)
    seen = []
    for number in range(4):
        for half_hour in range(48):
            powers = {onu: -20.0 + rng.normal(0, 0.04) for onu in onus}
            powers[onus[1]] -= 3.0 * (number < 3 and half_hour % 6 < 2)
            poll(start + timedelta(days=number, minutes=30 * half_hour), powers)
        judge_days(start + timedelta(days=number + 1, hours=1))
        seen.append(LightFinding.objects.filter(kind=FindingKinds.FLAPPING, ended_at__isnull=True).count())

    assert seen == [0, 1, 1, 0]
    assert LightFinding.objects.get(kind=FindingKinds.FLAPPING).onu_id == onus[1].id


def test_what_is_normal_for_an_onu_is_known_after_a_week() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 3, now=NOW)

    days_of(dict.fromkeys(onus, 0.0), 6)
    assert load_normal(onus[0].id, port.id) is None
    LightFinding.objects.all().delete()

    days_of(dict.fromkeys(onus, 0.0), 9)
    normal = load_normal(onus[0].id, port.id)
    assert normal is not None
    assert normal.light.dbm == pytest.approx(-24.0, abs=0.05)

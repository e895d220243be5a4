"""How well the rules of light find what happened to a simulated plant, against fixed thresholds.

90 days, 200 ports, three seeds that no rule was tuned on: rules and their tests use `TUNING_SEEDS`. A branch failure
counts as found when the same ONUs, by and large, are named with the second poll after it at the latest; a forecast is
compared with the day on which the true light crosses the limit; a tree with the boxes that the port really has.

Run as a program, with a seed and a number of ports, it prints the figures of one seed as JSON.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from json import dumps, loads
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bench.plant import HEALTHY, PlantSettings, PortReadings, simulate_port
from bench.private_database import private_database
from bench.processes import ROOT
from bench.report import Section, Target
from facho.polling.domain.light import (
    COMMON_ONUS,
    DECAY_DAYS,
    FLAPS_A_DAY,
    DayLight,
    LightWatch,
    SharedEvent,
    common_decays,
    common_steps,
    find_decays,
    find_unsteady,
    infer_branches,
    rates_since,
    settle,
    sum_up_day,
    watch_light,
)
from facho.polling.domain.onu_events import POWER_STEP_CDBM, REFERENCE_HOLDS
from facho.simulator.plant import DAY_SECONDS, PlantFault, TrueFault

if TYPE_CHECKING:
    from facho.alerts.condition import Condition

SEEDS = ("north", "south", "east")
TUNING_SEEDS = ("west", "centre")
PORTS = 200
# Ports that are held in memory at a time.
PORTS_AT_ONCE = 20
LIMIT_DBM = -27.0
FORECAST_DAYS = 30
# The share of ONUs that what was found and what is true have in common.
ALIKE = 0.7
TREE_EVENTS = 3
# What a fixed rule looks at: a drop of so many dB between two polls. Its forecast continues the last days.
DUMB_DROP_DB, DUMB_DAYS = 3.0, 7
SETTINGS = PlantSettings()
CALM = PlantSettings(rates=HEALTHY)
# For each so many ports one without a fault, in networks of this size.
HEALTHY_SHARE, HEALTHY_ONUS = 5, 20_000
# A loss that stays below this by its end counts neither as found nor as missed.
LEAST_LOSS_DB = 1.0
# What one ONU loses alone is named from here on; what explains it; and how long a connector has to be loose.
ALONE_DB = 1.0
ALONE_FAULTS = (
    PlantFault.ONU_STEP,
    PlantFault.BAD_CONNECTOR,
    PlantFault.SWAPPED_ONU,
    PlantFault.AGEING,
    PlantFault.WATER,
)
LOOSE_DAYS, FLAPPING_DAYS = 4, 2
DECAY_FAULTS = (PlantFault.AGEING, PlantFault.WATER)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A branch failure that a rule named."""

    poll: int
    members: Mask
    size_db: float = 0.0


@dataclass(frozen=True, slots=True)
class PortSteps:
    """What ONUs of a port lost in common, and the poll and the number of each that lost light alone."""

    common: list[Found] = field(default_factory=list)
    alone: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Score:
    """What one seed gave, ready to be added up."""

    ports: int = 0
    onus: int = 0
    failures: int = 0
    found: int = 0
    right: int = 0
    dumb_found: int = 0
    dumb_right: int = 0
    forecast_errors: list[float] = field(default_factory=list)
    dumb_forecast_errors: list[float] = field(default_factory=list)
    # On what the weekly line names by itself; then the ONUs and months that a forecast names, by whether they decay.
    dumb_own_errors: list[float] = field(default_factory=list)
    forecasts_right: int = 0
    forecasts_wrong: int = 0
    dumb_forecasts_right: int = 0
    dumb_forecasts_wrong: int = 0
    inside_range: list[bool] = field(default_factory=list)
    false_alarms: int = 0
    dumb_false_alarms: int = 0
    warned: int = 0
    crossing: int = 0
    tree_scores: list[float] = field(default_factory=list)
    dumb_tree_scores: list[float] = field(default_factory=list)
    watch_cpu_seconds: float = 0.0
    decay_cpu_seconds: float = 0.0
    branches: int = 0
    branches_found: int = 0
    branches_right: int = 0
    branches_named: int = 0
    lasers: int = 0
    lasers_named: int = 0
    lasers_wrong: int = 0
    alone: int = 0
    alone_named: int = 0
    alone_wrong: int = 0
    dumb_alone_named: int = 0
    loose: int = 0
    loose_named: int = 0
    dumb_loose_named: int = 0
    flapping_wrong: int = 0
    unsteady_wrong: int = 0
    healthy_days: float = 0.0
    healthy_alerts: int = 0
    dumb_healthy_alerts: int = 0
    single_healthy_alerts: int = 0

    def add(self, other: "Score") -> None:
        """Add another seed's."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


def score_seed(seed: str, ports: int) -> Score:
    """Play some ports and judge what the rules found."""
    score = Score(ports=ports)
    for first in range(0, ports, PORTS_AT_ONCE):
        numbers = range(first, min(first + PORTS_AT_ONCE, ports))
        _score_ports([simulate_port(f"{seed}/{number}", SETTINGS) for number in numbers], score)
    calm = max(ports // HEALTHY_SHARE, 1)
    for first in range(0, calm, PORTS_AT_ONCE):
        numbers = range(first, min(first + PORTS_AT_ONCE, calm))
        _score_calm([simulate_port(f"{seed}/calm/{number}", CALM) for number in numbers], score)
    return score


def _score_calm(ports: Sequence[PortReadings], score: Score) -> None:
    """Count what the default rules would send of ports with weather and noise, and no fault of the plant."""
    from facho.alerts.conditions.branch_decay import BRANCH_DECAY
    from facho.alerts.conditions.branch_step import BRANCH_STEP
    from facho.alerts.conditions.light_decay import LIGHT_DECAY

    step_db, branch_db, decay_days = (each.threshold.usual for each in (BRANCH_STEP, BRANCH_DECAY, LIGHT_DECAY))
    score.single_healthy_alerts += count_single_alerts(np.concatenate([port.rx_dbm for port in ports]))
    for port, found in zip(ports, watch_ports(ports), strict=True):
        score.healthy_alerts += sum(-each.size_db >= step_db for each in found.common)
        daily = by_day(port.rx_dbm).median_dbm
        alerts: set[tuple[int, int]] = set()
        for day in range(14, CALM.days):
            decays = find_decays(daily[:, max(0, day - DECAY_DAYS + 1) : day + 1])
            alone = decays.is_decay.copy()
            for each in common_decays(decays):
                alone &= ~each.members
                if each.rate_db * (min(day + 1, DECAY_DAYS) - each.since_day) >= branch_db:
                    alerts.add((-1, day // 30))
            _, likely, _ = decays.days_to(LIMIT_DBM)
            alerts |= {(int(onu), day // 30) for onu in np.flatnonzero(alone & (likely <= decay_days))}
        dumb = sum(int(each.members.sum()) for each in dumb_failures(port)) + len(_dumb_alarms(daily, {}))
        score.healthy_alerts += len(alerts)
        score.dumb_healthy_alerts += dumb
        score.healthy_days += len(port.box) * CALM.days / HEALTHY_ONUS


def count_single_alerts(light: NDArray[np.float64]) -> int:
    """Count what the default rules of single ONUs, weak light and power step, would send after the first day."""
    from facho.alerts.conditions.power_step import POWER_STEP
    from facho.alerts.conditions.weak_light import WEAK_LIGHT

    weak_by = WEAK_LIGHT.threshold.usual - light
    stepped_by = dropped_by(light) - POWER_STEP.threshold.usual
    return count_openings(weak_by, WEAK_LIGHT) + count_openings(stepped_by, POWER_STEP)


def count_openings(beyond: NDArray[np.float64], condition: "Condition") -> int:
    """Count alerts by how far each ONU (row) is beyond the limit in each poll, as `alerting.follow` judges it."""
    rule, a_day = condition.default_rule, DAY_SECONDS // SETTINGS.poll_seconds
    hold, clear = (minutes * 60 // SETTINGS.poll_seconds for minutes in (rule.hold_minutes, rule.clear_minutes))
    began, calm = np.full(len(beyond), -1), np.full(len(beyond), -1)
    is_firing, sent = np.zeros(len(beyond), dtype=bool), 0
    for poll, values in enumerate(beyond.T):
        is_wrong = values > np.where((began >= 0) & (calm < 0), -rule.clear_margin, 0.0)
        is_fine = ~np.isnan(values) & ~is_wrong
        began[~is_wrong & ~is_firing] = -1
        began[is_wrong & (began < 0)] = poll
        opens = is_wrong & ~is_firing & (poll - began >= hold)
        sent += int(opens.sum()) * (poll >= a_day)
        is_firing |= opens
        calm[is_wrong] = -1
        calm[is_fine & is_firing & (calm < 0)] = poll
        is_over = is_fine & is_firing & (poll - calm >= clear)
        began[is_over], calm[is_over], is_firing[is_over] = -1, -1, False
    return sent


def dropped_by(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many dB below its level of the last day each ONU is after a drop, as events and the rule judge it."""
    from facho.alerts.conditions.power_step import USUAL

    step, holds, usual_for = POWER_STEP_CDBM / 100 - 1e-6, REFERENCE_HOLDS.total_seconds(), USUAL.total_seconds()
    reference, since = np.full(len(light), np.nan), np.zeros(len(light))
    usual, dropped_at = np.full(len(light), -np.inf), np.full(len(light), -np.inf)
    found = np.empty_like(light)
    for poll, values in enumerate(light.T):
        now = poll * SETTINGS.poll_seconds
        change = values - reference
        is_recent, is_drop = now - dropped_at < usual_for, change <= -step
        usual[is_drop] = np.where(is_recent, np.maximum(usual, reference), reference)[is_drop]
        dropped_at[is_drop] = now
        is_new = ~np.isnan(values) & (np.isnan(reference) | (np.abs(change) >= step) | (now - since >= holds))
        reference[is_new], since[is_new] = values[is_new], now
        # Without a drop it is fine, whatever it receives; without a reading nothing is known.
        found[:, poll] = np.where(is_recent | is_drop | np.isnan(values), usual - values, -np.inf)
    return found


def by_day(values: NDArray[np.float64]) -> DayLight:
    """Sum readings up by day; a column each."""
    days = [sum_up_day(day) for day in np.split(values, SETTINGS.days, axis=1)]
    columns = (np.stack(its, axis=1) for its in zip(*((d.median_dbm, d.noise_db, d.jumps) for d in days), strict=True))
    return DayLight(*columns)


def _score_ports(ports: Sequence[PortReadings], score: Score) -> None:
    began = time.process_time()
    found = watch_ports(ports)
    score.watch_cpu_seconds += time.process_time() - began
    for port, its in zip(ports, found, strict=True):
        score.onus += len(port.box)
        truth = [fault for fault in port.faults if fault.kind is PlantFault.BRANCH_STEP]
        score.failures += len(truth)
        score.found += len(its.common)
        right = count_right(port, truth, its.common)
        score.right += right
        score.false_alarms += len(its.common) - right
        dumb = dumb_failures(port)
        dumb_right = count_right(port, truth, dumb)
        score.dumb_found += len(dumb)
        score.dumb_right += dumb_right
        score.dumb_false_alarms += len(dumb) - dumb_right
        _score_alone(port, its, score)
        _score_trees(port, its.common, score)
        _score_decays(port, score)


def watch_ports(ports: Sequence[PortReadings]) -> list[PortSteps]:
    """Watch many ports poll by poll, as the product does, and return what each lost."""
    values = np.concatenate([port.rx_dbm for port in ports])
    sizes = [len(port.box) for port in ports]
    numbers, ends = np.repeat(np.arange(len(ports)), sizes), np.cumsum(sizes)
    state = LightWatch.new(len(values))
    found = [PortSteps() for _ in ports]
    for poll in range(values.shape[1]):
        state, steps = watch_light(state, values[:, poll])
        alone = steps.size_db <= -ALONE_DB
        for step in common_steps(steps, numbers):
            alone &= ~step.members
            state = settle(state, step, steps)
            if step.size_db < 0:
                members = step.members[ends[step.port] - sizes[step.port] : ends[step.port]]
                found[step.port].common.append(Found(poll, members, step.size_db))
        for row in np.flatnonzero(alone).tolist():
            port = int(numbers[row])
            found[port].alone.append((poll, row - int(ends[port]) + sizes[port]))
    return found


def dumb_failures(port: PortReadings) -> list[Found]:
    """What fixed thresholds say: every poll at which ONUs dropped by 3 dB is one failure of these ONUs."""
    with np.errstate(invalid="ignore"):
        dropped = np.diff(port.rx_dbm, axis=1) <= -DUMB_DROP_DB
    return [Found(int(poll) + 1, dropped[:, poll]) for poll in np.flatnonzero(dropped.any(axis=0))]


def polls_after(port: PortReadings, fault: TrueFault, members: Mask) -> tuple[int, int]:
    """Return the first two polls that read a member after a fault came, which may be the middle of the first one."""
    is_read = (np.isfinite(port.rx_dbm) & (port.at >= fault.since))[members].any(axis=0)
    polls = np.flatnonzero(is_read)[:2].tolist()
    return (polls[0], polls[1]) if len(polls) == len("ab") else (SETTINGS.polls, SETTINGS.polls)


def count_right(port: PortReadings, truth: Sequence[TrueFault], found: Sequence[Found]) -> int:
    """Count failures that were found within two polls, by about the right ONUs; each finding serves once."""
    left, right = list(found), 0
    for fault in truth:
        first, second = polls_after(port, fault, fault.members)
        seen = fault.members & np.isfinite(port.rx_dbm[:, first : second + 1]).any(axis=1)
        for each in left:
            common = (each.members & seen).sum() / max((each.members | seen).sum(), 1)
            if first <= each.poll <= second and common >= ALIKE:
                left.remove(each)
                right += 1
                break
    return right


def _score_alone(port: PortReadings, found: PortSteps, score: Score) -> None:
    """Judge what ONUs lost alone: what explains a loss is a fault of this ONU at that time."""
    own = [fault for fault in port.faults if fault.kind in ALONE_FAULTS]
    for fault in own:
        first, second = polls_after(port, fault, fault.members)
        if fault.kind is PlantFault.ONU_STEP and second < SETTINGS.polls and port.at[0, second] < fault.until:
            score.alone += 1
            score.alone_named += any(first <= poll <= second and fault.members[onu] for poll, onu in found.alone)
            near = port.rx_dbm[fault.members, max(first - 1, 0) : second + 1]
            with np.errstate(invalid="ignore"):
                score.dumb_alone_named += bool((np.diff(near) <= -DUMB_DROP_DB).any())
    for poll, onu in found.alone:
        at = port.at[onu, poll]
        score.alone_wrong += not any(each.members[onu] and each.since <= at <= each.until + DAY_SECONDS for each in own)


def _score_trees(port: PortReadings, found: Sequence[Found], score: Score) -> None:
    events = [(each.poll, _event(each.members, port.rx_dbm[:, each.poll])) for each in found]
    for fault in port.faults:
        first = port.first_poll(fault)
        if fault.kind is PlantFault.CUT and 1 < first < SETTINGS.polls - 1:
            before = np.isfinite(port.rx_dbm[:, first - 2 : first]).any(axis=1)
            hit = before & port.is_dark[:, first + 1] & ~port.is_dark[:, first - 1]
            events.append((first + 1, _event(hit, port.rx_dbm[:, first + 1])))
    events = [(poll, event) for poll, event in events if event.hit.sum() >= COMMON_ONUS]
    events.sort(key=lambda each: each[0])
    if len(events) >= TREE_EVENTS:
        first_ones = [event for _, event in events[:TREE_EVENTS]]
        score.tree_scores.append(rand_index(infer_branches(port.distance_m, first_ones).box, port.box))
        # ONUs within a hundred metres are one box.
        score.dumb_tree_scores.append(rand_index((port.distance_m // 100).astype(np.int64), port.box))


def _event(hit: Mask, values: NDArray[np.float64]) -> SharedEvent:
    return SharedEvent(hit, np.isfinite(values) & ~hit)


def rand_index(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Compare two groupings by the adjusted Rand index: 1 is the same, 0 is by chance."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1)
    pairs = _pairs(table).sum()
    rows, columns = _pairs(table.sum(axis=1)).sum(), _pairs(table.sum(axis=0)).sum()
    by_chance = rows * columns / max(_pairs(np.array(float(len(one)))), 1)
    most = (rows + columns) / 2
    return 1.0 if most == by_chance else float((pairs - by_chance) / (most - by_chance))


def _pairs(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return counts * (counts - 1) / 2


@dataclass(frozen=True, slots=True)
class TrueDecay:
    """The days of a decay, and its true line by day."""

    first: int
    last: int
    rate: float
    level: float

    def days_left(self, day: int) -> float:
        """Days from one until the true light crosses the limit."""
        return (self.level + self.rate * day - LIMIT_DBM) / -self.rate


def _score_decays(port: PortReadings, score: Score) -> None:
    days, upstream = by_day(port.rx_dbm), by_day(port.olt_rx_dbm).median_dbm
    daily = days.median_dbm
    _score_unsteady(port, days, score)
    truth = true_decays(port)
    groups: list[Mask] = []
    weak: set[int] = set()
    warned: set[int] = set()
    false: set[tuple[int, int]] = set()
    right: set[tuple[int, int]] = set()
    for day in range(14, SETTINGS.days):
        began = time.process_time()
        decays = find_decays(daily[:, max(0, day - DECAY_DAYS + 1) : day + 1])
        score.decay_cpu_seconds += time.process_time() - began
        _gather(groups, [each.members for each in common_decays(decays)])
        weak |= weak_lasers(daily, upstream, day)
        soonest, likely, latest = decays.days_to(LIMIT_DBM)
        weekly = dumb_days_left(daily, day)
        for onu in np.flatnonzero(decays.is_decay & (likely <= FORECAST_DAYS)).tolist():
            if not decaying(truth, onu, day):
                false.add((onu, day // 30))
                continue
            right.add((onu, day // 30))
            warned.add(onu)
            if left := true_days_left(truth, onu, day):
                score.forecast_errors.append(abs(likely[onu] - left) / left)
                score.dumb_forecast_errors.append(abs(weekly[onu] - left) / left)
                score.inside_range.append(bool(soonest[onu] <= left <= latest[onu]))
    crossing = {onu for onu, all_its in truth.items() if any(each.days_left(each.last) < 0 for each in all_its)}
    score.crossing += len(crossing)
    score.warned += len(crossing & warned)
    score.false_alarms += len(false)
    score.forecasts_right += len(right)
    score.forecasts_wrong += len(false - right)
    score.dumb_false_alarms += len(_dumb_alarms(daily, truth))
    score_weekly_lines(daily, truth, score)
    _score_branches(port, groups, score)
    lasers = {int(np.flatnonzero(each.members)[0]): each for each in port.faults if each.kind is PlantFault.WEAK_LASER}
    falls = [(each.until - each.since) / DAY_SECONDS * each.size for each in lasers.values()]
    score.lasers += sum(fall >= LEAST_LOSS_DB for fall in falls)
    score.lasers_named += len(weak & lasers.keys())
    score.lasers_wrong += len(weak - lasers.keys())


def decaying(truth: Mapping[int, Sequence[TrueDecay]], onu: int, day: int) -> list[TrueDecay]:
    return [each for each in truth.get(onu, ()) if each.first <= day <= each.last + 2]


def true_days_left(truth: Mapping[int, Sequence[TrueDecay]], onu: int, day: int) -> float:
    """Return the days until an ONU's one decay crosses the limit; 0 where that is no question, or today's."""
    its = decaying(truth, onu, day)
    left = its[0].days_left(day) if len(its) == 1 and day < its[0].last else 0.0
    return left if left >= 1 else 0.0


def score_weekly_lines(daily: NDArray[np.float64], truth: Mapping[int, Sequence[TrueDecay]], score: Score) -> None:
    """Judge the line through a week on every ONU that it names by itself."""
    right: set[tuple[int, int]] = set()
    wrong: set[tuple[int, int]] = set()
    for day in range(14, SETTINGS.days):
        weekly = dumb_days_left(daily, day)
        # What is too weak already is no forecast.
        for onu in np.flatnonzero((weekly > 0) & (weekly <= FORECAST_DAYS)).tolist():
            (right if decaying(truth, onu, day) else wrong).add((onu, day // 30))
            if left := true_days_left(truth, onu, day):
                score.dumb_own_errors.append(abs(weekly[onu] - left) / left)
    score.dumb_forecasts_right += len(right)
    score.dumb_forecasts_wrong += len(wrong - right)


def _score_unsteady(port: PortReadings, days: DayLight, score: Score) -> None:
    """Judge each day which ONUs flap and whose noise grew, as the product does."""
    flaps: set[int] = set()
    noisy: set[int] = set()
    for day in range(14, SETTINGS.days):
        first = max(0, day - DECAY_DAYS + 1)
        unsteady = find_unsteady(days.noise_db[:, first : day + 1], days.jumps[:, first : day + 1])
        flaps |= set(np.flatnonzero(unsteady.flapping_days >= FLAPPING_DAYS).tolist())
        noisy |= set(np.flatnonzero(np.isfinite(unsteady.noise_growth)).tolist())
    loose = {
        int(np.flatnonzero(each.members)[0]): each for each in port.faults if each.kind is PlantFault.BAD_CONNECTOR
    }
    wet = {
        onu for each in port.faults if each.kind is PlantFault.WATER for onu in np.flatnonzero(each.members).tolist()
    }
    clear = {onu for onu, each in loose.items() if each.until - each.since >= LOOSE_DAYS * DAY_SECONDS}
    clear = {onu for onu in clear if loose[onu].since >= 14 * DAY_SECONDS}
    score.loose += len(clear)
    score.loose_named += len(clear & flaps)
    with np.errstate(invalid="ignore"):
        drops = np.diff(port.rx_dbm, axis=1, prepend=np.nan) <= -DUMB_DROP_DB
    a_day = drops.reshape(len(drops), SETTINGS.days, -1).sum(axis=2) >= FLAPS_A_DAY
    score.dumb_loose_named += sum(bool(a_day[onu].sum() >= FLAPPING_DAYS) for onu in clear)
    score.flapping_wrong += len(flaps - loose.keys() - wet)
    score.unsteady_wrong += len(noisy - loose.keys() - wet)


def weak_lasers(daily: NDArray[np.float64], upstream: NDArray[np.float64], day: int) -> set[int]:
    """Return the ONUs that send less while they receive as before, as the product judges them."""
    first = max(0, day - DECAY_DAYS + 1)
    up = find_decays(upstream[:, first : day + 1])
    down, error = rates_since(daily[:, first : day + 1], up.since_day)
    with np.errstate(invalid="ignore"):
        is_own = np.isfinite(down) & (down + 2 * error < 0.3 * up.rate_db)
    return set(np.flatnonzero(up.is_decay & is_own).tolist())


def _gather(groups: list[Mask], found: Sequence[Mask]) -> None:
    """Add what a day found: the same branch as before if it shares half of its ONUs, as the product keeps it."""
    for members in found:
        for number, known in enumerate(groups):
            if (known & members).sum() >= 0.5 * min(known.sum(), members.sum()):
                groups[number] = members if members.sum() >= known.sum() else known
                break
        else:
            groups.append(members)


def _score_branches(port: PortReadings, groups: Sequence[Mask], score: Score) -> None:
    """Water in a box with a loss that can be seen has to be one finding of about its ONUs."""
    wet = [each for each in port.faults if each.kind is PlantFault.WATER]
    clear = [
        each
        for each in wet
        if each.members.sum() >= COMMON_ONUS and (each.until - each.since) / DAY_SECONDS * each.size >= LEAST_LOSS_DB
    ]
    score.branches += len(clear)
    score.branches_found += len(groups)
    right = sum(any(_alike(group, each.members) for each in wet) for group in groups)
    score.branches_right += right
    score.false_alarms += len(groups) - right
    score.branches_named += sum(any(_alike(group, each.members) for group in groups) for each in clear)


def _alike(one: Mask, other: Mask) -> bool:
    return bool((one & other).sum() >= 0.5 * (one | other).sum())


def dumb_days_left(daily: NDArray[np.float64], day: int) -> NDArray[np.float64]:
    """Let the light of each ONU fall on as it did within the last week; a year where it did not."""
    fall = (daily[:, day - DUMB_DAYS] - daily[:, day]) / DUMB_DAYS
    left, is_falling = np.full(len(daily), 365.0), fall > 0
    left[is_falling] = np.maximum(daily[is_falling, day] - LIMIT_DBM, 0.0) / fall[is_falling]
    return np.minimum(left, 365.0)


def _dumb_alarms(daily: NDArray[np.float64], truth: dict[int, list[TrueDecay]]) -> set[tuple[int, int]]:
    """ONUs and months that a limit alone would name although no decay brought them there."""
    with np.errstate(invalid="ignore"):
        weak = np.argwhere(daily < LIMIT_DBM)
    return {(int(onu), int(day) // 30) for onu, day in weak if int(onu) not in truth}


def true_decays(port: PortReadings) -> dict[int, list[TrueDecay]]:
    """Return the decays of each ONU, by the line that its true light had."""
    found: dict[int, list[TrueDecay]] = {}
    true = port.true_rx_dbm.reshape(len(port.box), SETTINGS.days, -1).mean(axis=2)
    for fault in port.faults:
        first, last = int(fault.since // DAY_SECONDS) + 1, int(fault.until // DAY_SECONDS)
        if fault.kind in DECAY_FAULTS and last - first >= 2:
            for onu in np.flatnonzero(fault.members).tolist():
                rate, level = np.polyfit(np.arange(first, last), true[onu, first:last], 1)
                found.setdefault(onu, []).append(TrueDecay(first, last, float(rate), float(level)))
    return found


Figure = str | float


@dataclass(frozen=True, slots=True)
class Judged:
    """What one seed, or all of them, is held to."""

    precision: float
    recall: float
    forecast_error: float
    false_alarms: float
    healthy_alerts: float
    single_healthy_alerts: float
    rand_index: float

    @classmethod
    def of(cls, score: Score) -> "Judged":
        return cls(
            score.right / max(score.found, 1),
            score.right / max(score.failures, 1),
            median(score.forecast_errors) if score.forecast_errors else 1.0,
            score.false_alarms / onu_months(score),
            score.healthy_alerts / max(score.healthy_days, 1e-9),
            score.single_healthy_alerts / max(score.healthy_days, 1e-9),
            float(np.mean(score.tree_scores)) if score.tree_scores else 0.0,
        )


def onu_months(score: Score) -> float:
    """Return how many thousands of ONUs were watched for how many months."""
    return score.onus * SETTINGS.days / 30 / 1000


def describe(scores: Sequence[Score]) -> Section:
    """Show the sums of all seeds with each of them, and hold the worst one against what was promised."""
    score = Score()
    for each in scores:
        score.add(each)
    whole, seeds, months = Judged.of(score), [Judged.of(each) for each in scores], onu_months(score)
    per_day, ports = 1e5 / score.onus / SETTINGS.days, min(each.ports for each in scores)

    def apart(name: str) -> str:
        return ", ".join(f"{getattr(each, name):.3g}" for each in seeds)

    def share(part: float, of: float) -> float:
        return part / max(of, 1e-9)

    rows: list[tuple[str, Figure, Figure, str, Figure]] = [
        ("branch failures", score.failures, "", "", ""),
        ("precision", score.found, whole.precision, apart("precision"), share(score.dumb_right, score.dumb_found)),
        ("recall within two polls", "", whole.recall, apart("recall"), share(score.dumb_right, score.failures)),
        ("median error of forecasts, share of the time left", len(score.forecast_errors), whole.forecast_error,
         apart("forecast_error"), median(score.dumb_forecast_errors) if score.dumb_forecast_errors else ""),
        ("median error of forecasts, each on all ONUs that it names by itself", len(score.dumb_own_errors),
         whole.forecast_error, "", median(score.dumb_own_errors) if score.dumb_own_errors else ""),
        ("ONUs and months that a forecast names, share with a decay", score.forecasts_right + score.forecasts_wrong,
         share(score.forecasts_right, score.forecasts_right + score.forecasts_wrong), "",
         share(score.dumb_forecasts_right, score.dumb_forecasts_right + score.dumb_forecasts_wrong)),
        ("named by a forecast without a decay, per 1,000 ONUs and month", score.dumb_forecasts_wrong,
         score.forecasts_wrong / months, "", score.dumb_forecasts_wrong / months),
        ("forecasts whose range holds the true day", "", float(np.mean(score.inside_range)), "", ""),
        ("ONUs that crossed the limit, share named before", score.crossing, share(score.warned, score.crossing), "", 0),
        ("false alarms of all kinds that notify, per 1,000 ONUs and month", score.false_alarms, whole.false_alarms,
         apart("false_alarms"), score.dumb_false_alarms / months),
        ("adjusted Rand index of trees after three events", len(score.tree_scores), whole.rand_index,
         apart("rand_index"), float(np.mean(score.dumb_tree_scores))),
        ("degraded branches: water in a box, 1 dB and more", score.branches,
         share(score.branches_named, score.branches), "", 0),
        ("of the branches named, right", score.branches_found, share(score.branches_right, score.branches_found), "",
         ""),
        ("ageing lasers, 1 dB and more", score.lasers, share(score.lasers_named, score.lasers), "", 0),
        ("ONUs named as weak senders and none", "", score.lasers_wrong, "", ""),
        ("steps of one ONU, 1 dB and more, named within two polls", score.alone, share(score.alone_named, score.alone),
         "", share(score.dumb_alone_named, score.alone)),
        ("named and none, per 1,000 ONUs and month; they notify no one", score.alone_wrong, score.alone_wrong / months,
         "", ""),
        ("loose connectors of four days and more, named as flapping", score.loose,
         share(score.loose_named, score.loose), "", share(score.dumb_loose_named, score.loose)),
        ("named as flapping or unsteady and none, per 1,000 ONUs and month; they notify no one",
         score.flapping_wrong + score.unsteady_wrong, (score.flapping_wrong + score.unsteady_wrong) / months, "", ""),
        ("alerts a day of a healthy network of 20,000 ONUs", round(score.healthy_days, 1), whole.healthy_alerts,
         apart("healthy_alerts"), share(score.dumb_healthy_alerts, score.healthy_days)),
        ("alerts a day of the same by the rules of single ONUs, weak light and power step", score.single_healthy_alerts,
         share(score.single_healthy_alerts, score.healthy_days), apart("single_healthy_alerts"), ""),
        ("CPU seconds a day for 100,000 ONUs, steps", "", score.watch_cpu_seconds * per_day, "", ""),
        ("CPU seconds a day for 100,000 ONUs, decays", "", score.decay_cpu_seconds * per_day, "", ""),
    ]  # fmt: skip
    return Section(
        f"Light of a simulated plant: {ports} ports of each of {len(scores)} seeds, {SETTINGS.days} days, "
        f"{score.onus:,} ONUs",
        ("What", "Cases", "Rules of light", f"By seed: {', '.join(SEEDS)}", "Fixed thresholds"),
        rows,
        [
            Target("worst seed: 1 / precision of branch failures", share(1, min(j.precision for j in seeds)), 1 / 0.9),
            Target("worst seed: 1 / recall of branch failures", share(1, min(j.recall for j in seeds)), 1 / 0.8),
            Target("worst seed: median error of forecasts", max(j.forecast_error for j in seeds), 0.2),
            Target("worst seed: false alarms per 1,000 ONUs and month", max(j.false_alarms for j in seeds), 1.0),
            Target(
                "worst seed: alerts a day of a healthy network of 20,000 ONUs",
                max(j.healthy_alerts for j in seeds),
                5.0,
            ),
            Target("worst seed: 1 / adjusted Rand index", share(1, min(j.rand_index for j in seeds)), 1 / 0.8),
        ],
    )


def measure_section() -> Section:
    """Measure all seeds, one process each and as many at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return describe(list(pool.map(_measure_apart, SEEDS)))


def _measure_apart(seed: str) -> Score:
    command = [sys.executable, "-m", "bench.light", seed, str(PORTS)]
    return Score(**loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout))


if __name__ == "__main__":
    with private_database():
        print(dumps(asdict(score_seed(sys.argv[1], int(sys.argv[2])))))

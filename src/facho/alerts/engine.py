"""One look at everything that rules watch: finds what is wrong, follows each alert, and writes what is to be told.

Looking takes no lock. Alerts and their messages change in one short transaction; a pass that dies before its end has
changed nothing, and the next one does the same.
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from facho.alerts.conditions.finding import Facts, Finding, Findings, Question
from facho.alerts.conditions.table import CONDITIONS
from facho.alerts.models import Alert, AlertRule, AlertState, Kind
from facho.alerts.notices import Told, write_notices
from facho.alerts.rules import Rule, load_rules
from facho.hosts.models import Olt
from facho.hosts.pauses import is_paused
from facho.onus.bulk import update_values
from facho.polling.domain.alerting import FLAP_WINDOW, Course, Look, Sight, Stage, Step, Telling, follow

logger = logging.getLogger(__name__)

BATCH = 500
_COURSE = ("told_at", "fired_at", "escalated_at", "calm_since", "resolved_at", "is_flapping")
_CHANGING = ("state", "facts", *_COURSE)
# What a row that nobody foresaw can raise: a condition that trips over it must not silence the others.
_ODD_ROWS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# An alert that ended because nobody looks any more says so.
RULE_IS_OFF = {"ended_by": "rule"}
OLT_IS_OFF = {"ended_by": "olt"}


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one pass saw: findings by kind, and which OLTs are paused, disabled, or belong to which group."""

    now: datetime
    findings: Mapping[Kind, Findings]
    paused: frozenset[int]
    disabled: frozenset[int]
    groups: Mapping[int, int | None]

    def sight(self, rule: Rule, finding: Finding | None, alert: Alert | None) -> Sight:
        """Judge a finding, or its absence, by a rule."""
        if not rule.enabled:
            return Sight.FINE
        olt_id = finding.olt_id if finding else alert.olt_id if alert else None
        if olt_id in self.paused or (finding and not finding.is_known):
            return Sight.UNKNOWN
        if finding is None or not self._is_ours(rule, olt_id):
            return Sight.FINE
        if rule.bound is None or finding.value is None:
            return Sight.WRONG
        was_wrong = alert is not None and alert.calm_since is None
        return Sight.WRONG if rule.bound.is_wrong(finding.value, was_wrong=was_wrong) else Sight.FINE

    def why_unwatched(self, rule: Rule, alert: Alert) -> Facts:
        """Return what an alert says at its end if nobody looks any more; nothing where somebody does."""
        if not rule.enabled:
            return RULE_IS_OFF
        return OLT_IS_OFF if alert.olt_id in self.disabled else {}

    def _is_ours(self, rule: Rule, olt_id: int | None) -> bool:
        group = rule.olt_group_id
        return group is None or (olt_id is not None and self.groups.get(olt_id) == group)


def run_pass(
    now: datetime, kinds: Collection[Kind] = frozenset(Kind), *, leaderless_since: datetime | None = None
) -> None:
    """Look at what the rules of these kinds watch, and bring alerts and messages in line with it."""
    rules = [rule for rule in load_rules() if rule.kind in kinds]
    seen = _look(rules, now, leaderless_since)
    _follow([rule for rule in rules if rule.kind in seen.findings or not rule.enabled], seen)


def _look(rules: Sequence[Rule], now: datetime, leaderless_since: datetime | None) -> Sighting:
    kinds = {rule.id: rule.kind for rule in rules}
    open_subjects: defaultdict[Kind, set[str]] = defaultdict(set)
    for rule_id, subject in Alert.objects.filter(resolved_at=None).order_by().values_list("rule_id", "subject"):
        if rule_id in kinds:
            open_subjects[kinds[rule_id]].add(subject)
    findings = {}
    for kind in sorted({rule.kind for rule in rules if rule.enabled}):
        bounds = [rule.bound for rule in rules if rule.kind is kind and rule.enabled and rule.bound]
        found = _find(kind, Question(now, bounds, frozenset(open_subjects[kind]), leaderless_since))
        if found is not None:
            findings[kind] = found
    olts = Olt.objects.order_by()
    paused = frozenset(olts.filter(is_paused("id", now)).values_list("id", flat=True))
    known = list(olts.values_list("id", "group_id", "enabled"))
    disabled = frozenset(olt_id for olt_id, _, is_enabled in known if not is_enabled)
    return Sighting(now, findings, paused, disabled, {olt_id: group_id for olt_id, group_id, _ in known})


def _find(kind: Kind, question: Question) -> Findings | None:
    """Look; None when that fails, which says nothing of what would have been seen."""
    try:
        return CONDITIONS[kind].look(question)
    except _ODD_ROWS:
        logger.exception("alerts.look_failed kind=%s", kind)
        return None


@transaction.atomic
def _follow(rules: Sequence[Rule], seen: Sighting) -> None:
    # Two passes at once, as when the lead passes on, wait for each other here.
    list(AlertRule.objects.select_for_update().filter(id__in=[rule.id for rule in rules]).order_by("id"))
    work = _Work(seen, _load_recent(seen.now))
    known: defaultdict[int, dict[str, Alert]] = defaultdict(dict)
    for alert in Alert.objects.filter(resolved_at=None, rule_id__in=[rule.id for rule in rules]).order_by("id"):
        known[alert.rule_id][alert.subject] = alert
    for rule in rules:
        work.follow_rule(rule, known[rule.id])
    work.save()


def _load_recent(now: datetime) -> Counter[tuple[int, str]]:
    """Count how often each thing fired lately and was over again."""
    since = now - FLAP_WINDOW
    over = Alert.objects.filter(Q(resolved_at__gt=since, fired_at__gt=since)).order_by()
    return Counter(over.values_list("rule_id", "subject"))


class _Work:
    """What a pass is going to write."""

    def __init__(self, seen: Sighting, recent: Mapping[tuple[int, str], int]) -> None:
        self._seen = seen
        self._recent = recent
        self._new: list[Alert] = []
        self._changed: list[Alert] = []
        self._forgotten: list[int] = []
        self._told: list[Told] = []

    def follow_rule(self, rule: Rule, known: Mapping[str, Alert]) -> None:
        """Follow everything that the rule sees, and everything that it saw."""
        findings = self._seen.findings.get(rule.kind, {}) if rule.enabled else {}
        for subject in dict.fromkeys([*findings, *known]):
            self._follow(rule, subject, findings.get(subject), known.get(subject))

    def _follow(self, rule: Rule, subject: str, finding: Finding | None, alert: Alert | None) -> None:
        sight = self._seen.sight(rule, finding, alert)
        if alert is None and sight is not Sight.WRONG:
            return
        look = Look(
            sight,
            self._seen.now,
            since=finding.since if finding else None,
            recent_openings=self._recent.get((rule.id, subject), 0),
            is_acknowledged=bool((alert and alert.acknowledged_at) or (finding and finding.is_acknowledged)),
        )
        step = follow(course_of(alert) if alert else None, look, rule.policy)
        # What was wrong last is what its end is told with.
        wrong = finding if sight is Sight.WRONG else None
        if alert is not None:
            self._keep(rule, alert, wrong, step)
        elif wrong is not None and step.course is not None:
            alert = _new_alert(rule, subject, wrong)
            self._new.append(alert)
            self._write(rule, alert, step.course, step.telling)

    def _keep(self, rule: Rule, alert: Alert, wrong: Finding | None, step: Step) -> None:
        if step.course is None:
            self._forgotten.append(alert.pk)
            return
        facts = wrong.facts if wrong else alert.facts
        if step.course.stage is Stage.RESOLVED:
            facts = {**facts, **self._seen.why_unwatched(rule, alert)}
        if step.course != course_of(alert) or facts != alert.facts:
            alert.facts = facts
            self._changed.append(alert)
            self._write(rule, alert, step.course, step.telling)

    def _write(self, rule: Rule, alert: Alert, course: Course, telling: Telling | None) -> None:
        alert.state, alert.began_at = AlertState(course.stage.value), course.began_at
        for name in _COURSE:
            setattr(alert, name, getattr(course, name))
        if telling:
            self._told.append(Told(rule, alert, telling))

    def save(self) -> None:
        """Write alerts and messages; the caller's transaction makes them one."""
        Alert.objects.filter(id__in=self._forgotten).delete()
        Alert.objects.bulk_create(self._new, batch_size=BATCH)
        update_values(Alert, _CHANGING, [_values(alert) for alert in self._changed])
        write_notices(self._told, self._seen.now)
        for (message, rule_id), count in Counter((told.telling.message, told.rule.id) for told in self._told).items():
            logger.info("alert.%s rule=%s count=%s", message, rule_id, count)


def _new_alert(rule: Rule, subject: str, finding: Finding) -> Alert:
    return Alert(
        rule_id=rule.id,
        subject=subject,
        olt_id=finding.olt_id,
        severity=rule.severity,
        facts=finding.facts,
        place="/".join(finding.place),
    )


def _values(alert: Alert) -> list[object]:
    return [alert.pk, alert.state, json.dumps(alert.facts), *(getattr(alert, name) for name in _COURSE)]


def course_of(alert: Alert) -> Course:
    """Read the course out of a row."""
    values = {name: getattr(alert, name) for name in _COURSE}
    return Course(Stage(alert.state), alert.began_at, **values)

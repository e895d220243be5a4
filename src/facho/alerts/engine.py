"""One pass over everything that rules watch: finds what is wrong, updates each alert and writes the messages.

Finding takes no lock. Alerts and their messages change in one short transaction; a pass that dies before its end has
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

from facho.alerts.condition import Facts, Finding, Findings, Question, Stall
from facho.alerts.conditions import CONDITIONS
from facho.alerts.models import Alert, AlertRule, AlertState
from facho.alerts.notices import ToSend, write_notices
from facho.alerts.store import Rule, load_rules
from facho.hosts.models import Olt
from facho.hosts.pauses import is_silenced
from facho.infrastructure.bulk import update_values
from facho.polling.domain.alerting import FLAP_WINDOW, Course, Look, Sight, Stage, Telling, follow

logger = logging.getLogger(__name__)

BATCH = 500
_COURSE = ("told_at", "fired_at", "escalated_at", "calm_since", "resolved_at", "is_flapping")
_CHANGING = ("state", "facts", *_COURSE)
# What an unforeseen row can raise: a condition that fails on it must not stop the others.
_ODD_ROWS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# Why an alert ended although nothing recovered; its message says so.
RULE_IS_OFF = {"ended_by": "rule"}
OLT_IS_OFF = {"ended_by": "olt"}


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one pass saw: findings by condition, and which OLTs are silenced, disabled, or in which group."""

    now: datetime
    findings: Mapping[str, Findings]
    silenced: frozenset[int]
    disabled: frozenset[int]
    groups: Mapping[int, int | None]

    def sight(self, rule: Rule, finding: Finding | None, alert: Alert | None) -> Sight:
        """Judge a finding, or its absence, by a rule."""
        if not rule.enabled:
            return Sight.FINE
        olt_id = finding.olt_id if finding else alert.olt_id if alert else None
        if olt_id in self.silenced or (finding and not finding.is_known):
            return Sight.UNKNOWN
        group = rule.olt_group_id
        is_in_group = group is None or (olt_id is not None and self.groups.get(olt_id) == group)
        if finding is None or not is_in_group:
            return Sight.FINE
        if rule.bound is None or finding.value is None:
            return Sight.WRONG
        was_wrong = alert is not None and alert.calm_since is None
        return Sight.WRONG if rule.bound.is_wrong(finding.value, was_wrong=was_wrong) else Sight.FINE

    def why_unwatched(self, rule: Rule, alert: Alert) -> Facts:
        """Return why an alert ended if it is not watched any more; nothing if it still is."""
        if not rule.enabled:
            return RULE_IS_OFF
        return OLT_IS_OFF if alert.olt_id in self.disabled else {}


def run_pass(now: datetime, kinds: Collection[str] = CONDITIONS.keys(), *, stall: Stall | None = None) -> None:
    """Look at what the rules of these conditions watch, and bring alerts and messages in line with it."""
    rules = [rule for rule in load_rules() if rule.kind in kinds]
    seen = _look(rules, now, stall)
    _follow([rule for rule in rules if rule.kind in seen.findings or not rule.enabled], seen)


def _look(rules: Sequence[Rule], now: datetime, stall: Stall | None) -> Sighting:
    kinds = {rule.id: rule.kind for rule in rules}
    open_subjects: defaultdict[str, set[str]] = defaultdict(set)
    for rule_id, subject in Alert.objects.filter(resolved_at=None).order_by().values_list("rule_id", "subject"):
        if rule_id in kinds:
            open_subjects[kinds[rule_id]].add(subject)
    findings = {}
    for kind in sorted({rule.kind for rule in rules if rule.enabled}):
        bounds = [rule.bound for rule in rules if rule.kind == kind and rule.enabled and rule.bound]
        try:
            findings[kind] = CONDITIONS[kind].find(Question(now, bounds, frozenset(open_subjects[kind]), stall))
        except _ODD_ROWS:
            # Left out of the findings: neither wrong nor fine.
            logger.exception("alerts.look_failed kind=%s", kind)
    olts = Olt.objects.order_by()
    silenced = frozenset(olts.filter(is_silenced("id", now)).values_list("id", flat=True))
    known = list(olts.values_list("id", "group_id", "enabled"))
    disabled = frozenset(olt_id for olt_id, _, is_enabled in known if not is_enabled)
    return Sighting(now, findings, silenced, disabled, {olt_id: group_id for olt_id, group_id, _ in known})


@transaction.atomic
def _follow(rules: Sequence[Rule], seen: Sighting) -> None:
    # Two passes at once, as when the lead changes, wait for each other here.
    list(AlertRule.objects.select_for_update().filter(id__in=[rule.id for rule in rules]).order_by("id"))
    since = seen.now - FLAP_WINDOW
    over = Alert.objects.filter(Q(resolved_at__gt=since, fired_at__gt=since)).order_by()
    work = _AlertChanges(seen, Counter(over.values_list("rule_id", "subject")))
    known: defaultdict[int, dict[str, Alert]] = defaultdict(dict)
    for alert in Alert.objects.filter(resolved_at=None, rule_id__in=[rule.id for rule in rules]).order_by("id"):
        known[alert.rule_id][alert.subject] = alert
    for rule in rules:
        findings = seen.findings.get(rule.kind, {}) if rule.enabled else {}
        for subject in dict.fromkeys([*findings, *known[rule.id]]):
            work.follow(rule, subject, findings.get(subject), known[rule.id].get(subject))
    work.save()


class _AlertChanges:
    """What a pass will write."""

    def __init__(self, seen: Sighting, recent: Mapping[tuple[int, str], int]) -> None:
        self._seen = seen
        # How often each subject of a rule fired lately and was over again.
        self._recent = recent
        self._new: list[Alert] = []
        self._changed: list[Alert] = []
        self._forgotten: list[int] = []
        self._to_send: list[ToSend] = []

    def follow(self, rule: Rule, subject: str, finding: Finding | None, alert: Alert | None) -> None:
        """Update one alert, begin it or forget it."""
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
        # The message of an end is written with the facts of when it was last wrong.
        wrong = finding if sight is Sight.WRONG else None
        if step.course is None:
            if alert is not None:
                self._forgotten.append(alert.pk)
            return
        if alert is None:
            if wrong is not None:
                new_alert = Alert(
                    rule_id=rule.id,
                    subject=subject,
                    olt_id=wrong.olt_id,
                    severity=rule.severity,
                    facts=wrong.facts,
                    place="/".join(wrong.place),
                )
                self._new.append(alert := new_alert)
                self._write(rule, alert, step.course, step.telling)
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
            self._to_send.append(ToSend(rule, alert, telling))

    def save(self) -> None:
        """Write alerts and messages; the caller's transaction makes them one."""
        Alert.objects.filter(id__in=self._forgotten).delete()
        Alert.objects.bulk_create(self._new, batch_size=BATCH)
        changed = (
            [alert.pk, alert.state, json.dumps(alert.facts), *(getattr(alert, name) for name in _COURSE)]
            for alert in self._changed
        )
        update_values(Alert, _CHANGING, list(changed))
        write_notices(self._to_send, self._seen.now)
        counts = Counter((each.telling.message, each.rule.id) for each in self._to_send)
        for (message, rule_id), count in counts.items():
            logger.info("alert.%s rule=%s count=%s", message, rule_id, count)


def course_of(alert: Alert) -> Course:
    """Read the course out of a row."""
    values = {name: getattr(alert, name) for name in _COURSE}
    return Course(Stage(alert.state), alert.began_at, **values)

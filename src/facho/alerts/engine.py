"""One pass over everything that rules watch: finds what is wrong, updates each alert and writes the messages.

Finding takes no lock. Alerts and their messages change in one short transaction; a pass that dies before its end has
changed nothing, and the next one does the same. Messages are rows of an outbox, delivered later.
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import DateTimeField, F, Q
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, override

from facho.alerts.condition import Facts, Finding, Findings, Question, Stall
from facho.alerts.conditions import CONDITIONS, sentence_of
from facho.alerts.models import Alert, AlertChannel, AlertRule, AlertState, Notice, NoticeKind, NoticeState, Severity
from facho.alerts.store import Rule, load_rules, load_terms, terms_of
from facho.execution_coordinator.models import QuotaViolation
from facho.hosts.models import Olt
from facho.hosts.store import is_silenced
from facho.infrastructure.bulk import update_values
from facho.infrastructure.statements import Given, Select
from facho.polling.domain.alerting import (
    FLAP_WINDOW,
    AlertMessage,
    Course,
    DueMessage,
    Look,
    Sight,
    Stage,
    follow,
    group_by_place,
)
from facho.snmp_jobs.application import ready_name

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
    # Whether any of these rules has an alert that is not over.
    has_open: bool

    def is_new(self, rule: Rule) -> bool:
        """Return whether an alert could begin by what was found."""
        findings = self.findings.get(rule.kind, {})
        return any(self.sight(rule, finding, None) is Sight.WRONG for finding in findings.values())

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
    followed = [rule for rule in rules if rule.kind in seen.findings or not rule.enabled]
    if seen.has_open or any(seen.is_new(rule) for rule in followed):
        _follow(followed, seen)


_OPEN = Select(lambda: Alert.objects.filter(resolved_at=None).order_by().values_list("rule_id", "subject"))
_OLTS = Select(
    lambda: (
        Olt.objects.order_by()
        .annotate(is_silenced=is_silenced("id", Given("now", DateTimeField())))
        .values_list("id", "group_id", "enabled", "is_silenced")
    )
)


def _look(rules: Sequence[Rule], now: datetime, stall: Stall | None) -> Sighting:
    kinds = {rule.id: rule.kind for rule in rules}
    open_subjects: defaultdict[str, set[str]] = defaultdict(set)
    for rule_id, subject in _OPEN.rows():
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
    known = _OLTS.rows(now=now)
    silenced = frozenset(olt_id for olt_id, _, _, is_silent in known if is_silent)
    disabled = frozenset(olt_id for olt_id, _, is_enabled, _ in known if not is_enabled)
    groups = {olt_id: group_id for olt_id, group_id, *_ in known}
    return Sighting(now, findings, silenced, disabled, groups, has_open=bool(open_subjects))


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
                    place=wrong.place,
                )
                self._new.append(alert := new_alert)
                self._write(rule, alert, step.course, step.due_message)
            return
        facts = wrong.facts if wrong else alert.facts
        if step.course.stage is Stage.RESOLVED:
            facts = {**facts, **self._seen.why_unwatched(rule, alert)}
        if step.course != course_of(alert) or facts != alert.facts:
            alert.facts = facts
            self._changed.append(alert)
            self._write(rule, alert, step.course, step.due_message)

    def _write(self, rule: Rule, alert: Alert, course: Course, due_message: DueMessage | None) -> None:
        alert.state, alert.began_at = AlertState(course.stage.value), course.began_at
        for name in _COURSE:
            setattr(alert, name, getattr(course, name))
        if due_message:
            self._to_send.append(ToSend(rule, alert, due_message))

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
        counts = Counter((each.due_message.message, each.rule.id) for each in self._to_send)
        for (message, rule_id), count in counts.items():
            logger.info("alert.%s rule=%s count=%s", message, rule_id, count)


def course_of(alert: Alert) -> Course:
    values = {name: getattr(alert, name) for name in _COURSE}
    return Course(Stage(alert.state), alert.began_at, **values)


# A webhook gets at most so many alerts of one message: no service takes a body of any size.
MAX_IN_PAYLOAD = 200
MAX_TITLE = 200
# A message is read on a telephone; the payload lists more.
LINES = 20
_GRAVEST = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class ToSend:
    rule: Rule
    alert: Alert
    due_message: DueMessage


def write_notices(to_send: Sequence[ToSend], now: datetime) -> None:
    """Write a message for each channel and each group of alerts that belong together."""
    if not to_send:
        return
    terms = load_terms()
    notified = _load_notified([each.alert.pk for each in to_send if each.due_message.message is AlertMessage.RESOLVED])
    by_channel: defaultdict[tuple[Rule, DueMessage, int], list[Alert]] = defaultdict(list)
    for each in to_send:
        channels = {
            AlertMessage.OPENED: each.rule.first,
            AlertMessage.ESCALATED: each.rule.later,
            # Disabled ones too: enabled again, they would send the beginning and never the end.
            AlertMessage.RESOLVED: notified[each.alert.pk],
        }[each.due_message.message]
        for channel_id in sorted(channels & terms.keys()):
            by_channel[each.rule, each.due_message, channel_id].append(each.alert)
    notices: list[tuple[Notice, list[Alert]]] = []
    for (rule, due_message, channel_id), alerts in by_channel.items():
        for group in group_by_place((tuple(alert.place.split("/")), alert) for alert in alerts):
            with override(terms[channel_id].language):
                notices.append((_build_notice(rule, due_message, channel_id, group, now), group))
                notices[-1][0].next_try_at = terms[channel_id].send_at(due_message.not_before)
    Notice.objects.bulk_create(notice for notice, _group in notices)
    Notice.alerts.through.objects.bulk_create(
        Notice.alerts.through(notice_id=notice.pk, alert_id=alert.pk) for notice, group in notices for alert in group
    )


def on_sent(notice: Notice) -> None:
    """Mark the quota violations of a message as notified; for the transaction that marks it as sent."""
    violations = notice.payload.get("violations", [])
    if violations:
        unsent = QuotaViolation.objects.filter(id__in=violations, notified=False)
        unsent.update(notified=True, notified_at=notice.sent_at)


def merge_held(channel_id: int, now: datetime) -> None:
    """Make one message of what waited for a channel's hours or its digest, in the transaction that claims the next.

    Without a digest, what was over before the hours began is left out. One query for a channel that sends at once.
    """
    channel = AlertChannel.objects.defer("url", "signing_key").get(pk=channel_id)
    terms = terms_of(channel)
    if not terms.holds:
        return
    due = Notice.objects.filter(channel_id=channel_id, state=NoticeState.WAITING, tries=0, next_try_at__lte=now)
    held = list(due.filter(created_at__lt=F("next_try_at")).exclude(kind=NoticeKind.TEST).order_by("id"))
    if not held:
        return
    found = Alert.objects.filter(notices__in=held).select_related("rule").distinct().order_by("began_at", "id")
    # A channel that knows of an alert gets its end, too.
    known = Notice.alerts.through.objects.filter(notice__channel_id=channel_id, notice__state=NoticeState.SENT)
    sent = set(known.filter(alert_id__in=[alert.pk for alert in found]).values_list("alert_id", flat=True))
    alerts = [alert for alert in found if terms.digest or alert.resolved_at is None or alert.pk in sent]
    ids = [notice.pk for notice in held]
    if not alerts:
        words = _("It was over before the channel's hours began.")
        Notice.objects.filter(id__in=ids).update(state=NoticeState.FAILED, next_try_at=None, last_error=words)
        return
    if len(held) == 1 and all(alert.resolved_at is None for alert in alerts):
        # Written now: it is tried for a day from now on.
        Notice.objects.filter(id__in=ids).update(created_at=now)
        return
    with override(terms.language):
        digest = build_digest(held, alerts, now)
    digest.save()
    digest.alerts.set(alerts)
    Notice.objects.filter(id__in=ids).delete()


def build_digest(held: Sequence[Notice], alerts: Sequence[Alert], now: datetime) -> Notice:
    """Write one message about what is open and what is over, in the active language."""
    open_ones = [alert for alert in alerts if alert.resolved_at is None]
    over = [alert for alert in alerts if alert.resolved_at is not None]
    numbers = {"open": len(open_ones), "over": len(over)}
    sections = []
    for words, listed in ((_("Open now:"), open_ones), (_("Over:"), over)):
        if listed:
            lines = [_line(alert.rule.kind, alert) for alert in listed[:LINES]]
            sections.append("\n".join([words, *lines, *_left_out(len(listed) - len(lines))]))
    payload = {
        "event": NoticeKind.DIGEST.value,
        "count": len(alerts),
        "alerts": [_alert_payload(alert) for alert in alerts[:MAX_IN_PAYLOAD]],
        "violations": sorted({number for notice in held for number in notice.payload.get("violations", ())}),
    }
    return Notice(
        key=f"digest {held[0].pk} {held[0].channel_id}",
        channel_id=held[0].channel_id,
        kind=NoticeKind.DIGEST,
        severity=min((alert.severity for alert in open_ones or over), key=_GRAVEST.index),
        title=_("Alerts: %(open)s open, %(over)s over") % numbers,
        body="\n\n".join(sections),
        payload=payload,
        created_at=now,
        next_try_at=now,
    )


def _load_notified(alert_ids: Collection[int]) -> defaultdict[int, set[int]]:
    """Load the channels of each alert's messages: only those get the end that got the beginning."""
    notified: defaultdict[int, set[int]] = defaultdict(set)
    if alert_ids:
        sent = Notice.alerts.through.objects.filter(alert_id__in=alert_ids).exclude(notice__state=NoticeState.FAILED)
        for alert_id, channel_id in sent.values_list("alert_id", "notice__channel_id"):
            notified[alert_id].add(channel_id)
    return notified


def _build_notice(
    rule: Rule, due_message: DueMessage, channel_id: int, alerts: Sequence[Alert], now: datetime
) -> Notice:
    kind = NoticeKind(due_message.message.value)
    return Notice(
        # An alert is opened, escalated and resolved once, so its first one names the group.
        key=f"{kind.value} {min(alert.pk for alert in alerts)} {channel_id}",
        channel_id=channel_id,
        kind=kind,
        severity=rule.severity,
        title=title_of(rule, kind, alerts),
        body=body_of(rule, alerts),
        payload=payload_of(rule, kind, alerts),
        created_at=now,
        next_try_at=due_message.not_before,
    )


def title_of(rule: Rule, kind: NoticeKind, alerts: Sequence[Alert]) -> str:
    """Write what is wrong if it is one thing, else how many there are and where."""
    if len(alerts) == 1:
        what = sentence_of(rule.kind, alerts[0].facts)
    else:
        olts = {alert.facts.get("olt", "") for alert in alerts}
        places = {alert.facts.get("place", "") for alert in alerts}
        if len(olts) > 1:
            where = ngettext("%(count)s OLT", "%(count)s OLTs", len(olts)) % {"count": len(olts)}
        else:
            where = " ".join([*olts, *(places if len(places) == 1 else ())]).strip()
        words = {"what": CONDITIONS[rule.kind].label, "count": len(alerts), "where": where}
        what = (_("%(what)s: %(count)s on %(where)s") if where else _("%(what)s: %(count)s")) % words
    text = "%(what)s"
    if kind is NoticeKind.ESCALATED:
        text = _("Not acknowledged: %(what)s")
    elif kind is NoticeKind.RESOLVED:
        is_unwatched = all(alert.facts.get("ended_by") for alert in alerts)
        text = _("Not watched any more: %(what)s") if is_unwatched else _("Over: %(what)s")
    elif all(alert.is_flapping for alert in alerts):
        text = _("Flapping: %(what)s")
    title = text % {"what": what}
    return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"


def body_of(rule: Rule, alerts: Sequence[Alert]) -> str:
    """Write each alert on a line with its time, and the rule that found it."""
    lines = [_line(rule.kind, alert) for alert in alerts[:LINES]]
    lines += _left_out(len(alerts) - len(lines))
    if any(alert.facts.get("ended_by") == "rule" for alert in alerts):
        lines.append(_("The rule was switched off."))
    rule_words = {"rule": ready_name(rule.name), "severity": Severity(rule.severity).label}
    return "\n".join([*lines, "", _("Rule: %(rule)s (%(severity)s)") % rule_words])


def _line(kind: str, alert: Alert) -> str:
    # Over since it was seen fine; it counts as resolved once that has lasted.
    ended_at = alert.resolved_at and (alert.calm_since or alert.resolved_at)
    times = {"begin": _time(alert.began_at), "end": _time(ended_at) if ended_at else ""}
    when = (_("from %(begin)s to %(end)s") if alert.resolved_at else _("since %(begin)s")) % times
    line = f"{sentence_of(kind, alert.facts)} ({when})"
    # On each line: others in the same message may be really over.
    return f"{line} · {_('its OLT is disabled')}" if alert.facts.get("ended_by") == "olt" else line


def _left_out(number: int) -> list[str]:
    return [ngettext("and %(count)s more", "and %(count)s more", number) % {"count": number}] if number else []


def _time(moment: datetime) -> str:
    return f"{localtime(moment):%Y-%m-%d %H:%M}"


def payload_of(rule: Rule, kind: NoticeKind, alerts: Sequence[Alert]) -> dict[str, Any]:
    """Build what a webhook gets as `details`."""
    return {
        "event": kind.value,
        "rule": {"id": rule.id, "name": ready_name(rule.name), "kind": rule.kind},
        "severity": rule.severity,
        "count": len(alerts),
        "alerts": [_alert_payload(alert) for alert in alerts[:MAX_IN_PAYLOAD]],
        "violations": sorted({number for alert in alerts for number in alert.facts.get("violations", ())}),
    }


def _alert_payload(alert: Alert) -> dict[str, Any]:
    return {
        "id": alert.pk,
        "subject": alert.subject,
        "state": str(alert.state),
        "olt_id": alert.olt_id,
        "since": alert.began_at.isoformat(),
        "resolved_at": alert.resolved_at.isoformat() if alert.resolved_at else None,
        "is_flapping": alert.is_flapping,
        "facts": alert.facts,
    }

"""Writes messages: the outbox. They stand in the transaction that changed the alerts, and are delivered later."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import override

from facho.alerts.models import Alert, Notice, NoticeKind, NoticeState
from facho.alerts.rules import Rule, load_languages
from facho.alerts.words import body_of, title_of
from facho.execution_coordinator.models import QuotaViolation
from facho.polling.domain.alerting import Message, Telling, group_by_place

# Machines get every alert of a cut, and no message that no service takes.
MAX_IN_PAYLOAD = 200


@dataclass(frozen=True, slots=True)
class Told:
    """Something that is to be told of an alert."""

    rule: Rule
    alert: Alert
    telling: Telling


def write_notices(told: Sequence[Told], now: datetime) -> None:
    """Write a message for each channel and each group of alerts that belong together."""
    if not told:
        return
    languages = load_languages()
    notices: list[tuple[Notice, list[Alert]]] = []
    for (rule, telling, channel_id), alerts in _sorted_out(told, languages.keys()).items():
        for group in group_by_place((tuple(alert.place.split("/")), alert) for alert in alerts):
            with override(languages[channel_id]):
                notices.append((_notice(rule, telling, channel_id, group, now), group))
    Notice.objects.bulk_create(notice for notice, _ in notices)
    Notice.alerts.through.objects.bulk_create(
        Notice.alerts.through(notice_id=notice.pk, alert_id=alert.pk) for notice, group in notices for alert in group
    )


def on_sent(notice: Notice) -> None:
    """Note that people were told of what a message is about; for the transaction that marks it as sent."""
    violations = notice.payload.get("violations", [])
    if violations:
        untold = QuotaViolation.objects.filter(id__in=violations, notified=False)
        untold.update(notified=True, notified_at=notice.sent_at)


def _sorted_out(told: Iterable[Told], existing: Set[int]) -> Mapping[tuple[Rule, Telling, int], list[Alert]]:
    known = list(told)
    heard = _load_hearers(each.alert.pk for each in known if each.telling.message is Message.RESOLVED)
    by_channel: defaultdict[tuple[Rule, Telling, int], list[Alert]] = defaultdict(list)
    for each in known:
        for channel_id in sorted(_channels(each, heard) & existing):
            by_channel[each.rule, each.telling, channel_id].append(each.alert)
    return by_channel


def _channels(told: Told, heard: Mapping[int, set[int]]) -> Set[int]:
    if told.telling.message is Message.OPENED:
        return told.rule.first
    if told.telling.message is Message.ESCALATED:
        return told.rule.later
    # Also one that is disabled now: enabled again, it would tell of the beginning and never of the end.
    return heard.get(told.alert.pk, set())


def _load_hearers(alert_ids: Iterable[int]) -> dict[int, set[int]]:
    """Load which channels were told of each alert: nobody hears of the end who did not hear of the beginning."""
    wanted = list(alert_ids)
    if not wanted:
        return {}
    pairs = (
        Notice.alerts.through.objects.filter(alert_id__in=wanted)
        .exclude(notice__state=NoticeState.FAILED)
        .values_list("alert_id", "notice__channel_id")
    )
    heard: defaultdict[int, set[int]] = defaultdict(set)
    for alert_id, channel_id in pairs:
        heard[alert_id].add(channel_id)
    return heard


def _notice(rule: Rule, telling: Telling, channel_id: int, alerts: Sequence[Alert], now: datetime) -> Notice:
    kind = NoticeKind(telling.message.value)
    return Notice(
        # An alert is opened, escalated and resolved once, so its first one names the group.
        key=f"{kind.value} {min(alert.pk for alert in alerts)} {channel_id}",
        channel_id=channel_id,
        kind=kind,
        severity=rule.severity,
        title=title_of(rule, kind, alerts),
        body=body_of(rule, kind, alerts),
        payload=_payload(rule, kind, alerts),
        created_at=now,
        next_try_at=telling.not_before,
    )


def _payload(rule: Rule, kind: NoticeKind, alerts: Sequence[Alert]) -> dict[str, Any]:
    return {
        "event": kind.value,
        "rule": {"id": rule.id, "name": rule.name, "kind": rule.kind.value},
        "severity": rule.severity,
        "count": len(alerts),
        "alerts": [_described(alert) for alert in alerts[:MAX_IN_PAYLOAD]],
        "violations": sorted({number for alert in alerts for number in alert.facts.get("violations", ())}),
    }


def _described(alert: Alert) -> dict[str, Any]:
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

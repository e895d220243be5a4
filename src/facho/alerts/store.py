"""Rules: loaded for the engine, offered and checked; alerts with what the pages show of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import override

from facho.accounts.acknowledge import with_acknowledger
from facho.alerts.condition import Condition
from facho.alerts.conditions import CONDITIONS
from facho.alerts.models import ALL_DAYS, Alert, AlertChannel, AlertRule, AlertState, OfferedCondition
from facho.hosts.store import OLT_SECRETS
from facho.infrastructure.statements import Select
from facho.polling.domain.alerting import CALM_AFTER, Bound, Digest, OnCall, Policy, send_at
from facho.polling.domain.schedule import Window
from facho.snmp_jobs.store import build_window


@dataclass(frozen=True, slots=True)
class Rule:
    id: int
    name: str
    kind: str
    severity: str
    enabled: bool
    olt_group_id: int | None
    bound: Bound | None
    policy: Policy
    # The enabled channels that it notifies first, and those that it escalates to.
    first: frozenset[int]
    later: frozenset[int]


def load_rules() -> list[Rule]:
    """Load every rule with its channels, disabled ones too, since their alerts have to end; three queries."""
    first, later = _by_rule(_FIRST.rows()), _by_rule(_LATER.rows())
    return [_build_rule(row, first[row.pk], later[row.pk]) for row in AlertRule.objects.order_by("id")]


def _pairs(through: type[Model]) -> QuerySet[Any, Any]:
    pairs: QuerySet[Any] = through._default_manager.filter(alertchannel__enabled=True)
    return pairs.values_list("alertrule_id", "alertchannel_id")


_FIRST = Select(lambda: _pairs(AlertRule.channels.through))
_LATER = Select(lambda: _pairs(AlertRule.escalation_channels.through))


def _by_rule(pairs: Iterable[tuple[int, int]]) -> Mapping[int, frozenset[int]]:
    channels: defaultdict[int, frozenset[int]] = defaultdict(frozenset)
    for rule_id, channel_id in pairs:
        channels[rule_id] |= {channel_id}
    return channels


def _build_rule(row: AlertRule, first: frozenset[int], later: frozenset[int]) -> Rule:
    threshold = CONDITIONS[row.kind].threshold
    escalates = bool(later) and row.escalate_minutes is not None
    return Rule(
        id=row.pk,
        name=row.name,
        kind=row.kind,
        severity=row.severity,
        enabled=row.enabled,
        olt_group_id=row.olt_group_id,
        bound=threshold.bound(row.threshold, row.clear_margin) if threshold else None,
        policy=Policy(
            hold=timedelta(minutes=row.hold_minutes),
            # Disabled rules resolve at once.
            clear=timedelta(minutes=row.clear_minutes if row.enabled else 0),
            calm=CALM_AFTER if row.enabled else timedelta(0),
            quiet=quiet_hours(row),
            escalate_after=timedelta(minutes=row.escalate_minutes or 0) if escalates else None,
            notifies_begin=bool(first),
            notifies_end=row.sends_resolved,
        ),
        first=first,
        later=later,
    )


def quiet_hours(row: AlertRule) -> Window | None:
    """Return when a rule notifies no one, on the installation's clock."""
    return build_window((row.quiet_from, row.quiet_to))


@dataclass(frozen=True, slots=True)
class ChannelTerms:
    """In which language a channel is written to, and when."""

    language: str
    digest: Digest = Digest.AT_ONCE
    on_call: OnCall | None = None

    @property
    def holds(self) -> bool:
        """Whether messages may wait for the channel's time, and are collected then."""
        return bool(self.digest) or self.on_call is not None

    def send_at(self, moment: datetime) -> datetime:
        return send_at(moment, digest=self.digest, on_call=self.on_call, zone=ZoneInfo(settings.TIME_ZONE))


def terms_of(channel: AlertChannel) -> ChannelTerms:
    return ChannelTerms(channel.language or settings.LANGUAGE_CODE, Digest(channel.digest), on_call_of(channel))


def on_call_of(channel: AlertChannel) -> OnCall | None:
    """Return the hours and weekdays of a channel on the installation's clock; None: always."""
    if channel.on_call_from is None and channel.on_call_days == ALL_DAYS:
        return None
    # Days without hours are whole days.
    midnight = time(0)
    window = build_window((channel.on_call_from or midnight, channel.on_call_to or midnight))
    days = frozenset(ALL_DAYS.index(day) for day in channel.on_call_days if day in ALL_DAYS)
    return OnCall(window, days) if window and days else None


def load_terms() -> dict[int, ChannelTerms]:
    """Load the terms of every channel, disabled ones too; one query."""
    columns = ("language", "digest", "on_call_from", "on_call_to", "on_call_days")
    return {channel.pk: terms_of(channel) for channel in AlertChannel.objects.order_by().only(*columns)}


def offer_default_rules() -> None:
    """Add the default rule of each condition that this installation was never offered; one query if there is none.

    A rule that was deleted or changed stays so. Two processes that start at once add a rule once.
    """
    offered = set(OfferedCondition.objects.values_list("kind", flat=True))
    for condition in CONDITIONS.values():
        if condition.code not in offered:
            with transaction.atomic(), override(settings.LANGUAGE_CODE):
                _offer(condition)


def _offer(condition: Condition) -> None:
    _row, is_new = OfferedCondition.objects.get_or_create(kind=condition.code)
    # Rules may have been written for it before it was offered.
    if not is_new or AlertRule.objects.filter(kind=condition.code).exists():
        return
    values = asdict(condition.default_rule)
    name = str(values.pop("name"))
    if AlertRule.objects.filter(name=name).exists():
        name = f"{name} ({condition.code})"
    AlertRule.objects.create(name=name, kind=condition.code, **values)


def find_faults(rule: Mapping[str, Any], *, stored: AlertRule | None = None) -> dict[str, str]:
    """Return, by field, what is wrong with a rule; `escalation_channels` is whatever is chosen."""
    condition = CONDITIONS[rule["kind"]]
    if stored is not None and condition.code != stored.kind:
        # Its open alerts are about what it looked for; nothing else could end them.
        return {"kind": _("The condition of a rule cannot be changed: add another rule.")}
    faults = {}
    threshold, margin = rule.get("threshold"), rule.get("clear_margin") or 0
    if condition.threshold is None:
        given = {"threshold": threshold is not None, "clear_margin": margin != 0}
        faults = {name: _("This kind has no threshold.") for name, is_given in given.items() if is_given}
    else:
        low, high = condition.threshold.low, condition.threshold.high
        text = _("Enter a number from %(low)s to %(high)s.")
        if threshold is not None and not low <= threshold <= high:
            faults["threshold"] = text % {"low": f"{low:g}", "high": f"{high:g}"}
        if not 0 <= margin <= high - low:
            faults["clear_margin"] = text % {"low": 0, "high": f"{high - low:g}"}
    opens, closes = rule.get("quiet_from"), rule.get("quiet_to")
    if (opens is None) != (closes is None):
        faults["quiet_to"] = _("Quiet hours need both their beginning and their end.")
    elif opens is not None and opens == closes:
        faults["quiet_to"] = _("Quiet hours must not end when they begin.")
    if rule.get("olt_group") is not None and not condition.has_olt:
        faults["olt_group"] = _("This condition does not belong to any OLT.")
    if bool(rule.get("escalation_channels")) != (rule.get("escalate_minutes") is not None):
        faults["escalate_minutes"] = _("Escalation needs both minutes and channels.")
    return faults


def shown_alerts() -> QuerySet[Alert]:
    """Return the alerts that fire or fired, with rule, OLT and who acknowledged them, and no secret."""
    shown = Alert.objects.exclude(state=AlertState.PENDING).select_related("olt", "rule").defer(*OLT_SECRETS)
    return with_acknowledger(shown)


@dataclass(frozen=True, slots=True)
class Unsent:
    """Why there is no message, and whether the rule needs a channel before there can be one."""

    words: str
    needs_channel: bool = False


def why_unsent(alert: Alert, now: datetime) -> Unsent:
    """Explain why an alert has no message; one query."""
    rule = alert.rule
    if not rule.channels.filter(enabled=True).exists():
        return Unsent(_("Not sent: its rule has no enabled channel, so it is only shown here."), needs_channel=True)
    if alert.told_at is not None:
        return Unsent(_("Not sent: when it fired, its rule had none of its current channels."))
    if alert.acknowledged_at is not None:
        return Unsent(_("Not sent: it was acknowledged before a message was due."))
    if alert.resolved_at is not None:
        return Unsent(_("Not sent: it was over before a message was due."))
    quiet = quiet_hours(rule)
    if quiet is not None and quiet.contains(now):
        ends = {"time": f"{quiet.closes:%H:%M}", "zone": settings.TIME_ZONE}
        return Unsent(_("Not sent yet: its rule is quiet until %(time)s (%(zone)s).") % ends)
    return Unsent(_("Not sent yet."))


def load_is_no_one_notified() -> bool:
    """Return whether no enabled rule has an enabled channel, so that alerts are only shown on pages; one query."""
    return not AlertRule.objects.filter(enabled=True, channels__enabled=True).exists()

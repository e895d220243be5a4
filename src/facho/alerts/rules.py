"""Rules as the engine uses them: what they look for, how patient they are, and whom they tell."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from facho.alerts.conditions.table import CONDITIONS
from facho.alerts.models import AlertChannel, AlertRule, Kind
from facho.polling.domain.alerting import CALM_AFTER, Bound, Policy
from facho.polling.domain.window import Window
from facho.snmp_jobs.store import build_window


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it is now."""

    id: int
    name: str
    kind: Kind
    severity: str
    enabled: bool
    olt_group_id: int | None
    bound: Bound | None
    policy: Policy
    # The enabled channels that it tells first, and those that it escalates to.
    first: frozenset[int]
    later: frozenset[int]


def load_rules() -> list[Rule]:
    """Load every rule with its channels, those that are switched off too: their alerts have to end; three queries."""
    is_enabled = {"alertchannel__enabled": True}
    first = _by_rule(AlertRule.channels.through.objects.filter(**is_enabled))
    later = _by_rule(AlertRule.escalation_channels.through.objects.filter(**is_enabled))
    return [_rule(row, first[row.pk], later[row.pk]) for row in AlertRule.objects.order_by("id")]


def load_languages() -> dict[int, str]:
    """Load in which language every channel is told, the disabled ones too."""
    channels = AlertChannel.objects.order_by().values_list("id", "language")
    return {channel_id: language or settings.LANGUAGE_CODE for channel_id, language in channels}


def quiet_hours(row: AlertRule) -> Window | None:
    """Return when a rule tells nobody, on the installation's clock."""
    return build_window((row.quiet_from, row.quiet_to))


def _by_rule(pairs: QuerySet[Any]) -> Mapping[int, frozenset[int]]:
    channels: defaultdict[int, frozenset[int]] = defaultdict(frozenset)
    for rule_id, channel_id in pairs.values_list("alertrule_id", "alertchannel_id"):
        channels[rule_id] |= {channel_id}
    return channels


def _rule(row: AlertRule, first: frozenset[int], later: frozenset[int]) -> Rule:
    kind = Kind(row.kind)
    return Rule(
        id=row.pk,
        name=row.name,
        kind=kind,
        severity=row.severity,
        enabled=row.enabled,
        olt_group_id=row.olt_group_id,
        bound=CONDITIONS[kind].bound(row.threshold, row.clear_margin),
        policy=_policy(row, tells_first=bool(first), tells_later=bool(later)),
        first=first,
        later=later,
    )


def _policy(row: AlertRule, *, tells_first: bool, tells_later: bool) -> Policy:
    after = row.escalate_minutes if tells_later else None
    return Policy(
        hold=timedelta(minutes=row.hold_minutes),
        # Nobody waits for calm where nobody looks any more.
        clear=timedelta(minutes=row.clear_minutes if row.enabled else 0),
        calm=CALM_AFTER if row.enabled else timedelta(0),
        quiet=quiet_hours(row),
        escalate_after=None if after is None else timedelta(minutes=after),
        tells_begin=tells_first,
        tells_end=row.sends_resolved,
    )

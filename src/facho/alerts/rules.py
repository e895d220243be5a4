"""Rules as the engine uses them: what they look for, how patient they are, and whom they tell."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from zoneinfo import ZoneInfo

from django.conf import settings

from facho.alerts.conditions.table import CONDITIONS
from facho.alerts.models import AlertChannel, AlertRule, Kind
from facho.polling.domain.alerting import CALM_AFTER, Bound, Policy
from facho.polling.domain.window import Window


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


@dataclass(frozen=True, slots=True)
class Audience:
    """Every channel with its language, and which of the enabled ones each rule tells first and later."""

    languages: Mapping[int, str]
    first: Mapping[int, frozenset[int]]
    later: Mapping[int, frozenset[int]]


def load_rules() -> list[Rule]:
    """Load every rule, those that are switched off too: their alerts have to end."""
    return [_rule(row) for row in AlertRule.objects.order_by("id")]


def load_audience() -> Audience:
    """Load whom the rules tell, without the addresses; three queries."""
    channels = list(AlertChannel.objects.order_by().values_list("id", "language", "enabled"))
    languages = {channel_id: language or settings.LANGUAGE_CODE for channel_id, language, _ in channels}
    enabled = frozenset(channel_id for channel_id, _, is_enabled in channels if is_enabled)
    first = AlertRule.channels.through.objects.values_list("alertrule_id", "alertchannel_id")
    later = AlertRule.escalation_channels.through.objects.values_list("alertrule_id", "alertchannel_id")
    return Audience(languages, _by_rule(first, enabled), _by_rule(later, enabled))


def quiet_hours(row: AlertRule) -> Window | None:
    """Return when a rule tells nobody, on the installation's clock."""
    opens, closes = row.quiet_from, row.quiet_to
    return None if opens is None or closes is None else Window(opens, closes, ZoneInfo(settings.TIME_ZONE))


def _by_rule(pairs: Iterable[tuple[int, int]], enabled: Collection[int]) -> dict[int, frozenset[int]]:
    channels: defaultdict[int, set[int]] = defaultdict(set)
    for rule_id, channel_id in pairs:
        if channel_id in enabled:
            channels[rule_id].add(channel_id)
    return {rule_id: frozenset(its) for rule_id, its in channels.items()}


def _rule(row: AlertRule) -> Rule:
    kind = Kind(row.kind)
    return Rule(
        id=row.pk,
        name=row.name,
        kind=kind,
        severity=row.severity,
        enabled=row.enabled,
        olt_group_id=row.olt_group_id,
        bound=CONDITIONS[kind].bound(row.threshold, row.clear_margin),
        policy=_policy(row),
    )


def _policy(row: AlertRule) -> Policy:
    after = row.escalate_minutes
    return Policy(
        hold=timedelta(minutes=row.hold_minutes),
        # Nobody waits for calm where nobody looks any more.
        clear=timedelta(minutes=row.clear_minutes if row.enabled else 0),
        calm=CALM_AFTER if row.enabled else timedelta(0),
        quiet=quiet_hours(row),
        escalate_after=None if after is None else timedelta(minutes=after),
        tells_end=row.sends_resolved,
    )

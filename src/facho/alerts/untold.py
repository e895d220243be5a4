"""Why nobody was told of an alert: what whoever finds it on a page has to know before the next one comes."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.translation import gettext as _

from facho.alerts.models import Alert, AlertRule
from facho.alerts.rules import quiet_hours


@dataclass(frozen=True, slots=True)
class Untold:
    """Why there is no message, and whether the rule needs a channel before there can be one."""

    words: str
    needs_channel: bool = False


def why_untold(alert: Alert, now: datetime) -> Untold:
    """Say why an alert has no message; one query."""
    rule = alert.rule
    if not rule.channels.filter(enabled=True).exists():
        return Untold(_("Nobody: its rule has no enabled channel, so it is only shown here."), needs_channel=True)
    if alert.told_at is not None:
        return Untold(_("Nobody: when it fired its rule had none of the channels that it has now."))
    if alert.acknowledged_at is not None:
        return Untold(_("Nobody: it was acknowledged before anybody was told."))
    if alert.resolved_at is not None:
        return Untold(_("Nobody: it was over before anybody was told."))
    quiet = quiet_hours(rule)
    if quiet is not None and quiet.contains(now):
        ends = {"time": f"{quiet.closes:%H:%M}", "zone": settings.TIME_ZONE}
        return Untold(_("Nobody yet: its rule is quiet until %(time)s (%(zone)s).") % ends)
    return Untold(_("Nobody has been told yet."))


def load_is_nobody_told() -> bool:
    """Tell whether no rule that is switched on has an enabled channel: alerts are seen on pages alone; one query."""
    return not AlertRule.objects.filter(enabled=True, channels__enabled=True).exists()

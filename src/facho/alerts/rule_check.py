"""What a rule may say; asked by the admin's form and by the API."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from facho.alerts.conditions.table import CONDITIONS
from facho.alerts.models import AlertRule, Kind
from facho.polling.domain.onu_events import POWER_STEP_CDBM

# Light is not noticed as a step below this.
_SMALLEST_STEP_DB = POWER_STEP_CDBM / 100
_RANGES = {
    Kind.POLLERS_SATURATED: (1.0, 99.0),
    Kind.QUEUE_OVERLOAD: (0.0, 100_000.0),
    Kind.WEAK_LIGHT: (-40.0, 0.0),
    Kind.POWER_STEP: (_SMALLEST_STEP_DB, 30.0),
}
# Of the whole product, whatever OLTs it polls.
_WITHOUT_OLT = frozenset(
    {Kind.NETWORK_LOST, Kind.POLLERS_SATURATED, Kind.QUEUE_OVERLOAD, Kind.NO_LEADER, Kind.MESSAGES_NOT_TAKEN}
)


def find_faults(rule: Mapping[str, Any], *, stored: AlertRule | None = None) -> dict[str, str]:
    """Say, by field, what of a rule cannot be meant; `escalation_channels` is whatever is chosen."""
    kind = Kind(rule["kind"])
    if stored is not None and kind != stored.kind:
        # Its alerts are about what it looked for, and nothing else could end them.
        return {"kind": _("A rule keeps what it looks for: make another one.")}
    faults = {**_threshold_faults(kind, rule.get("threshold"), rule.get("clear_margin") or 0), **_quiet_faults(rule)}
    if rule.get("olt_group") is not None and kind in _WITHOUT_OLT:
        faults["olt_group"] = _("What this kind looks for belongs to no OLT.")
    if bool(rule.get("escalation_channels")) != (rule.get("escalate_minutes") is not None):
        faults["escalate_minutes"] = _("Escalation needs both minutes and channels.")
    return faults


def _threshold_faults(kind: Kind, threshold: float | None, margin: float) -> dict[str, str]:
    if CONDITIONS[kind].threshold is None:
        text = _("This kind has no threshold.")
        given = {"threshold": threshold is not None, "clear_margin": margin != 0}
        return {name: text for name, is_given in given.items() if is_given}
    low, high = _RANGES[kind]
    faults = {}
    if threshold is not None and not low <= threshold <= high:
        faults["threshold"] = _("Write a number from %(low)s to %(high)s.") % {"low": f"{low:g}", "high": f"{high:g}"}
    if not 0 <= margin <= high - low:
        words = {"low": 0, "high": f"{high - low:g}"}
        faults["clear_margin"] = _("Write a number from %(low)s to %(high)s.") % words
    return faults


def _quiet_faults(rule: Mapping[str, Any]) -> dict[str, str]:
    opens, closes = rule.get("quiet_from"), rule.get("quiet_to")
    if (opens is None) != (closes is None):
        return {"quiet_to": _("Quiet hours need both their beginning and their end.")}
    if opens is not None and opens == closes:
        return {"quiet_to": _("Quiet hours must end at another time than they begin.")}
    return {}

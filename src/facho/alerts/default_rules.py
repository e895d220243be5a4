"""The rules of a fresh installation: calm, complete, and told to nobody until they have channels."""

from typing import Any

from django.conf import settings
from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override, pgettext_lazy

from facho.alerts.models import Kind, Severity

DEFAULT_RULES: tuple[tuple[Promise, Kind, Severity, dict[str, Any]], ...] = (
    (
        pgettext_lazy("rule", "OLT does not answer"),
        Kind.OLT_UNREACHABLE,
        Severity.CRITICAL,
        {"hold_minutes": 2, "clear_minutes": 2},
    ),
    (_("Poller lost its network"), Kind.NETWORK_LOST, Severity.CRITICAL, {"clear_minutes": 2}),
    (_("Port or card is out"), Kind.PON_OUTAGE, Severity.CRITICAL, {"clear_minutes": 5}),
    (_("Nobody leads"), Kind.NO_LEADER, Severity.CRITICAL, {"hold_minutes": 2}),
    (_("No worker works"), Kind.MESSAGES_NOT_TAKEN, Severity.CRITICAL, {"hold_minutes": 2, "clear_minutes": 10}),
    (_("Quota missed"), Kind.QUOTA_VIOLATED, Severity.WARNING, {}),
    # What becomes of it is told by the rule above.
    (_("Quota at risk"), Kind.QUOTA_AT_RISK, Severity.INFO, {"hold_minutes": 5, "sends_resolved": False}),
    (_("Node suspended"), Kind.NODE_SUSPENDED, Severity.WARNING, {"hold_minutes": 10}),
    (
        _("Pollers saturated"),
        Kind.POLLERS_SATURATED,
        Severity.WARNING,
        {"hold_minutes": 15, "clear_minutes": 15, "clear_margin": 10.0},
    ),
    (_("Nodes are late"), Kind.QUEUE_OVERLOAD, Severity.WARNING, {"hold_minutes": 10, "clear_minutes": 10}),
    (
        _("Weak light"),
        Kind.WEAK_LIGHT,
        Severity.WARNING,
        {"hold_minutes": 15, "clear_minutes": 30, "clear_margin": 1.0},
    ),
    (
        _("Light fell"),
        Kind.POWER_STEP,
        Severity.WARNING,
        {"hold_minutes": 10, "clear_minutes": 15, "clear_margin": 1.0},
    ),
    (_("ONU waits for authorisation"), Kind.ONU_WAITING, Severity.INFO, {"sends_resolved": False}),
)


def seed_default_rules(rules: type[Model]) -> None:
    """Write the rules where there is none yet, named in the installation's language; who deletes one keeps it away."""
    stored: Any = rules._default_manager
    if stored.exists():
        return
    with override(settings.LANGUAGE_CODE):
        stored.bulk_create(
            rules(name=str(name), kind=kind.value, severity=severity.value, **values)
            for name, kind, severity, values in DEFAULT_RULES
        )

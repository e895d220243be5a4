"""Alerts for whoever reads them; what was only noticed is nobody's business yet."""

from django.db.models import QuerySet

from facho.accounts.acknowledge import with_acknowledger
from facho.alerts.models import Alert, AlertState
from facho.hosts.store import OLT_SECRETS


def shown_alerts() -> QuerySet[Alert]:
    """Return the alerts that fire or fired, with rule, OLT and who took note, and no secret."""
    shown = Alert.objects.exclude(state=AlertState.PENDING).select_related("olt", "rule").defer(*OLT_SECRETS)
    return with_acknowledger(shown)

"""Registers the app with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AlertsConfig(AppConfig):
    name = "facho.alerts"
    label = "alerts"
    verbose_name = _("Alerts")

    def ready(self) -> None:
        """Offer the conditions to rules, once the models that they look at are loaded."""
        from facho.alerts.conditions import CHOICES, CONDITIONS
        from facho.alerts.models import ConditionField
        from facho.snmp_jobs.application import register_names

        ConditionField.offered = CHOICES
        register_names(condition.default_rule.name for condition in CONDITIONS.values())

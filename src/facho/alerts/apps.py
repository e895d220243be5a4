"""Registers the app with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AlertsConfig(AppConfig):
    name = "facho.alerts"
    label = "alerts"
    verbose_name = _("Alerts")

    def ready(self) -> None:
        """Offer the conditions to rules, once the models that they look at are loaded."""
        from facho.alerts.conditions import CHOICES
        from facho.alerts.models import ConditionField

        ConditionField.offered = CHOICES

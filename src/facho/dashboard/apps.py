"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DashboardConfig(AppConfig):
    name = "facho.dashboard"
    label = "dashboard"
    verbose_name = _("Dashboard")

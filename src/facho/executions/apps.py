"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExecutionsConfig(AppConfig):
    name = "facho.executions"
    label = "executions"
    verbose_name = _("Executions")

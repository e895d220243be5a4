"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExecutionCoordinatorConfig(AppConfig):
    """The `execution_coordinator` app."""

    name = "facho.execution_coordinator"
    label = "execution_coordinator"
    verbose_name = _("Execution coordinator")

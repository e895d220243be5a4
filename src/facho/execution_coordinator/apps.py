"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExecutionCoordinatorConfig(AppConfig):
    """The `execution_coordinator` app."""

    name = "facho.execution_coordinator"
    label = "execution_coordinator"
    verbose_name = _("Execution coordinator")

    def ready(self) -> None:
        """Let the pages of jobs and nodes warn of more work than an hour holds."""
        from facho.execution_coordinator.feasibility import advise
        from facho.snmp_jobs.advice import register_adviser

        register_adviser(advise)

"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExecutionCoordinatorConfig(AppConfig):
    name = "facho.execution_coordinator"
    label = "execution_coordinator"
    verbose_name = _("Execution coordinator")

    def ready(self) -> None:
        """Let the pages of jobs and nodes show how much work an OLT has, and warn of more than an hour holds."""
        from facho.execution_coordinator.feasibility import advise, load_work
        from facho.snmp_jobs.application import register_source

        register_source(advise, load_work)

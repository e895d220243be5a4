"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CoreConfig(AppConfig):
    """The `core` app."""

    name = "facho.core"
    label = "core"
    verbose_name = _("Facho")

    def ready(self) -> None:
        """Register the checks, which may be imported only once the settings are loaded."""
        from facho.core.checks import register_checks

        register_checks()

"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OnusConfig(AppConfig):
    """The `onus` app."""

    name = "facho.onus"
    label = "onus"
    verbose_name = _("ONUs")

    def ready(self) -> None:
        """Let every text be searched without its accents."""
        from django.db.backends.signals import connection_created

        from facho.onus.folding import register, teach_to_fold

        register()
        connection_created.connect(teach_to_fold)

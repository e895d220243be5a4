"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OnusConfig(AppConfig):
    name = "facho.onus"
    label = "onus"
    verbose_name = _("ONUs")

    def ready(self) -> None:
        from django.db.backends.signals import connection_created

        from facho.infrastructure.folding import register, teach_to_fold

        register()
        connection_created.connect(teach_to_fold)

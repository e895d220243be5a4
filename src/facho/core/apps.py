"""Registers the app with Django under the specification's label."""

import os

from django.apps import AppConfig
from django.conf import settings
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _

from facho.core.checks import register_checks
from facho.core.database import prefer_indexes
from facho.polling.vendors.loader import use_own_definitions


class CoreConfig(AppConfig):
    """The `core` app."""

    name = "facho.core"
    label = "core"
    verbose_name = _("Facho")

    def ready(self) -> None:
        """Register the checks, the operator's own definitions and the care of sessions, with the settings loaded.

        Every way to start comes by here, so this is where files become their owner's alone.
        """
        os.umask(0o077)
        use_own_definitions(settings.DATA_FOLDER.definitions)
        register_checks()
        connection_created.connect(prefer_indexes)

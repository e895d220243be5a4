"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CoreConfig(AppConfig):
    """The `core` app."""

    name = "facho.core"
    label = "core"
    verbose_name = _("Facho")

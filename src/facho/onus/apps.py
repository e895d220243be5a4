"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OnusConfig(AppConfig):
    """The `onus` app."""

    name = "facho.onus"
    label = "onus"
    verbose_name = _("ONUs")

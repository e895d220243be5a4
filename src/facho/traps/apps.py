"""Registers the app with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TrapsConfig(AppConfig):
    name = "facho.traps"
    label = "traps"
    verbose_name = _("traps")

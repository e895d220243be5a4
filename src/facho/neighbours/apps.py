"""Registers the app with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class NeighboursConfig(AppConfig):
    name = "facho.neighbours"
    label = "neighbours"
    verbose_name = _("other systems")

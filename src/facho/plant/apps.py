"""Registers the app with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PlantConfig(AppConfig):
    name = "facho.plant"
    label = "plant"
    verbose_name = _("fibre plant")

"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class HostsConfig(AppConfig):
    name = "facho.hosts"
    label = "hosts"
    verbose_name = _("OLTs")

"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SnmpGetConfig(AppConfig):
    """The `snmp_get` app."""

    name = "facho.snmp_get"
    label = "snmp_get"
    verbose_name = _("Collectors")

"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ZabbixPollersConfig(AppConfig):
    name = "facho.zabbix_pollers"
    label = "zabbix_pollers"
    verbose_name = _("Pollers")

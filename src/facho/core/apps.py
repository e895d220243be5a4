"""Names the rooms for people, restricts what the product writes, and gives the admin our index.

A room with something to do at the start has an `apps.py` of its own.
"""

import os

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin import apps as admin_apps
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _

from facho.core.checks import register_checks
from facho.core.database import prefer_indexes
from facho.polling.vendors.loader import use_own_definitions


class CoreConfig(AppConfig):
    default = True
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


class FachoAdminConfig(admin_apps.AdminConfig):
    default = False
    default_site = "facho.core.admin_site.FachoAdminSite"


class DashboardConfig(AppConfig):
    name = "facho.dashboard"
    verbose_name = _("Dashboard")


class NeighboursConfig(AppConfig):
    name = "facho.neighbours"
    verbose_name = _("other systems")


class ApiConfig(AppConfig):
    name = "facho.api"
    verbose_name = _("API")


class ZabbixPollersConfig(AppConfig):
    name = "facho.zabbix_pollers"
    verbose_name = _("Pollers")


class PlantConfig(AppConfig):
    name = "facho.plant"
    verbose_name = _("fibre plant")


class TrapsConfig(AppConfig):
    name = "facho.traps"
    verbose_name = _("traps")


class ExecutionsConfig(AppConfig):
    name = "facho.executions"
    verbose_name = _("Executions")


class SnmpGetConfig(AppConfig):
    name = "facho.snmp_get"
    verbose_name = _("Collectors")


class SnmpJobsConfig(AppConfig):
    name = "facho.snmp_jobs"
    verbose_name = _("SNMP jobs")


class AccountsConfig(AppConfig):
    name = "facho.accounts"
    verbose_name = _("Accounts")


class HostsConfig(AppConfig):
    name = "facho.hosts"
    verbose_name = _("OLTs")

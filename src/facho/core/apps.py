"""Names the rooms for people, restricts what the product writes, and gives the admin our index."""

import os

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.admin import apps as admin_apps
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _

from facho.core.checks import register_checks
from facho.core.database import prefer_indexes
from facho.polling.vendors.loader import use_own_definitions

# What people call the rooms that have no `apps.py`.
NAMES = {
    "accounts": _("Accounts"),
    "api": _("API"),
    "dashboard": _("Dashboard"),
    "executions": _("Executions"),
    "hosts": _("OLTs"),
    "neighbours": _("other systems"),
    "plant": _("fibre plant"),
    "snmp_get": _("Collectors"),
    "snmp_jobs": _("SNMP jobs"),
    "traps": _("traps"),
    "zabbix_pollers": _("Pollers"),
}


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
        for label, words in NAMES.items():
            apps.get_app_config(label).verbose_name = words


class FachoAdminConfig(admin_apps.SimpleAdminConfig):
    """Leaves the admin's modules to `urls.py`: only the web needs them, and a process starts 50 ms sooner without."""

    default = False
    default_site = "facho.core.admin_site.FachoAdminSite"

"""Registers the app with Django under the specification's label."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SnmpJobsConfig(AppConfig):
    name = "facho.snmp_jobs"
    label = "snmp_jobs"
    verbose_name = _("SNMP jobs")

"""Writes into the database of a running demo, as a process beside it: the names of its jobs."""

import os
import sys

import django


def main(language: str) -> None:
    """Call the ready-made jobs as an installation in that language does."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "facho.core.settings"
    django.setup()
    from django.utils.translation import gettext, override

    from facho.snmp_jobs.application import JOB_NAMES
    from facho.snmp_jobs.models import SnmpJob

    for name in JOB_NAMES:
        with override("es"):
            names = [name, gettext(name)]
        with override(language):
            SnmpJob.objects.filter(name__in=names).update(name=gettext(name))


if __name__ == "__main__":
    main(sys.argv[1])

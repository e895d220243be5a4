"""Outages for whoever reads them, and the ONUs of one."""

from django.db.models import Count, Q, QuerySet

from facho.hosts.store import OLT_SECRETS
from facho.onus.models import Onu, Outage
from facho.onus.words import OutageScopes


def all_outages() -> QuerySet[Outage]:
    """Return all outages with their OLT, without its secrets, and how many smaller ones are parts of each."""
    return Outage.objects.select_related("olt").defer(*OLT_SECRETS).annotate(part_count=Count("parts"))


def onus_of(outage: Outage) -> QuerySet[Onu]:
    """Return the ONUs of an outage by their places.

    An ONU belongs to the latest outage that took it down. Behind an OLT that was silent nobody could see who went:
    there it is all who were there when it began.
    """
    if outage.scope in (OutageScopes.PON, OutageScopes.CARD):
        members = Q(reading__outage_id=outage.pk)
    else:
        silent = Outage.objects.filter(Q(pk=outage.pk) | Q(part_of_id=outage.pk), scope=OutageScopes.OLT)
        was_there = Q(is_present=True) | Q(absent_since__gte=outage.started_at)
        members = Q(olt_id__in=silent.values("olt_id"), first_seen_at__lte=outage.started_at) & was_there
    return (
        Onu.objects.filter(members)
        .select_related("olt", "pon_port", "reading")
        .defer(*OLT_SECRETS)
        .order_by("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id", "id")
    )

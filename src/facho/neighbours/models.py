"""Which OLT is which device of NetBox, once they have been found to be the same."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt


class NetBoxLink(models.Model):
    """An OLT and its device in NetBox: the same ones whatever either is called later."""

    olt = models.OneToOneField(
        Olt, on_delete=models.CASCADE, primary_key=True, related_name="netbox", verbose_name=_("OLT")
    )
    device_id = models.PositiveBigIntegerField(_("device in NetBox"), unique=True)

    class Meta:
        verbose_name = _("device in NetBox")
        verbose_name_plural = _("devices in NetBox")

    def __str__(self) -> str:
        return f"{self.olt_id}: {self.device_id}"

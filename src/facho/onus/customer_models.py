"""What people write about an ONU's customer; no poll ever touches it."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class OnuCustomer(models.Model):
    """The customer at an ONU, as the provider knows it; it stays with the ONU wherever that is plugged in."""

    onu = models.OneToOneField(
        "onus.Onu", on_delete=models.CASCADE, primary_key=True, related_name="customer", verbose_name=_("ONU")
    )
    label = models.CharField(_("label"), max_length=120, blank=True, help_text=_("Name or number of the customer."))
    address = models.CharField(_("address"), max_length=255, blank=True)
    phone = models.CharField(_("phone"), max_length=40, blank=True)
    notes = models.CharField(_("notes"), max_length=1000, blank=True)
    tags = models.CharField(_("tags"), max_length=255, blank=True, help_text=_("Words, separated by commas."))
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        db_table = "onu_customers"
        verbose_name = _("customer")
        verbose_name_plural = _("customers")
        indexes = [models.Index(fields=["label"], name="onu_customer_label")]

    def __str__(self) -> str:
        return self.label

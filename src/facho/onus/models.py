"""PON ports, ONUs, their latest readings, and the raw value behind each reading."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt
from facho.onus import history_models  # noqa: F401 Django looks for models here


class RunState(models.TextChoices):
    """What the OLT says of an ONU; unknown when nobody could ask."""

    UNKNOWN = "unknown", _("unknown")
    ONLINE = "online", _("online")
    OFFLINE = "offline", _("offline")


class PonPort(models.Model):
    """A PON port by its place in the chassis."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="pon_ports", verbose_name=_("OLT"))
    frame = models.PositiveSmallIntegerField(_("frame"))
    slot = models.PositiveSmallIntegerField(_("slot"))
    port = models.PositiveSmallIntegerField(_("port"))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("PON port")
        verbose_name_plural = _("PON ports")
        ordering = ["olt", "frame", "slot", "port"]
        constraints = [models.UniqueConstraint(fields=["olt", "frame", "slot", "port"], name="one_row_per_pon_port")]

    def __str__(self) -> str:
        return f"{self.frame}/{self.slot}/{self.port}"


class Onu(models.Model):
    """A customer's device, by its serial and by its place. What changes at every poll is in OnuReading."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="onus", verbose_name=_("OLT"))
    pon_port = models.ForeignKey(PonPort, on_delete=models.CASCADE, related_name="onus", verbose_name=_("PON port"))
    onu_id = models.PositiveIntegerField(_("ONU id"))
    serial = models.CharField(_("serial"), max_length=32, blank=True)
    description = models.CharField(_("description"), max_length=255, blank=True)
    is_present = models.BooleanField(_("present"), default=True)
    first_seen_at = models.DateTimeField(_("first seen"))
    absent_since = models.DateTimeField(_("absent since"), null=True, blank=True)
    misses = models.PositiveSmallIntegerField(default=0)

    class Meta:
        verbose_name = _("ONU")
        verbose_name_plural = _("ONUs")
        ordering = ["olt", "pon_port", "onu_id"]
        indexes = [
            models.Index(fields=["serial"], name="onu_serial"),
            models.Index(fields=["olt", "serial"], name="onu_olt_serial"),
        ]
        constraints = [
            # A place holds one present ONU; those that left keep their row and their history.
            models.UniqueConstraint(
                fields=["pon_port", "onu_id"], condition=Q(is_present=True), name="one_present_onu_per_place"
            ),
            models.CheckConstraint(
                condition=Q(is_present=True, absent_since__isnull=True)
                | Q(is_present=False, absent_since__isnull=False),
                name="absent_onu_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return self.serial or f"{self.pon_port}/{self.onu_id}"


class OnuReading(models.Model):
    """The latest state and light of an ONU: narrow, without text indexes, because it changes at every poll."""

    onu = models.OneToOneField(
        Onu, on_delete=models.CASCADE, primary_key=True, related_name="reading", verbose_name=_("ONU")
    )
    run_state = models.CharField(_("state"), max_length=8, choices=RunState.choices, default=RunState.UNKNOWN)
    last_down_cause = models.CharField(_("last down cause"), max_length=20, blank=True)
    distance_m = models.PositiveIntegerField(_("distance (m)"), null=True, blank=True)
    # Hundredths of a dBm: exact, and what the devices send.
    rx_power_cdbm = models.SmallIntegerField(_("receive power (0.01 dBm)"), null=True, blank=True)
    state_since = models.DateTimeField(_("state since"), null=True, blank=True)
    power_at = models.DateTimeField(_("power read"), null=True, blank=True)

    class Meta:
        verbose_name = _("ONU reading")
        verbose_name_plural = _("ONU readings")

    def __str__(self) -> str:
        return f"{self.onu_id}: {self.run_state}"

    @property
    def rx_power_dbm(self) -> float | None:
        """Receive power in dBm."""
        return None if self.rx_power_cdbm is None else self.rx_power_cdbm / 100


class OnuData(models.Model):
    """The latest raw value of an ONU for each OID that was read."""

    onu = models.ForeignKey(Onu, on_delete=models.CASCADE, related_name="data", verbose_name=_("ONU"))
    oid = models.CharField(_("OID"), max_length=255)
    value = models.CharField(_("value"), max_length=255, blank=True)
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        db_table = "onu_data"
        verbose_name = _("ONU value")
        verbose_name_plural = _("ONU values")
        ordering = ["onu", "oid"]
        constraints = [models.UniqueConstraint(fields=["onu", "oid"], name="one_value_per_onu_and_oid")]

    def __str__(self) -> str:
        return f"{self.onu_id} · {self.oid}"

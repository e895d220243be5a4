"""PON ports, ONUs, their latest readings, the raw value behind each reading, and what is remembered of polls."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt
from facho.onus import history_models  # noqa: F401 Django looks for models here
from facho.onus.customer_models import OnuCustomer
from facho.onus.event_models import OnuEvent
from facho.onus.indexes import NullsFirstIndex
from facho.onus.outage_models import Outage
from facho.onus.words import AdminStates, DownCauses, RunState
from facho.polling.domain.onu_events import FLAP_CHANGES

__all__ = ["OltMemory", "Onu", "OnuCustomer", "OnuData", "OnuEvent", "OnuReading", "Outage", "PonPort", "RunState"]

# How a port is written that the OLT does not tell.
UNKNOWN_PORT = "?"


def name_port(frame: int, slot: int, port: int, *, is_known: bool) -> str:
    """Write a port as people do."""
    return f"{frame}/{slot}/{port}" if is_known else UNKNOWN_PORT


class PonPort(models.Model):
    """A PON port by its place in the chassis, or the stand-in for ports that nobody knows."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="pon_ports", verbose_name=_("OLT"))
    frame = models.PositiveSmallIntegerField(_("frame"))
    slot = models.PositiveSmallIntegerField(_("slot"))
    port = models.PositiveSmallIntegerField(_("port"))
    # False where all ONUs of an OLT stand that does not tell their ports: no fibre is shared because of it.
    is_known = models.BooleanField(_("known"), default=True, db_default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("PON port")
        verbose_name_plural = _("PON ports")
        ordering = ["olt", "frame", "slot", "port"]
        constraints = [models.UniqueConstraint(fields=["olt", "frame", "slot", "port"], name="one_row_per_pon_port")]

    def __str__(self) -> str:
        return name_port(self.frame, self.slot, self.port, is_known=self.is_known)


class Onu(models.Model):
    """A customer's device, by its serial and by its place, as its OLT tells it. What often changes is in OnuReading."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="onus", verbose_name=_("OLT"))
    pon_port = models.ForeignKey(PonPort, on_delete=models.CASCADE, related_name="onus", verbose_name=_("PON port"))
    onu_id = models.PositiveIntegerField(_("ONU id"))
    serial = models.CharField(_("serial"), max_length=32, blank=True)
    mac = models.CharField(_("hardware address"), max_length=17, blank=True)
    description = models.CharField(_("description"), max_length=255, blank=True)
    name = models.CharField(_("name"), max_length=255, blank=True)
    model = models.CharField(_("model"), max_length=60, blank=True)
    firmware = models.CharField(_("firmware"), max_length=60, blank=True)
    admin_state = models.CharField(_("admin state"), max_length=8, choices=AdminStates.choices, blank=True)
    is_present = models.BooleanField(_("present"), default=True)
    first_seen_at = models.DateTimeField(_("first seen"))
    absent_since = models.DateTimeField(_("absent since"), null=True, blank=True)
    # Walks that showed that it is not where it was; until one finds it, what is read there may be another's.
    misses = models.PositiveSmallIntegerField(_("misses"), default=0)
    # The latest of them: walks that are close together count as one.
    missed_at = models.DateTimeField(_("last miss"), null=True, blank=True)

    class Meta:
        verbose_name = _("ONU")
        verbose_name_plural = _("ONUs")
        ordering = ["olt", "pon_port", "onu_id"]
        indexes = [
            # With the id behind, because lists are sorted so: many have no serial, one description or one first walk.
            models.Index(fields=["serial", "id"], name="onu_serial"),
            models.Index(fields=["olt", "serial"], name="onu_olt_serial"),
            models.Index(fields=["description", "id"], name="onu_description"),
            models.Index(fields=["first_seen_at", "id"], name="onu_first_seen"),
            models.Index(fields=["absent_since"], name="onu_absent", condition=Q(is_present=False)),
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
    # None for an ONU that was down when it was first looked at: nobody saw it go.
    state_since = models.DateTimeField(_("state since"), null=True, blank=True)
    last_down_cause = models.CharField(_("last down cause"), max_length=20, choices=DownCauses.choices, blank=True)
    # By the clock of the OLT.
    last_up_at = models.DateTimeField(_("last up"), null=True, blank=True)
    last_down_at = models.DateTimeField(_("last down"), null=True, blank=True)
    distance_m = models.PositiveIntegerField(_("distance (m)"), null=True, blank=True)
    # Hundredths of a dBm: exact, and what the devices send.
    rx_power_cdbm = models.SmallIntegerField(_("receive power (0.01 dBm)"), null=True, blank=True)
    tx_power_cdbm = models.SmallIntegerField(_("transmit power (0.01 dBm)"), null=True, blank=True)
    olt_rx_power_cdbm = models.SmallIntegerField(_("receive power at the OLT (0.01 dBm)"), null=True, blank=True)
    temperature_tenths = models.SmallIntegerField(_("temperature (0.1 °C)"), null=True, blank=True)
    voltage_mv = models.PositiveIntegerField(_("voltage (mV)"), null=True, blank=True)
    bias_ua = models.PositiveIntegerField(_("laser bias (µA)"), null=True, blank=True)
    # When the light was read that stands here; later reads found the same.
    power_at = models.DateTimeField(_("power read"), null=True, blank=True)

    # What the rules of `polling.domain` remember of it.
    power_reference_cdbm = models.SmallIntegerField(null=True, blank=True)
    power_reference_at = models.DateTimeField(null=True, blank=True)
    flap_changes = models.PositiveSmallIntegerField(default=0)
    flap_since = models.DateTimeField(null=True, blank=True)
    outage = models.ForeignKey(
        Outage,
        on_delete=models.SET_NULL,
        related_name="readings",
        db_index=False,
        null=True,
        blank=True,
        verbose_name=_("latest outage"),
    )

    class Meta:
        verbose_name = _("ONU reading")
        verbose_name_plural = _("ONU readings")
        indexes = [
            # Lists are narrowed and sorted by these.
            models.Index(fields=["run_state", "rx_power_cdbm", "onu"], name="onu_reading_state"),
            models.Index(fields=["rx_power_cdbm", "onu"], name="onu_reading_power"),
            models.Index(
                fields=["last_down_cause", "run_state", "onu"],
                name="onu_reading_cause",
                condition=~Q(last_down_cause=""),
            ),
            NullsFirstIndex(fields=["state_since", "onu"], name="onu_reading_since"),
            # Most were never in an outage.
            models.Index(fields=["outage"], name="onu_reading_outage", condition=Q(outage__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.onu_id}: {self.run_state}"

    @property
    def rx_power_dbm(self) -> float | None:
        """Receive power in dBm."""
        return _units(self.rx_power_cdbm, 100)

    @property
    def tx_power_dbm(self) -> float | None:
        """Transmit power in dBm."""
        return _units(self.tx_power_cdbm, 100)

    @property
    def olt_rx_power_dbm(self) -> float | None:
        """What arrives of it at the OLT, in dBm."""
        return _units(self.olt_rx_power_cdbm, 100)

    @property
    def temperature_celsius(self) -> float | None:
        """Temperature in degrees Celsius."""
        return _units(self.temperature_tenths, 10)

    @property
    def voltage_v(self) -> float | None:
        """Supply voltage in volts."""
        return _units(self.voltage_mv, 1000)

    @property
    def bias_ma(self) -> float | None:
        """Bias of the laser in milliamperes."""
        return _units(self.bias_ua, 1000)

    @property
    def is_flapping(self) -> bool:
        """Tell whether its changes are too many to be told one by one."""
        return self.flap_changes > FLAP_CHANGES


def _units(steps: int | None, per_unit: int) -> float | None:
    return None if steps is None else steps / per_unit


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


class OltMemory(models.Model):
    """What has to be remembered of an OLT from poll to poll, so that a restart goes on where it was."""

    olt = models.OneToOneField(
        Olt, on_delete=models.CASCADE, primary_key=True, related_name="memory", verbose_name=_("OLT")
    )
    # Until it was walked to the end once, whoever is found is not new.
    walked_at = models.DateTimeField(_("last complete walk"), null=True, blank=True)
    held_at = models.DateTimeField(
        _("walk held back"),
        null=True,
        blank=True,
        help_text=_("A walk lost most of the ONUs at once; it is believed when the next one confirms it."),
    )
    states_at = models.DateTimeField(_("states read"), null=True, blank=True)

    class Meta:
        db_table = "olt_memory"
        verbose_name = _("memory of an OLT")
        verbose_name_plural = _("memories of OLTs")

    def __str__(self) -> str:
        return str(self.olt_id)

"""OLTs with their brands, models, credentials, health and latest values; waiting ONUs and pauses."""

from ipaddress import ip_address
from typing import NamedTuple

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from facho.hosts import history_models  # noqa: F401 Django looks for models here
from facho.infrastructure.secrets import SecretField

DEFAULT_SNMP_PORT = 161
GROUP_IN_USE = _("%(group)s is in use: without it, people, tokens or rules limited to it would reach every OLT.")


class Brand(models.Model):
    name = models.CharField(_("name"), max_length=60, unique=True)

    class Meta:
        verbose_name = _("brand")
        verbose_name_plural = _("brands")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class OltModel(models.Model):
    brand = models.ForeignKey(Brand, on_delete=models.PROTECT, related_name="models", verbose_name=_("brand"))
    name = models.CharField(_("name"), max_length=80)

    class Meta:
        verbose_name = _("OLT model")
        verbose_name_plural = _("OLT models")
        ordering = ["brand__name", "name"]
        constraints = [models.UniqueConstraint(fields=["brand", "name"], name="one_model_name_per_brand")]

    def __str__(self) -> str:
        return f"{self.brand} {self.name}"


class OltGroup(models.Model):
    """A group of OLTs, such as a region; users can be limited to groups."""

    name = models.CharField(_("name"), max_length=60, unique=True)

    class Meta:
        verbose_name = _("OLT group")
        verbose_name_plural = _("OLT groups")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class SnmpVersionChoice(models.TextChoices):
    V1 = "1", "SNMPv1"
    V2C = "2c", "SNMPv2c"
    V3 = "3", "SNMPv3"


class Reachability(models.TextChoices):
    UNKNOWN = "unknown", _("unknown")
    UP = "up", _("answers")
    DOWN = "down", _("does not answer")


class OltAddress(NamedTuple):
    """The host as entered and the address packets are sent to."""

    host: str
    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.host} {self.address} {self.port}"

    def is_left_for(self, other: "OltAddress") -> bool:
        """Whether the operator entered another host or port; the same name with a new address is the same host."""
        return (self.host, self.port) != (other.host, other.port)


class Olt(models.Model):
    """One device, the unit of exclusion: never two operations at a time on one OLT."""

    name = models.CharField(_("name"), max_length=100, unique=True)
    host = models.CharField(_("host"), max_length=253, help_text=_("Name or address, as the operator wrote it."))
    address = models.GenericIPAddressField(_("resolved address"))
    port = models.PositiveIntegerField(
        _("UDP port"), default=DEFAULT_SNMP_PORT, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    vendor = models.CharField(_("vendor definition"), max_length=60, blank=True, help_text=_("Empty until recognised."))
    model = models.ForeignKey(
        OltModel, on_delete=models.SET_NULL, null=True, blank=True, related_name="olts", verbose_name=_("model")
    )
    group = models.ForeignKey(
        OltGroup, on_delete=models.SET_NULL, null=True, blank=True, related_name="olts", verbose_name=_("group")
    )
    enabled = models.BooleanField(_("enabled"), default=True)

    snmp_version = models.CharField(
        _("SNMP version"), max_length=2, choices=SnmpVersionChoice.choices, default=SnmpVersionChoice.V2C
    )
    community = SecretField(_("community"), bound_to="place")
    v3_user = models.CharField(_("SNMPv3 user"), max_length=64, blank=True)
    v3_auth_protocol = models.CharField(_("authentication protocol"), max_length=10, blank=True)
    v3_auth_key = SecretField(_("authentication key"), bound_to="place")
    v3_priv_protocol = models.CharField(_("privacy protocol"), max_length=10, blank=True)
    v3_priv_key = SecretField(_("privacy key"), bound_to="place")

    max_in_flight = models.PositiveSmallIntegerField(
        _("requests in flight"), null=True, blank=True, help_text=_("Empty: what the vendor definition says.")
    )
    packets_per_second = models.PositiveIntegerField(_("packets per second"), null=True, blank=True)

    # Whose workers reach it, in the distributed mode; empty: the default group.
    poller_group = models.CharField(_("poller group"), max_length=40, blank=True, default="", db_default="")

    trap_addresses = models.CharField(
        _("further trap addresses"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_("Addresses that its traps come from besides its own, separated by commas."),
    )

    reachability = models.CharField(
        _("reachability"), max_length=10, choices=Reachability.choices, default=Reachability.UNKNOWN, editable=False
    )
    probes_done = models.PositiveSmallIntegerField(_("unanswered probes"), default=0, editable=False)
    next_probe_at = models.DateTimeField(_("next probe"), null=True, editable=False)
    consecutive_failures = models.PositiveIntegerField(_("failures in a row"), default=0, editable=False)
    last_answer_at = models.DateTimeField(_("last answer"), null=True, editable=False)
    last_error = models.CharField(_("last error"), max_length=300, blank=True, editable=False)
    sys_name = models.CharField(_("system name"), max_length=255, blank=True, editable=False)
    sys_descr = models.CharField(_("system description"), max_length=255, blank=True, editable=False)
    sys_object_id = models.CharField(_("system OID"), max_length=255, blank=True, editable=False)
    # When its first discovery was over: complete, or given up with what it had found. Reads of ONUs wait for it.
    discovered_at = models.DateTimeField(_("first discovered"), null=True, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        verbose_name = _("OLT")
        verbose_name_plural = _("OLTs")
        ordering = ["name"]
        constraints = [
            # Two rows for one device would be two claims on it.
            models.UniqueConstraint(
                fields=["address", "port"],
                name="one_olt_per_address_and_port",
                violation_error_message=_("Another OLT already has this address and port."),
            ),
            models.CheckConstraint(condition=models.Q(port__gte=1, port__lte=65535), name="olt_port_is_a_port"),
            models.CheckConstraint(
                condition=models.Q(snmp_version__in=SnmpVersionChoice.values), name="olt_snmp_version_is_known"
            ),
            models.CheckConstraint(
                condition=models.Q(max_in_flight__isnull=True) | models.Q(max_in_flight__gte=1),
                name="olt_in_flight_is_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def trap_sources(self) -> list[str]:
        return [str(ip_address(text.strip())) for text in self.trap_addresses.split(",") if text.strip()]

    @property
    def place(self) -> OltAddress:
        """Where it is reached; its secrets are bound to it."""
        return OltAddress(self.host, self.address, self.port)


class LearnedSize(models.Model):
    """Rows of a set of columns that fit into one packet, as the last run found."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="learned_sizes", verbose_name=_("OLT"))
    subject = models.CharField(_("columns"), max_length=255)
    rows = models.PositiveSmallIntegerField(_("rows"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        verbose_name = _("learned size")
        verbose_name_plural = _("learned sizes")
        ordering = ["olt", "subject"]
        constraints = [
            models.UniqueConstraint(fields=["olt", "subject"], name="one_learned_size_per_olt_and_columns"),
            models.CheckConstraint(condition=models.Q(rows__gte=1), name="learned_size_is_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.olt} · {self.subject}: {self.rows}"


class OltData(models.Model):
    """The latest value of each OID and row that is not about one ONU."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="data", verbose_name=_("OLT"))
    oid = models.CharField(_("OID"), max_length=255)
    index = models.CharField(
        _("index"), max_length=128, blank=True, help_text=_("Row of a table; empty: a single value.")
    )
    name = models.CharField(_("name"), max_length=60, blank=True)
    place = models.CharField(_("place"), max_length=60, blank=True)
    value = models.CharField(
        _("value"),
        max_length=255,
        blank=True,
        help_text=_("In its unit; empty if the device sent an impossible value."),
    )
    unit = models.CharField(_("unit"), max_length=20, blank=True)
    raw = models.CharField(_("raw value"), max_length=255, blank=True)
    per_second = models.FloatField(_("per second"), null=True, blank=True, help_text=_("Rate of the counter."))
    updated_at = models.DateTimeField(_("read"))

    class Meta:
        db_table = "olt_data"
        verbose_name = _("OLT value")
        verbose_name_plural = _("OLT values")
        ordering = ["olt", "name", "oid", "id"]
        constraints = [models.UniqueConstraint(fields=["olt", "oid", "index"], name="one_value_per_olt_oid_and_index")]

    def __str__(self) -> str:
        return f"{self.olt_id} · {self.name or self.oid} {self.place or self.index}".rstrip()


class WaitingOnu(models.Model):
    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="waiting_onus", verbose_name=_("OLT"))
    frame = models.PositiveSmallIntegerField(_("frame"))
    slot = models.PositiveSmallIntegerField(_("slot"))
    port = models.PositiveSmallIntegerField(_("port"))
    serial = models.CharField(_("serial"), max_length=32)
    model = models.CharField(_("model"), max_length=60, blank=True)
    first_seen_at = models.DateTimeField(_("waiting since"))
    last_seen_at = models.DateTimeField(_("last seen"))

    class Meta:
        db_table = "waiting_onus"
        verbose_name = _("waiting ONU")
        verbose_name_plural = _("waiting ONUs")
        ordering = ["-first_seen_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["olt", "frame", "slot", "port", "serial"], name="one_waiting_onu_per_port_and_serial"
            )
        ]

    def __str__(self) -> str:
        return self.serial

    @property
    def pon_port(self) -> str:
        return f"{self.frame}/{self.slot}/{self.port}"


class Pause(models.Model):
    """A period without polling and without new alerts, or without new alerts alone; it always has an end."""

    olt = models.ForeignKey(
        Olt, on_delete=models.CASCADE, null=True, blank=True, related_name="pauses", verbose_name=_("OLT")
    )
    starts_at = models.DateTimeField(_("from"))
    ends_at = models.DateTimeField(_("to"))
    note = models.CharField(_("note"), max_length=200, blank=True)
    keeps_polling = models.BooleanField(
        _("polling continues"), default=False, db_default=False, help_text=_("Only its alerts are silenced.")
    )

    class Meta:
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")
        ordering = ["-starts_at"]
        indexes = [models.Index(fields=["ends_at"], name="pause_end")]
        constraints = [
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="pause_ends_after_start")
        ]

    def __str__(self) -> str:
        return f"{self.olt or _('everything')}: {self.starts_at:%Y-%m-%d %H:%M} - {self.ends_at:%H:%M}"

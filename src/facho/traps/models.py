"""What OLTs said by themselves, who else sent notifications, and the receivers that heard them."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt
from facho.onus.models import Onu, PonPort
from facho.polling.domain.hints import HintOutcome, Meaning
from facho.polling.snmp.notifications import Refused


class Meanings(models.TextChoices):
    """The domain's meanings with their words for people."""

    ONU_DOWN = Meaning.ONU_DOWN.value, _("ONU down")
    ONU_UP = Meaning.ONU_UP.value, _("ONU up")
    ONU_LOS = Meaning.ONU_LOS.value, _("loss of signal of an ONU")
    ONU_DYING_GASP = Meaning.ONU_DYING_GASP.value, _("dying gasp")
    ONU_DISCOVERED = Meaning.ONU_DISCOVERED.value, _("ONU found")
    PON_LOS = Meaning.PON_LOS.value, _("loss of signal of a PON port")
    PON_DOWN = Meaning.PON_DOWN.value, _("PON port down")
    PON_UP = Meaning.PON_UP.value, _("PON port up")
    BOARD_DOWN = Meaning.BOARD_DOWN.value, _("card down")
    BOARD_UP = Meaning.BOARD_UP.value, _("card up")
    DEVICE_RESTART = Meaning.DEVICE_RESTART.value, _("restart")
    OPTICAL_WARNING = Meaning.OPTICAL_WARNING.value, _("optical warning")
    POWER = Meaning.POWER.value, _("power")
    FAN = Meaning.FAN.value, _("fan")
    TEMPERATURE = Meaning.TEMPERATURE.value, _("temperature")
    OTHER = Meaning.OTHER.value, _("other")


class Outcomes(models.TextChoices):
    """The domain's outcomes with their words for people."""

    OPEN = HintOutcome.OPEN.value, _("being read")
    CONFIRMED = HintOutcome.CONFIRMED.value, _("confirmed")
    NOT_CONFIRMED = HintOutcome.NOT_CONFIRMED.value, _("not confirmed")
    NOT_READ = HintOutcome.NOT_READ.value, _("not read")


class Reasons(models.TextChoices):
    UNKNOWN_SENDER = "unknown_sender", _("not the address of an OLT")
    AMBIGUOUS = "ambiguous", _("several OLTs have this address")
    RATE = "rate", _("too many at once")
    BUFFER = "buffer", _("faster than they could be read")
    MALFORMED = Refused.MALFORMED.value, _("not valid SNMP")
    VERSION = Refused.VERSION.value, _("another SNMP version")
    COMMUNITY = Refused.COMMUNITY.value, _("wrong community")
    USER = Refused.USER.value, _("unknown SNMPv3 user")
    LEVEL = Refused.LEVEL.value, _("less protected than the OLT's credentials")
    SIGNATURE = Refused.SIGNATURE.value, _("wrong signature")
    TIME = Refused.TIME.value, _("outside the time window")


class Trap(models.Model):
    """One notification that counted. `repeats` counts the same one sent again."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="traps", db_index=False, verbose_name=_("OLT"))
    heard_at = models.DateTimeField(_("heard"))
    oid = models.CharField(_("OID"), max_length=255)
    name = models.CharField(_("name"), max_length=120, blank=True)
    meaning = models.CharField(_("meaning"), max_length=20, choices=Meanings.choices)
    is_end = models.BooleanField(_("ends a condition"), default=False)
    # As the OLT numbers them; a part that it does not name is empty.
    frame = models.PositiveIntegerField(_("frame"), null=True, blank=True)
    slot = models.PositiveIntegerField(_("slot"), null=True, blank=True)
    port = models.PositiveIntegerField(_("port"), null=True, blank=True)
    onu_number = models.PositiveIntegerField(_("ONU id"), null=True, blank=True)
    pon_port = models.ForeignKey(
        PonPort, on_delete=models.CASCADE, null=True, blank=True, related_name="traps", db_index=False
    )
    onu = models.ForeignKey(Onu, on_delete=models.CASCADE, null=True, blank=True, related_name="traps", db_index=False)
    serial = models.CharField(_("serial"), max_length=32, blank=True)
    # Of a notification that no definition knows: what it carried, as [OID, type, text], bounded.
    values = models.JSONField(_("values"), null=True, blank=True)
    # The same notification has the same: two receivers, or a sender that repeats, make one row. Cleared when it
    # comes again much later.
    fingerprint = models.CharField(max_length=32, null=True, blank=True)  # noqa: DJ001 - NULLs are never equal
    repeats = models.PositiveIntegerField(_("repeats"), default=0)
    outcome = models.CharField(_("outcome"), max_length=15, choices=Outcomes.choices, blank=True)
    settled_at = models.DateTimeField(_("read"), null=True, blank=True)

    class Meta:
        db_table = "traps"
        verbose_name = _("trap")
        verbose_name_plural = _("traps")
        ordering = ["-heard_at", "-id"]
        indexes = [
            models.Index(fields=["heard_at"], name="trap_heard"),
            models.Index(fields=["olt", "heard_at"], name="trap_of_olt"),
            models.Index(fields=["onu", "heard_at"], name="trap_of_onu", condition=models.Q(onu__isnull=False)),
            models.Index(
                fields=["pon_port", "heard_at"], name="trap_of_port", condition=models.Q(pon_port__isnull=False)
            ),
            models.Index(fields=["heard_at"], name="trap_open", condition=models.Q(outcome="")),
        ]
        constraints = [models.UniqueConstraint(fields=["olt", "fingerprint"], name="one_row_per_trap")]

    def __str__(self) -> str:
        return f"{self.olt_id} · {self.meaning} · {self.heard_at:%Y-%m-%d %H:%M:%S}"

    @property
    def place(self) -> str:
        """The place as the OLT named it, without the parts that it left out."""
        return "/".join(str(part) for part in (self.frame, self.slot, self.port, self.onu_number) if part is not None)


class TrapSender(models.Model):
    """Notifications that did not count, by the address they came from and the reason."""

    address = models.GenericIPAddressField(_("address"))
    reason = models.CharField(_("reason"), max_length=15, choices=Reasons.choices)
    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    count = models.PositiveBigIntegerField(_("number"), default=0)
    first_heard_at = models.DateTimeField(_("first heard"))
    last_heard_at = models.DateTimeField(_("last heard"))

    class Meta:
        db_table = "trap_senders"
        verbose_name = _("sender of rejected traps")
        verbose_name_plural = _("senders of rejected traps")
        ordering = ["-last_heard_at"]
        indexes = [models.Index(fields=["last_heard_at"], name="trap_sender_heard")]
        constraints = [models.UniqueConstraint(fields=["address", "reason"], name="one_sender_per_address_and_reason")]

    def __str__(self) -> str:
        return f"{self.address} · {self.reason} · {self.count}"


class OltTraps(models.Model):
    """How many notifications of an OLT counted, when the last one came, and the clock of its SNMPv3 engine."""

    olt = models.OneToOneField(Olt, on_delete=models.CASCADE, primary_key=True, related_name="trap_sums")
    heard = models.PositiveBigIntegerField(_("heard"), default=0)
    last_heard_at = models.DateTimeField(_("last heard"))
    # In hexadecimal digits; empty until it sent a signed one.
    engine_id = models.CharField(_("engine id"), max_length=64, blank=True)
    engine_boots = models.PositiveBigIntegerField(default=0)
    engine_time = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = _("traps of an OLT")
        verbose_name_plural = _("traps of OLTs")

    def __str__(self) -> str:
        return f"{self.olt_id}: {self.heard}"


class TrapReceiver(models.Model):
    """A receiver: informs of SNMPv3 are addressed to its engine, whose starts are counted."""

    name = models.CharField(_("name"), max_length=100, primary_key=True)
    engine_id = models.CharField(_("engine id"), max_length=64)
    engine_boots = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(_("started"))
    seen_at = models.DateTimeField(_("seen"))
    heard = models.PositiveBigIntegerField(_("heard"), default=0)
    dropped = models.PositiveBigIntegerField(_("dropped"), default=0)

    class Meta:
        verbose_name = _("trap receiver")
        verbose_name_plural = _("trap receivers")

    def __str__(self) -> str:
        return self.name


class TrapSwitch(models.Model):
    """Whether notifications are heard; one row, off until a person switches it on."""

    is_on = models.BooleanField(_("traps are heard"), default=False)

    class Meta:
        verbose_name = _("trap switch")
        verbose_name_plural = _("trap switches")

    def __str__(self) -> str:
        return str(self.is_on)

"""What was inferred from light: findings with their evidence, and the box that each ONU seems to hang on."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.onus.models import Onu, PonPort


class FindingKinds(models.TextChoices):
    COMMON_STEP = "common_step", _("light lost in common")
    DECAY = "decay", _("light that decays")


class LightFinding(models.Model):
    """Something that the light of a port or of one ONU shows. Open until its light is back or the decay has ended."""

    kind = models.CharField(_("kind"), max_length=12, choices=FindingKinds.choices)
    pon_port = models.ForeignKey(
        PonPort, on_delete=models.CASCADE, related_name="light_findings", db_index=False, verbose_name=_("PON port")
    )
    # Empty: of several ONUs, see `members`.
    onu = models.ForeignKey(
        Onu, on_delete=models.CASCADE, related_name="light_findings", null=True, blank=True, verbose_name=_("ONU")
    )
    # The poll before which the light was lost, or the day since which it decays.
    since = models.DateTimeField(_("since"))
    found_at = models.DateTimeField(_("found"))
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    # dB lost at once, or dB lost per day.
    size_db = models.FloatField(_("dB"))
    # ONUs of the port that were read at that time.
    onus_read = models.PositiveIntegerField(_("ONUs read"), default=0)
    # Of a decay: when it crosses the limit, in days from `judged_at`.
    judged_at = models.DateTimeField(_("judged"))
    level_dbm = models.FloatField(_("level in dBm"), null=True, blank=True)
    days_soonest = models.FloatField(_("days, soonest"), null=True, blank=True)
    days_likely = models.FloatField(_("days, likely"), null=True, blank=True)
    days_latest = models.FloatField(_("days, latest"), null=True, blank=True)

    class Meta:
        verbose_name = _("finding in the light")
        verbose_name_plural = _("findings in the light")
        ordering = ["-since", "-id"]
        indexes = [
            models.Index(fields=["pon_port", "since"], name="light_finding_of_port"),
            models.Index(fields=["ended_at", "kind"], name="light_finding_end"),
            models.Index(fields=["since"], name="light_finding_since"),
        ]
        constraints = [
            # Watching the same polls again, after a restart, finds the same.
            models.UniqueConstraint(
                fields=["pon_port", "since"], condition=Q(kind="common_step"), name="one_common_step_per_poll"
            ),
            models.UniqueConstraint(
                fields=["onu"], condition=Q(kind="decay", ended_at__isnull=True), name="one_open_decay_per_onu"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pon_port_id} {self.since}"


class FindingOnu(models.Model):
    """One ONU of a finding of several, and whether it was hit or only read at that time."""

    finding = models.ForeignKey(LightFinding, on_delete=models.CASCADE, related_name="members", db_index=False)
    onu = models.ForeignKey(Onu, on_delete=models.CASCADE, related_name="+")
    is_hit = models.BooleanField()
    size_db = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["finding", "onu"], name="one_row_per_finding_and_onu")]

    def __str__(self) -> str:
        return f"{self.finding_id} · {self.onu_id}"


class OnuBox(models.Model):
    """The box of an ONU within its port: a number without a meaning of its own, and how sure it is, from 0 to 1."""

    onu = models.OneToOneField(Onu, on_delete=models.CASCADE, related_name="box")
    pon_port = models.ForeignKey(PonPort, on_delete=models.CASCADE, related_name="+", verbose_name=_("PON port"))
    number = models.PositiveSmallIntegerField(_("box"))
    confidence = models.FloatField(_("confidence"))
    # Common events that it rests on; without any it is distance alone.
    events = models.PositiveSmallIntegerField(_("events"), default=0)

    class Meta:
        verbose_name = _("box of an ONU")
        verbose_name_plural = _("boxes of ONUs")

    def __str__(self) -> str:
        return f"{self.onu_id} · {self.number}"


class PortDays(models.Model):
    """The light of a PON port's ONUs by day, for as many days as decays are judged by; one block."""

    pon_port = models.OneToOneField(PonPort, on_delete=models.CASCADE, related_name="+")
    # The last day in it, by its end.
    ends_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["ends_at"], name="port_days_end")]

    def __str__(self) -> str:
        return f"{self.pon_port_id} · {self.ends_at}"

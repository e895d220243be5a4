"""The fibre plant: zones and boxes as people know them, and what was inferred from light, with its evidence."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from facho.onus.models import Onu, PonPort
from facho.polling.domain.light import LightHint


class FindingKinds(models.TextChoices):
    COMMON_STEP = "common_step", _("light lost in common")
    BRANCH_DECAY = "branch_decay", _("degraded branch")
    STEP = "step", _("light lost by one ONU")
    DECAY = "decay", _("decaying light")
    SENDER = "sender", _("ONU that sends weaker")
    NOISE = "noise", _("unsteady light")
    FLAPPING = "flapping", _("flapping light")


class LightHints(models.TextChoices):
    """What a loss is probably due to, by what the other direction lost."""

    CONNECTOR = LightHint.CONNECTOR.value, _("both directions lost the same: a connector, a splice or dirt")
    BEND = LightHint.BEND.value, _("the ONU lost more than the OLT: a bent fibre")
    RECEIVER = LightHint.RECEIVER.value, _("the OLT receives as before: the ONU's receiver, or another ONU")
    TRANSMITTER = LightHint.TRANSMITTER.value, _("the OLT lost more than the ONU: the ONU's transmitter")


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
    # dB lost at once (negative), dB lost per day, or dB of noise.
    size_db = models.FloatField(_("dB"))
    # From 0 to 1.
    confidence = models.FloatField(_("confidence"), default=0.0, db_default=0.0)
    # What the OLT receives less of the same ONUs, as `size_db`; empty where its family does not report it.
    upstream_db = models.FloatField(_("dB upstream"), null=True, blank=True)
    hint = models.CharField(_("hint"), max_length=12, choices=LightHints.choices, blank=True, default="", db_default="")
    # How often a day it left its level, or by what factor its noise grew.
    times = models.FloatField(_("times"), null=True, blank=True)
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
                fields=["onu", "kind"], condition=Q(onu__isnull=False, ended_at__isnull=True), name="one_open_per_onu"
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
    # Whether a person said so.
    is_told = models.BooleanField(_("corrected by hand"), default=False, db_default=False)

    class Meta:
        verbose_name = _("box of an ONU")
        verbose_name_plural = _("boxes of ONUs")

    def __str__(self) -> str:
        return f"{self.onu_id} · {self.number}"


class TreeCorrection(models.Model):
    """What a person said of a port's tree: some ONUs share a box, and others are not in it. It wins until removed."""

    pon_port = models.ForeignKey(
        PonPort, on_delete=models.CASCADE, related_name="tree_corrections", verbose_name=_("PON port")
    )
    made_at = models.DateTimeField(_("made"))
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", verbose_name=_("made by")
    )
    # Ids of ONUs; those that moved or were deleted since count no more.
    together = models.JSONField(_("together"))
    apart = models.JSONField(_("apart"))

    class Meta:
        verbose_name = _("correction of a tree")
        verbose_name_plural = _("corrections of trees")
        ordering = ["made_at", "id"]

    def __str__(self) -> str:
        return f"{self.pon_port} {self.made_at:%Y-%m-%d %H:%M}"


class PortDays(models.Model):
    """The light of a PON port's ONUs by day, for as many days as decays are judged by; one block of some series."""

    pon_port = models.OneToOneField(PonPort, on_delete=models.CASCADE, related_name="+")
    # The last day in it, by its end.
    ends_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["ends_at"], name="port_days_end")]

    def __str__(self) -> str:
        return f"{self.pon_port_id} · {self.ends_at}"


class BoxKinds(models.TextChoices):
    """What customers are connected to, or what only feeds other boxes."""

    CTO = "cto", _("CTO / NAP")
    SPLITTER = "splitter", _("splitter")


class AttachmentSources(models.TextChoices):
    """Source of an ONU's box; earlier members win over later ones."""

    HAND = "hand", _("by hand")
    IMPORT = "import", _("imported")
    INFERRED = "inferred", _("inferred")


def _on_earth(name: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        # A comparison with NULL is not false, so one without the other has to be named.
        condition=Q(latitude__isnull=True, longitude__isnull=True)
        | Q(latitude__isnull=False, longitude__isnull=False)
        & Q(latitude__range=(-90, 90), longitude__range=(-180, 180)),
        name=name,
    )


class Zone(models.Model):
    """A part of the town or of the network. Its point is where the map writes its name."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    latitude = models.FloatField(_("latitude"), null=True, blank=True)
    longitude = models.FloatField(_("longitude"), null=True, blank=True)

    class Meta:
        verbose_name = _("zone")
        verbose_name_plural = _("zones")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="zone_has_a_name"),
            _on_earth("zone_is_on_earth"),
        ]

    def __str__(self) -> str:
        return self.name


class Box(models.Model):
    """A place where fibres are split: what people call CTO or NAP, or a splitter before such boxes.

    A box behind another one is on the same PON port.
    """

    name = models.CharField(_("name"), max_length=80, unique=True)
    kind = models.CharField(_("kind"), max_length=8, choices=BoxKinds.choices, default=BoxKinds.CTO)
    zone = models.ForeignKey(
        Zone, on_delete=models.SET_NULL, related_name="boxes", null=True, blank=True, verbose_name=_("zone")
    )
    # The box before it, seen from the OLT.
    parent = models.ForeignKey(
        "self", on_delete=models.SET_NULL, related_name="children", null=True, blank=True, verbose_name=_("fed by")
    )
    pon_port = models.ForeignKey(
        PonPort, on_delete=models.SET_NULL, related_name="boxes", null=True, blank=True, verbose_name=_("PON port")
    )
    latitude = models.FloatField(_("latitude"), null=True, blank=True)
    longitude = models.FloatField(_("longitude"), null=True, blank=True)
    # 8 means 1:8.
    outputs = models.PositiveSmallIntegerField(
        _("outputs"), null=True, blank=True, help_text=_("How many fibres leave its splitter: 8 for 1:8.")
    )

    class Meta:
        verbose_name = _("box")
        verbose_name_plural = _("boxes")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="box_has_a_name"),
            models.CheckConstraint(condition=Q(kind__in=BoxKinds.values), name="box_kind_is_known"),
            models.CheckConstraint(
                condition=Q(parent__isnull=True) | ~Q(parent=F("id")), name="box_does_not_feed_itself"
            ),
            models.CheckConstraint(condition=Q(outputs__isnull=True) | Q(outputs__range=(2, 256)), name="box_splits"),
            _on_earth("box_is_on_earth"),
        ]

    def __str__(self) -> str:
        return self.name


class OnuAttachment(models.Model):
    onu = models.OneToOneField(
        Onu, on_delete=models.CASCADE, primary_key=True, related_name="attachment", verbose_name=_("ONU")
    )
    box = models.ForeignKey(Box, on_delete=models.CASCADE, related_name="attachments", verbose_name=_("box"))
    source = models.CharField(_("source"), max_length=8, choices=AttachmentSources.choices)

    class Meta:
        verbose_name = _("ONU on a box")
        verbose_name_plural = _("ONUs on boxes")
        constraints = [
            models.CheckConstraint(condition=Q(source__in=AttachmentSources.values), name="attachment_source_is_known")
        ]

    def __str__(self) -> str:
        return f"{self.onu_id} · {self.box_id}"


class MonthRun(models.Model):
    """How far the figures of a month are computed, port by port; what they cover ends where it began to compute."""

    # The first day of the month.
    month = models.DateField(_("month"), primary_key=True)
    covers_until = models.DateTimeField(_("covers until"))
    # What was before is known by the hour only.
    hourly_until = models.DateTimeField(_("by the hour until"), null=True, blank=True)
    # The last port that is done.
    done_port = models.BigIntegerField(default=0)
    finished_at = models.DateTimeField(_("computed"), null=True, blank=True)
    # Whether all of the month is in it: it is not computed again by itself.
    is_final = models.BooleanField(_("final"), default=False)
    wanted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("computed month")
        verbose_name_plural = _("computed months")
        ordering = ["-month"]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


class PortMonth(models.Model):
    """The days of a month that are over, of a PON port: what the next figures of the month begin with."""

    pon_port = models.OneToOneField(PonPort, on_delete=models.CASCADE, related_name="+")
    month = models.DateField()
    # The midnight up to which it counts.
    until = models.DateTimeField()
    # Of the maintenance before: with any other, the days are computed again.
    planned_crc = models.BigIntegerField()
    data = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["month"], name="port_month_month")]

    def __str__(self) -> str:
        return f"{self.pon_port_id} · {self.month:%Y-%m}"


class OnuMonth(models.Model):
    """Where the time of an ONU went in a month, its light, and its largest lasting rise."""

    month = models.DateField()
    onu = models.ForeignKey(Onu, on_delete=models.CASCADE, related_name="months", verbose_name=_("ONU"))
    # Where it was when the month was computed.
    pon_port = models.ForeignKey(
        PonPort, on_delete=models.CASCADE, related_name="+", db_index=False, verbose_name=_("PON port")
    )
    olt = models.ForeignKey("hosts.Olt", on_delete=models.CASCADE, related_name="+", db_index=False)
    up_seconds = models.PositiveIntegerField()
    down_seconds = models.PositiveIntegerField()
    unknown_seconds = models.PositiveIntegerField()
    planned_seconds = models.PositiveIntegerField()
    interruptions = models.PositiveIntegerField()
    longest_down_seconds = models.PositiveIntegerField()
    # Median of the month and lowest day, in hundredths of a dBm.
    light_cdbm = models.SmallIntegerField(null=True)
    lowest_day_cdbm = models.SmallIntegerField(null=True)
    # Days whose median was too weak.
    weak_days = models.PositiveSmallIntegerField(default=0)
    rise_on = models.DateField(null=True)
    rise_before_cdbm = models.SmallIntegerField(null=True)
    rise_after_cdbm = models.SmallIntegerField(null=True)

    class Meta:
        verbose_name = _("month of an ONU")
        verbose_name_plural = _("months of ONUs")
        constraints = [models.UniqueConstraint(fields=["month", "onu"], name="one_row_per_month_and_onu")]
        indexes = [
            models.Index(fields=["month", "olt"], name="onu_month_of_olt"),
            models.Index(fields=["month", "down_seconds"], name="onu_month_down"),
        ]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m} · {self.onu_id}"

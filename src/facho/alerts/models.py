"""Rules, what they found, the channels that tell people, and every message with what became of it."""

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import Acknowledgeable
from facho.hosts.models import Olt, OltGroup
from facho.hosts.secrets import SecretField


class Kind(models.TextChoices):
    """What a rule looks for."""

    QUOTA_VIOLATED = "quota_violated", _("quota violated")
    QUOTA_AT_RISK = "quota_at_risk", _("quota at risk")
    NODE_SUSPENDED = "node_suspended", _("node suspended")
    OLT_UNREACHABLE = "olt_unreachable", _("OLT unreachable")
    NETWORK_LOST = "network_lost", _("poller lost its network")
    POLLERS_SATURATED = "pollers_saturated", _("pollers saturated")
    QUEUE_OVERLOAD = "queue_overload", _("queue overload")
    NO_LEADER = "no_leader", _("no scheduler leads")
    MESSAGES_NOT_TAKEN = "messages_not_taken", _("nobody takes messages")
    PON_OUTAGE = "pon_outage", _("PON outage")
    WEAK_LIGHT = "weak_light", _("weak light")
    POWER_STEP = "power_step", _("power step")
    ONU_WAITING = "onu_waiting", _("ONU waits for authorisation")


class Severity(models.TextChoices):
    """How loud a rule is."""

    INFO = "info", _("information")
    WARNING = "warning", _("warning")
    CRITICAL = "critical", _("critical")


class ChannelKind(models.TextChoices):
    """How a channel tells people."""

    APPRISE = "apprise", _("message service")
    WEBHOOK = "webhook", _("signed webhook")


class AlertChannel(models.Model):
    """A way to tell people; its address is a secret, since it holds passwords and tokens."""

    name = models.CharField(_("name"), max_length=60, unique=True)
    kind = models.CharField(_("kind"), max_length=10, choices=ChannelKind.choices, default=ChannelKind.APPRISE)
    url = SecretField(_("address"))
    # What may be shown of it: never more than how it tells and which server.
    shown_as = models.CharField(_("address shown as"), max_length=300, editable=False)
    signing_key = SecretField(_("signing key"), help_text=_("Of a webhook: what its messages are signed with."))
    language = models.CharField(_("language"), max_length=5, blank=True, help_text=_("Empty: the installation's."))
    enabled = models.BooleanField(_("enabled"), default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("alert channel")
        verbose_name_plural = _("alert channels")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AlertRule(models.Model):
    """What to look for, when it counts, and whom to tell."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    kind = models.CharField(_("looks for"), max_length=20, choices=Kind.choices)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices, default=Severity.WARNING)
    enabled = models.BooleanField(_("enabled"), default=True)
    threshold = models.FloatField(
        _("threshold"), null=True, blank=True, help_text=_("In the unit of what it looks for; empty: the usual one.")
    )
    clear_margin = models.FloatField(
        _("clear margin"),
        default=0,
        validators=[MinValueValidator(0)],
        help_text=_("How far beyond the threshold a value must come back."),
    )
    hold_minutes = models.PositiveSmallIntegerField(
        _("hold minutes"), default=0, help_text=_("It must last so long before anybody is told.")
    )
    clear_minutes = models.PositiveSmallIntegerField(
        _("clear minutes"), default=0, help_text=_("It must be over for so long before it counts as resolved.")
    )
    quiet_from = models.TimeField(_("quiet from"), null=True, blank=True)
    quiet_to = models.TimeField(_("quiet to"), null=True, blank=True)
    olt_group = models.ForeignKey(
        OltGroup, on_delete=models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("OLT group")
    )
    channels = models.ManyToManyField(AlertChannel, blank=True, related_name="rules", verbose_name=_("channels"))
    sends_resolved = models.BooleanField(_("tells when it is over"), default=True)
    escalate_minutes = models.PositiveSmallIntegerField(
        _("escalates after minutes"), null=True, blank=True, help_text=_("If nobody acknowledged it; empty: never.")
    )
    escalation_channels = models.ManyToManyField(
        AlertChannel, blank=True, related_name="escalation_rules", verbose_name=_("escalation channels")
    )

    class Meta:
        verbose_name = _("alert rule")
        verbose_name_plural = _("alert rules")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
                name="quiet_hours_have_both_ends",
                violation_error_message=_("Quiet hours need both their beginning and their end."),
            ),
            # On a clock that would be all day: a rule that never tells anything.
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True) | ~Q(quiet_from=F("quiet_to")),
                name="quiet_hours_end",
                violation_error_message=_("Quiet hours must end at another time than they begin."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AlertState(models.TextChoices):
    """Where an alert stands."""

    PENDING = "pending", _("noticed")
    FIRING = "firing", _("firing")
    RESOLVED = "resolved", _("resolved")


class Alert(Acknowledgeable):
    """One thing that a rule found wrong, from its first sight to its end; its times are those of an alert's course."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts", verbose_name=_("rule"))
    subject = models.CharField(_("subject"), max_length=120, help_text=_("What is wrong, as a key."))
    olt = models.ForeignKey(
        Olt, on_delete=models.CASCADE, null=True, blank=True, related_name="alerts", verbose_name=_("OLT")
    )
    state = models.CharField(_("state"), max_length=10, choices=AlertState.choices, default=AlertState.PENDING)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices)
    # What its sentences are made of, in every language.
    facts = models.JSONField(_("facts"), default=dict)
    # Where it is, from the large to the small: what comes together is told together.
    place = models.CharField(_("place"), max_length=60, blank=True)
    began_at = models.DateTimeField(_("since"))
    fired_at = models.DateTimeField(_("fires since"), null=True, blank=True)
    # When its message was written; quiet hours put that off.
    told_at = models.DateTimeField(_("told"), null=True, blank=True)
    escalated_at = models.DateTimeField(_("escalated"), null=True, blank=True)
    # Since when it does not look wrong any more, while that has not lasted long enough.
    calm_since = models.DateTimeField(_("calm since"), null=True, blank=True)
    resolved_at = models.DateTimeField(_("resolved"), null=True, blank=True)
    is_flapping = models.BooleanField(_("flapping"), default=False)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering = ["-began_at", "-id"]
        indexes = [
            models.Index(fields=["state", "began_at"], name="alert_state_began"),
            models.Index(fields=["began_at"], name="alert_began"),
            models.Index(fields=["resolved_at"], name="alert_resolved"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "subject"], condition=Q(resolved_at=None), name="one_open_alert_per_rule_and_subject"
            ),
            models.CheckConstraint(
                condition=Q(state="resolved", resolved_at__isnull=False)
                | (~Q(state="resolved") & Q(resolved_at__isnull=True)),
                name="resolved_alert_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule} · {self.subject}"


class NoticeKind(models.TextChoices):
    """Why a message is sent."""

    OPENED = "opened", _("opened")
    RESOLVED = "resolved", _("resolved")
    ESCALATED = "escalated", _("escalated")
    TEST = "test", _("test")


class NoticeState(models.TextChoices):
    """What became of a message."""

    WAITING = "waiting", _("waiting")
    SENT = "sent", _("sent")
    FAILED = "failed", _("given up")


class Notice(models.Model):
    """One message for one channel: written in the transaction that decided it, delivered later, kept as the log."""

    key = models.CharField(_("key"), max_length=64, unique=True, help_text=_("The same message never twice."))
    channel = models.ForeignKey(
        AlertChannel, on_delete=models.CASCADE, related_name="notices", verbose_name=_("channel")
    )
    kind = models.CharField(_("kind"), max_length=10, choices=NoticeKind.choices)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices)
    title = models.CharField(_("title"), max_length=200)
    body = models.TextField(_("text"))
    payload = models.JSONField(_("for machines"), default=dict)
    alerts = models.ManyToManyField(Alert, related_name="notices", verbose_name=_("alerts"))
    state = models.CharField(_("state"), max_length=10, choices=NoticeState.choices, default=NoticeState.WAITING)
    created_at = models.DateTimeField(_("written"))
    next_try_at = models.DateTimeField(_("next try"), null=True, blank=True)
    tries = models.PositiveSmallIntegerField(_("tries"), default=0)
    last_error = models.CharField(_("last error"), max_length=300, blank=True)
    # Of the last try; the words of the error are in whatever language was spoken then.
    was_refused = models.BooleanField(default=False, db_default=False, editable=False)
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["state", "next_try_at"], name="notice_due"),
            models.Index(fields=["created_at"], name="notice_created"),
        ]

    def __str__(self) -> str:
        return self.title

"""Rules, what they found, the channels that notify people, and every message with its outcome."""

from collections.abc import Sequence
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import Acknowledgeable
from facho.hosts.models import Olt, OltGroup
from facho.infrastructure.secrets import SecretField
from facho.polling.domain.alerting import Digest


class Severity(models.TextChoices):
    INFO = "info", _("information")
    WARNING = "warning", _("warning")
    CRITICAL = "critical", _("critical")


class ChannelKind(models.TextChoices):
    APPRISE = "apprise", _("message service")
    WEBHOOK = "webhook", _("signed webhook")


class Digests(models.TextChoices):
    AT_ONCE = Digest.AT_ONCE.value, _("at once")
    QUARTER = Digest.QUARTER.value, _("collected, every 15 minutes")
    HOUR = Digest.HOUR.value, _("collected, every hour")
    DAY = Digest.DAY.value, _("collected, every day at 8:00")


ALL_DAYS = "1234567"


class AlertChannel(models.Model):
    """A way to notify people; its address is a secret, since it holds passwords and tokens."""

    name = models.CharField(_("name"), max_length=60, unique=True)
    kind = models.CharField(_("kind"), max_length=10, choices=ChannelKind.choices, default=ChannelKind.APPRISE)
    url = SecretField(_("address"))
    # What may be shown of it: never more than how it sends and which server.
    shown_as = models.CharField(_("address shown as"), max_length=300, editable=False)
    signing_key = SecretField(_("signing key"), help_text=_("For a webhook: the key that signs its messages."))
    language = models.CharField(_("language"), max_length=5, blank=True, help_text=_("Empty: the installation's."))
    enabled = models.BooleanField(_("enabled"), default=True)
    sends_reports = models.BooleanField(
        _("monthly report"),
        default=False,
        db_default=False,
        help_text=_("The report of the last month, in the language of the channel; e-mail carries it as PDF."),
    )
    digest = models.CharField(_("sends"), max_length=8, choices=Digests.choices, blank=True, default="")
    # On the installation's clock; without both ends, all hours.
    on_call_from = models.TimeField(_("on call from"), null=True, blank=True)
    on_call_to = models.TimeField(_("on call to"), null=True, blank=True)
    # Digits of weekdays, Monday being 1.
    on_call_days = models.CharField(_("on call on"), max_length=7, default=ALL_DAYS)
    # Part of every signed link of its messages: a higher number revokes those that were sent.
    link_version = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("alert channel")
        verbose_name_plural = _("alert channels")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(on_call_from__isnull=True, on_call_to__isnull=True)
                | Q(on_call_from__isnull=False, on_call_to__isnull=False),
                name="on_call_hours_have_both_ends",
            ),
            models.CheckConstraint(condition=~Q(on_call_days=""), name="on_call_has_a_day"),
        ]

    def __str__(self) -> str:
        return self.name


class ConditionField(models.CharField):  # type: ignore[type-arg]  # generic in its stubs only
    """Offers the conditions of the folder. Migrations do not list them, so a new condition needs no migration."""

    # Set by `AlertsConfig.ready`, since conditions import models.
    offered: Sequence[tuple[str, Promise]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "choices": lambda: type(self).offered})

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, _path, args, kwargs = super().deconstruct()
        del kwargs["choices"]
        return name, "django.db.models.CharField", args, kwargs


class AlertRule(models.Model):
    """What to look for, when it counts, and which channels to notify."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    kind = ConditionField(_("looks for"), max_length=20)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices, default=Severity.WARNING)
    enabled = models.BooleanField(_("enabled"), default=True)
    threshold = models.FloatField(
        _("threshold"), null=True, blank=True, help_text=_("In the unit of what it looks for; empty: the usual one.")
    )
    clear_margin = models.FloatField(
        _("clear margin"),
        default=0,
        validators=[MinValueValidator(0)],
        help_text=_("How far past the threshold a value must return before the alert resolves."),
    )
    hold_minutes = models.PositiveSmallIntegerField(
        _("hold minutes"), default=0, help_text=_("Minutes it must last before notifying.")
    )
    clear_minutes = models.PositiveSmallIntegerField(
        _("clear minutes"), default=0, help_text=_("Minutes it must be over before it counts as resolved.")
    )
    quiet_from = models.TimeField(_("quiet from"), null=True, blank=True)
    quiet_to = models.TimeField(_("quiet to"), null=True, blank=True)
    olt_group = models.ForeignKey(
        OltGroup, on_delete=models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("OLT group")
    )
    channels = models.ManyToManyField(AlertChannel, blank=True, related_name="rules", verbose_name=_("channels"))
    sends_resolved = models.BooleanField(_("notifies when it is over"), default=True)
    escalate_minutes = models.PositiveSmallIntegerField(
        _("escalates after minutes"), null=True, blank=True, help_text=_("If it is not acknowledged; empty: never.")
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
            # On a clock that would be all day: a rule that never notifies.
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True) | ~Q(quiet_from=F("quiet_to")),
                name="quiet_hours_end",
                violation_error_message=_("Quiet hours must not end when they begin."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class OfferedCondition(models.Model):
    """A condition whose default rule this installation got once; it never comes back by itself."""

    kind = models.CharField(primary_key=True, max_length=20)

    def __str__(self) -> str:
        return self.kind


class AlertState(models.TextChoices):
    PENDING = "pending", _("noticed")
    FIRING = "firing", _("firing")
    RESOLVED = "resolved", _("resolved")


class Alert(Acknowledgeable):
    """One thing that a rule found wrong, from first sight to its end; its times are those of a `Course`."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts", verbose_name=_("rule"))
    subject = models.CharField(_("subject"), max_length=120, help_text=_("What is wrong, as a code."))
    olt = models.ForeignKey(
        Olt, on_delete=models.CASCADE, null=True, blank=True, related_name="alerts", verbose_name=_("OLT")
    )
    state = models.CharField(_("state"), max_length=10, choices=AlertState.choices, default=AlertState.PENDING)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices)
    # What its sentence is built from, in any language.
    facts = models.JSONField(_("facts"), default=dict)
    # Where it is, from large to small: alerts of one place share a message.
    place = models.CharField(_("place"), max_length=60, blank=True)
    began_at = models.DateTimeField(_("since"))
    fired_at = models.DateTimeField(_("fires since"), null=True, blank=True)
    # When its message was written; quiet hours put that off.
    told_at = models.DateTimeField(_("notified"), null=True, blank=True)
    escalated_at = models.DateTimeField(_("escalated"), null=True, blank=True)
    # Since when nothing is wrong any more, until that has lasted long enough.
    calm_since = models.DateTimeField(_("calm since"), null=True, blank=True)
    resolved_at = models.DateTimeField(_("resolved"), null=True, blank=True)
    is_flapping = models.BooleanField(_("flapping"), default=False)
    # Name of the channel by whose signed link it was acknowledged, if it was; then there is no user.
    acknowledged_through = models.CharField(
        _("acknowledged through"), max_length=60, blank=True, default="", db_default="", editable=False
    )

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
    OPENED = "opened", _("opened")
    RESOLVED = "resolved", _("resolved")
    ESCALATED = "escalated", _("escalated")
    DIGEST = "digest", _("digest")
    TEST = "test", _("test")
    REPORT = "report", _("report")


class NoticeState(models.TextChoices):
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
    # About the last try; `last_error` is text in whatever language was active then.
    was_refused = models.BooleanField(default=False, db_default=False, editable=False)
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)
    # When its signed link acknowledged something: it does so once.
    link_used_at = models.DateTimeField(null=True, blank=True, editable=False)

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

    @property
    def is_held(self) -> bool:
        """Whether it waits for the hours or the digest of its channel, or for the end of quiet hours."""
        is_later = self.next_try_at is not None and self.next_try_at > self.created_at
        return self.state == NoticeState.WAITING and self.tries == 0 and is_later


class PublicAddress(models.Model):
    """Where people reach these pages, for links in messages; one row, asked for in the first run."""

    url = models.CharField(_("address of these pages"), max_length=200)

    def __str__(self) -> str:
        return self.url

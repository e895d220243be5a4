"""Quotas, their violations, plans and the coordinator's log, with the specification's columns and indexes."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import Acknowledgeable
from facho.hosts.models import Olt
from facho.polling.domain import quota
from facho.polling.domain.quota import QuotaState


class QuotaStatus(models.TextChoices):
    IN_PROGRESS = QuotaState.IN_PROGRESS.value, _("in progress")
    COMPLETED = QuotaState.COMPLETED.value, _("completed")
    PARTIAL = QuotaState.PARTIAL.value, _("partial")
    FAILED = QuotaState.FAILED.value, _("failed")
    QUOTA_NOT_MET = QuotaState.QUOTA_NOT_MET.value, _("quota not met")
    INTERRUPTED = QuotaState.INTERRUPTED.value, _("interrupted")
    ADJUSTED = QuotaState.ADJUSTED.value, _("adjusted")
    AT_RISK = QuotaState.AT_RISK.value, _("at risk")


class ViolationSeverity(models.TextChoices):
    LOW = quota.LossSeverity.LOW.value, _("low")
    MEDIUM = quota.LossSeverity.MEDIUM.value, _("medium")
    HIGH = quota.LossSeverity.HIGH.value, _("high")
    CRITICAL = quota.LossSeverity.CRITICAL.value, _("critical")


class PlanStatus(models.TextChoices):
    """One ACTIVE plan per OLT and hour; a changed schedule supersedes it."""

    ACTIVE = "ACTIVE", _("active")
    COMPLETED = "COMPLETED", _("completed")
    SUPERSEDED = "SUPERSEDED", _("superseded")
    ABORTED = "ABORTED", _("aborted")


class Level(models.TextChoices):
    DEBUG = "DEBUG", "DEBUG"
    INFO = "INFO", "INFO"
    WARNING = "WARNING", "WARNING"
    ERROR = "ERROR", "ERROR"
    CRITICAL = "CRITICAL", "CRITICAL"


class EventType(models.TextChoices):
    TASK_ADDED = "TASK_ADDED", _("task added")
    TASK_REMOVED = "TASK_REMOVED", _("task removed")
    TASK_MODIFIED = "TASK_MODIFIED", _("task modified")
    CHANGES_DETECTED = "CHANGES_DETECTED", _("changes detected")
    PLAN_CREATED = "PLAN_CREATED", _("plan created")
    PLAN_ADJUSTED = "PLAN_ADJUSTED", _("plan adjusted")
    EXECUTION_STARTED = "EXECUTION_STARTED", _("execution started")
    EXECUTION_COMPLETED = "EXECUTION_COMPLETED", _("execution completed")
    EXECUTION_FAILED = "EXECUTION_FAILED", _("execution failed")
    EXECUTION_ABORTED = "EXECUTION_ABORTED", _("execution aborted")
    QUOTA_WARNING = "QUOTA_WARNING", _("quota warning")
    QUOTA_VIOLATION = "QUOTA_VIOLATION", _("quota violation")
    OLT_ENABLED = "OLT_ENABLED", _("OLT enabled")
    OLT_DISABLED = "OLT_DISABLED", _("OLT disabled")
    OLT_UNREACHABLE = "OLT_UNREACHABLE", _("OLT unreachable")
    OLT_BACK = "OLT_BACK", _("OLT back")
    EMERGENCY_REPLAN = "EMERGENCY_REPLAN", _("emergency replan")


class QuotaTracker(models.Model):
    """How many runs of a task type an OLT owes in an hour, and their outcome."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="quota_trackers", verbose_name=_("OLT"))
    task_type = models.CharField(_("task type"), max_length=50)
    period_start = models.DateTimeField(_("from"))
    period_end = models.DateTimeField(_("to"))
    quota_required = models.IntegerField(_("required"), default=0)
    quota_completed = models.IntegerField(_("completed"), default=0)
    quota_failed = models.IntegerField(_("failed"), default=0)
    quota_skipped = models.IntegerField(_("skipped"), default=0)
    quota_pending = models.IntegerField(_("pending"), default=0)
    total_duration_ms = models.BigIntegerField(_("total duration (ms)"), default=0)
    avg_duration_ms = models.IntegerField(_("average duration (ms)"), default=0)
    status = models.CharField(_("status"), max_length=20, choices=QuotaStatus.choices, default=QuotaStatus.IN_PROGRESS)
    # Since when it is forecast that the hour will end below its quota.
    will_miss_at = models.DateTimeField(_("will miss since"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "quota_tracker"
        verbose_name = _("quota tracker")
        verbose_name_plural = _("quota trackers")
        ordering = ["-period_start", "olt", "task_type"]
        indexes = [
            models.Index(fields=["olt", "period_start"], name="quota_olt_period"),
            models.Index(fields=["period_start"], name="quota_period"),
            models.Index(fields=["status"], name="quota_status"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["olt", "task_type", "period_start"], name="one_quota_per_type_and_hour"),
            models.CheckConstraint(
                condition=models.Q(
                    quota_required__gte=0,
                    quota_completed__gte=0,
                    quota_failed__gte=0,
                    quota_skipped__gte=0,
                    quota_pending__gte=0,
                ),
                name="quota_counts_are_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.olt} · {self.task_type} · {self.quota_completed}/{self.quota_required}"


class QuotaViolation(Acknowledgeable):
    """What an OLT failed to get in an hour, with the report of every slot that was due."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="quota_violations", verbose_name=_("OLT"))
    period_start = models.DateTimeField(_("from"))
    period_end = models.DateTimeField(_("to"))
    report = models.JSONField(_("report"), default=dict)
    severity = models.CharField(_("severity"), max_length=20, choices=ViolationSeverity.choices)
    notified = models.BooleanField(_("notified"), default=False)
    notified_at = models.DateTimeField(_("notified at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        db_table = "quota_violations"
        verbose_name = _("quota violation")
        verbose_name_plural = _("quota violations")
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["olt", "created_at"], name="violation_olt_created"),
            models.Index(fields=["created_at"], name="violation_created"),
            models.Index(fields=["severity"], name="violation_severity"),
            models.Index(fields=["notified"], name="violation_notified"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["olt", "period_start"], name="one_violation_per_olt_and_hour"),
        ]

    def __str__(self) -> str:
        return f"{self.olt} · {self.severity}"


class CoordinatorLog(models.Model):
    """One decision of the coordinator; without an OLT it concerns everything."""

    olt = models.ForeignKey(
        Olt, on_delete=models.CASCADE, null=True, blank=True, related_name="coordinator_logs", verbose_name=_("OLT")
    )
    event_type = models.CharField(_("event"), max_length=30, choices=EventType.choices)
    level = models.CharField(_("level"), max_length=10, choices=Level.choices, default=Level.INFO)
    message = models.TextField(_("message"))
    details = models.JSONField(_("details"), default=dict)
    timestamp = models.DateTimeField(_("time"), default=timezone.now, editable=False)

    class Meta:
        db_table = "coordinator_logs"
        verbose_name = _("coordinator log entry")
        verbose_name_plural = _("coordinator log")
        ordering = ["-timestamp"]
        indexes = [
            models.Index(fields=["olt", "timestamp"], name="log_olt_timestamp"),
            models.Index(fields=["event_type", "timestamp"], name="log_event_timestamp"),
            models.Index(fields=["level", "timestamp"], name="log_level_timestamp"),
            models.Index(fields=["timestamp"], name="log_timestamp"),
        ]

    def __str__(self) -> str:
        return f"[{self.level}] {self.message}"


class ExecutionPlan(models.Model):
    """The runs expected of an OLT in an hour, with predicted start and length."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="execution_plans", verbose_name=_("OLT"))
    period_start = models.DateTimeField(_("from"))
    period_end = models.DateTimeField(_("to"))
    plan_data = models.JSONField(_("plan"), default=list)
    status = models.CharField(_("status"), max_length=20, choices=PlanStatus.choices, default=PlanStatus.ACTIVE)
    total_tasks = models.IntegerField(_("total"), default=0)
    completed_tasks = models.IntegerField(_("completed"), default=0)
    failed_tasks = models.IntegerField(_("failed"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "execution_plans"
        verbose_name = _("execution plan")
        verbose_name_plural = _("execution plans")
        ordering = ["-period_start", "olt"]
        indexes = [
            models.Index(fields=["olt", "period_start"], name="plan_olt_period"),
            models.Index(fields=["status"], name="plan_status"),
            models.Index(fields=["period_end"], name="plan_period_end"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["olt", "period_start"], condition=models.Q(status="ACTIVE"), name="one_active_plan_per_hour"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.olt} · {self.period_start:%Y-%m-%d %H:%M}"


class OltState(models.Model):
    """An OLT and its tasks as the last pass saw them; a difference from now is a change."""

    olt = models.OneToOneField(Olt, on_delete=models.CASCADE, primary_key=True, related_name="+", verbose_name=_("OLT"))
    state = models.JSONField(default=dict)
    state_hash = models.CharField(max_length=64)
    saved_at = models.DateTimeField()
    # When its grids were moved apart last.
    packed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "coordinator_olt_states"
        verbose_name = _("last known state of an OLT")
        verbose_name_plural = _("last known states of OLTs")

    def __str__(self) -> str:
        return f"{self.olt_id}: {self.state_hash}"

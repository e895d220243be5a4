"""Pollers, their figures over time, and the lease of the scheduler that leads."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class PollerStatus(models.TextChoices):
    """FREE takes the next composite; BUSY holds one until the end of its chain."""

    FREE = "FREE", _("free")
    BUSY = "BUSY", _("busy")


class Poller(models.Model):
    """A slot that runs one composite node at a time."""

    poller_id = models.IntegerField(_("number"), unique=True)
    group = models.CharField(_("group"), max_length=40, blank=True, default="", db_default="")
    status = models.CharField(_("status"), max_length=10, choices=PollerStatus.choices, default=PollerStatus.FREE)
    current_node_id = models.IntegerField(_("current node"), null=True, blank=True)
    current_execution_id = models.BigIntegerField(_("current execution"), null=True, blank=True)
    busy_since = models.DateTimeField(_("busy since"), null=True, blank=True)
    busy_time = models.FloatField(_("busy time (s)"), default=0.0)
    total_time = models.FloatField(_("total time (s)"), default=0.0)
    tasks_completed = models.IntegerField(_("tasks completed"), default=0)
    tasks_delayed = models.IntegerField(_("tasks delayed"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("poller")
        verbose_name_plural = _("pollers")
        ordering = ["poller_id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status="FREE", current_execution_id__isnull=True)
                | models.Q(status="BUSY", current_execution_id__isnull=False),
                name="busy_poller_has_an_execution",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.poller_id}"


class PollerStats(models.Model):
    """The figures of all pollers at one moment, kept as a series."""

    total_pollers = models.IntegerField(default=0)
    free_pollers = models.IntegerField(default=0)
    busy_pollers = models.IntegerField(default=0)
    busy_percentage = models.FloatField(default=0.0)
    queue_size = models.IntegerField(default=0)
    is_saturated = models.BooleanField(default=False)
    total_tasks_completed = models.IntegerField(default=0)
    total_tasks_delayed = models.IntegerField(default=0)
    timestamp = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        verbose_name = _("poller statistics")
        verbose_name_plural = _("poller statistics")
        ordering = ["-timestamp"]

    def __str__(self) -> str:
        return f"{self.timestamp:%Y-%m-%d %H:%M:%S}: {self.busy_pollers}/{self.total_pollers}"


class LeaderLease(models.Model):
    """The leader, with a counter that it raises; others take over when the counter stops."""

    name = models.CharField(max_length=30, primary_key=True)
    owner = models.CharField(max_length=100)
    counter = models.PositiveBigIntegerField(default=0)
    renewed_at = models.DateTimeField()
    # Why the leader starts nothing, as a code; empty while it does.
    standstill = models.CharField(max_length=20, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.name}: {self.owner}"

"""Jobs (what to read), workflows (one per OLT) and nodes (when a job runs on that OLT)."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Brand, Olt
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.planning import MAX_PRIORITY
from facho.polling.domain.quota import SkipReason
from facho.polling.domain.schedule import task_type


class QueryTypes(models.TextChoices):
    DISCOVERY = QueryType.DISCOVERY.value, _("discovery")
    GET = QueryType.GET.value, _("get")
    WALK = QueryType.WALK.value, _("walk")
    TABLE = QueryType.TABLE.value, _("table")
    BULK = QueryType.BULK.value, _("bulk")


class Cadence(models.TextChoices):
    """Whether runs stand on a fixed grid or follow the end of the run before."""

    FIXED_RATE = "fixed_rate", _("on the grid")
    FIXED_DELAY = "fixed_delay", _("after the end of the last run")


class ChainCondition(models.TextChoices):
    ALWAYS = "always", _("whatever the master's result")
    ON_SUCCESS = "on_success", _("only after success")


class SnmpJob(models.Model):
    """What to read, how, and how often it is suggested; never when."""

    name = models.CharField(_("name"), max_length=100)
    slug = models.SlugField(_("slug"), max_length=40)
    vendor = models.CharField(_("vendor definition"), max_length=60, blank=True, help_text=_("Empty: fits every OLT."))
    brand = models.ForeignKey(
        Brand, on_delete=models.PROTECT, null=True, blank=True, related_name="jobs", verbose_name=_("brand")
    )
    query_type = models.CharField(_("query type"), max_length=10, choices=QueryTypes.choices)
    interval_seconds = models.PositiveIntegerField(_("suggested interval (s)"), default=300)
    ignores_safe_interval = models.BooleanField(
        _("poll more often than is safe"),
        default=False,
        help_text=_(
            "Only if you know that these OLTs can bear it: the vendors' minimum intervals are then not enforced."
        ),
    )
    cadence = models.CharField(_("cadence"), max_length=12, choices=Cadence.choices, default=Cadence.FIXED_RATE)
    priority = models.PositiveSmallIntegerField(
        _("priority"), default=50, validators=[MaxValueValidator(MAX_PRIORITY)], help_text=_("0 to 100, larger first.")
    )
    max_attempts = models.PositiveSmallIntegerField(_("attempts"), default=3, validators=[MinValueValidator(1)])
    hours_from = models.TimeField(_("may run from"), null=True, blank=True, help_text=_("Local time; empty: always."))
    hours_to = models.TimeField(_("may run until"), null=True, blank=True)
    retry_delay_seconds = models.PositiveIntegerField(_("delay between attempts (s)"), default=120)
    master_job = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="chain_jobs", verbose_name=_("runs after")
    )
    chain_condition = models.CharField(
        _("chain condition"), max_length=12, choices=ChainCondition.choices, default=ChainCondition.ALWAYS
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "snmp_jobs"
        verbose_name = _("SNMP job")
        verbose_name_plural = _("SNMP jobs")
        ordering = ["vendor", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["vendor", "slug"], name="one_job_slug_per_vendor"),
            models.CheckConstraint(
                condition=Q(interval_seconds__gte=1),
                name="job_interval_is_positive",
                violation_error_message=_("The interval is at least one second."),
            ),
            models.CheckConstraint(
                condition=Q(priority__lte=MAX_PRIORITY),
                name="job_priority_up_to_100",
                violation_error_message=_("The priority is from 0 to 100."),
            ),
            models.CheckConstraint(
                condition=Q(max_attempts__gte=1),
                name="job_tries_at_least_once",
                violation_error_message=_("A run has at least one attempt."),
            ),
            models.CheckConstraint(
                condition=Q(hours_from__isnull=True, hours_to__isnull=True)
                | Q(hours_from__isnull=False, hours_to__isnull=False),
                name="job_hours_come_in_pairs",
                violation_error_message=_("Set both hours, or neither."),
            ),
            models.CheckConstraint(condition=Q(query_type__in=QueryTypes.values), name="job_query_type_is_known"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def task_type(self) -> str:
        """The name under which quotas count this job's runs."""
        return task_type(QueryType(self.query_type), self.slug)


class SnmpJobOid(models.Model):
    """One thing that a job reads: a column of the vendor definition, or an OID of the operator's own."""

    job = models.ForeignKey(SnmpJob, on_delete=models.CASCADE, related_name="oids", verbose_name=_("job"))
    position = models.PositiveSmallIntegerField(_("position"), default=0)
    column_key = models.CharField(_("definition column"), max_length=60, blank=True)
    oid = models.CharField(_("OID"), max_length=255, blank=True)
    name = models.CharField(_("name"), max_length=60, blank=True)
    unit = models.CharField(_("unit"), max_length=20, blank=True)
    keeps_history = models.BooleanField(
        _("keep history"),
        default=False,
        help_text=_("For numbers; for counters, their rate. Columns about ONUs keep it anyway."),
    )

    class Meta:
        db_table = "snmp_job_oids"
        verbose_name = _("job OID")
        verbose_name_plural = _("job OIDs")
        ordering = ["job", "position", "id"]
        constraints = [
            models.CheckConstraint(
                condition=(Q(column_key="") & ~Q(oid="")) | (~Q(column_key="") & Q(oid="")),
                name="job_oid_is_a_column_or_an_oid",
                violation_error_message=_("Give either a column of the definition or an OID."),
            ),
            models.UniqueConstraint(fields=["job", "column_key", "oid"], name="job_reads_an_oid_once"),
        ]

    def __str__(self) -> str:
        return self.name or self.column_key or self.oid


class Workflow(models.Model):
    olt = models.OneToOneField(Olt, on_delete=models.CASCADE, related_name="workflow", verbose_name=_("OLT"))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("workflow")
        verbose_name_plural = _("workflows")

    def __str__(self) -> str:
        return str(self.olt)


class WorkflowNode(models.Model):
    """One job on one OLT: the only row that has a schedule."""

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="nodes", verbose_name=_("workflow"))
    job = models.ForeignKey(SnmpJob, on_delete=models.CASCADE, related_name="nodes", verbose_name=_("job"))
    enabled = models.BooleanField(_("enabled"), default=True)
    interval_seconds = models.PositiveIntegerField(_("interval (s)"))
    offset_seconds = models.PositiveIntegerField(_("offset on the grid (s)"), default=0)
    priority = models.PositiveSmallIntegerField(_("priority"), default=50, validators=[MaxValueValidator(MAX_PRIORITY)])

    is_chain_node = models.BooleanField(_("chained"), default=False)
    master_node = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="chain_nodes", verbose_name=_("master")
    )

    next_run_at = models.DateTimeField(_("next run"), null=True, blank=True)
    last_run_at = models.DateTimeField(_("last run"), null=True, blank=True)
    run_requested_at = models.DateTimeField(_("run requested"), null=True, blank=True)
    slots_skipped = models.PositiveIntegerField(_("skipped slots"), default=0)

    consecutive_failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    suspended_at = models.DateTimeField(_("suspended"), null=True, blank=True)
    suspend_reason = models.CharField(_("reason of suspension"), max_length=30, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "snmp_job_hosts"
        verbose_name = _("node")
        verbose_name_plural = _("nodes")
        ordering = ["workflow", "id"]
        indexes = [
            models.Index(fields=["next_run_at"], name="node_next_run_at"),
            models.Index(
                fields=["run_requested_at"], condition=Q(run_requested_at__isnull=False), name="node_run_requested"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["workflow", "job"], name="one_node_per_job_and_olt"),
            models.CheckConstraint(
                condition=Q(interval_seconds__gte=1),
                name="node_interval_is_positive",
                violation_error_message=_("The interval is at least one second."),
            ),
            models.CheckConstraint(
                condition=Q(priority__lte=MAX_PRIORITY),
                name="node_priority_up_to_100",
                violation_error_message=_("The priority is from 0 to 100."),
            ),
            models.CheckConstraint(
                condition=Q(is_chain_node=False, master_node__isnull=True)
                | Q(is_chain_node=True, master_node__isnull=False),
                name="chain_node_has_a_master",
            ),
            # A chain member runs with its master; a next run or request of its own would start it alone.
            models.CheckConstraint(
                condition=Q(is_chain_node=False) | Q(next_run_at__isnull=True, run_requested_at__isnull=True),
                name="chain_node_has_no_schedule",
            ),
            models.CheckConstraint(
                condition=Q(suspended_at__isnull=True, suspend_reason="")
                | (Q(suspended_at__isnull=False) & ~Q(suspend_reason="")),
                name="suspension_has_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow.olt} · {self.job}"

    @property
    def name(self) -> str:
        return self.job.name


# The specification's name for the same row.
SnmpJobHost = WorkflowNode


class SkipReasons(models.TextChoices):
    OLT_BUSY = SkipReason.OLT_BUSY.value, _("the OLT was busy with other work")
    NO_POLLER = SkipReason.NO_POLLER.value, _("every poller was busy")
    OWN_RUN = SkipReason.OWN_RUN.value, _("its previous run had not ended")
    OLT_UNREACHABLE = SkipReason.OLT_UNREACHABLE.value, _("the OLT did not answer")
    SUSPENDED = SkipReason.SUSPENDED.value, _("suspended after failures")
    PAUSED = SkipReason.PAUSED.value, _("paused for maintenance")
    OUT_OF_HOURS = SkipReason.OUT_OF_HOURS.value, _("its hours were over")
    NOT_POLLING = SkipReason.NOT_POLLING.value, _("Facho was not polling")
    CLOCK = SkipReason.CLOCK.value, _("the clock was set")
    RESCHEDULED = SkipReason.RESCHEDULED.value, _("its schedule was changed")
    FIRST_DISCOVERY = SkipReason.FIRST_DISCOVERY.value, _("its OLT was not discovered yet")
    NO_DISCOVERY = SkipReason.NO_DISCOVERY.value, _("no discovery of its OLT could run")


class SkippedSlot(models.Model):
    """A slot of a node that passed without a run, and why; written when a node is moved past its slots."""

    node = models.ForeignKey(
        WorkflowNode, on_delete=models.CASCADE, related_name="skipped_slots", verbose_name=_("node")
    )
    slot_at = models.DateTimeField(_("slot"))
    reason = models.CharField(_("reason"), max_length=20, choices=SkipReasons.choices)
    # What was passed hours later is one row: so many slots, from the first one to `slot_at`.
    first_slot_at = models.DateTimeField(_("first slot"), null=True, blank=True)
    count = models.PositiveIntegerField(_("number of slots"), default=1, db_default=1)

    class Meta:
        db_table = "skipped_slots"
        verbose_name = _("skipped slot")
        verbose_name_plural = _("skipped slots")
        ordering = ["-slot_at"]
        indexes = [models.Index(fields=["slot_at"], name="skipped_slot_at")]
        constraints = [models.UniqueConstraint(fields=["node", "slot_at"], name="a_slot_is_skipped_once")]

    def __str__(self) -> str:
        return f"{self.node_id} · {self.slot_at:%Y-%m-%d %H:%M:%S} · {self.reason}"

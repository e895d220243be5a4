"""Each run of a node, its attempts, and the claim that lets it speak to the OLT."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ACTIVE, TERMINAL, ExecutionState, FailureKind
from facho.snmp_jobs.models import WorkflowNode

ERROR_LENGTH = 300


class ExecutionStates(models.TextChoices):
    PENDING = ExecutionState.PENDING.value, _("pending")
    RUNNING = ExecutionState.RUNNING.value, _("running")
    WAITING = ExecutionState.WAITING.value, _("waiting")
    SUCCESS = ExecutionState.SUCCESS.value, _("success")
    FAILED = ExecutionState.FAILED.value, _("failed")
    INTERRUPTED = ExecutionState.INTERRUPTED.value, _("interrupted")
    SKIPPED = ExecutionState.SKIPPED.value, _("skipped")


class Origin(models.TextChoices):
    SCHEDULE = "schedule", _("schedule")
    MANUAL = "manual", _("by hand")
    PROBE = "probe", _("probe")
    TRAP = "trap", _("trap")


_IS_ACTIVE = Q(status__in=sorted(ACTIVE))
_IS_TERMINAL = Q(status__in=sorted(TERMINAL))
_FAILURE_KINDS = ["", *(kind.value for kind in FailureKind)]


class Execution(models.Model):
    """One run of one node on one OLT. While it is active it is the claim on that OLT."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="executions", verbose_name=_("OLT"))
    # A deleted node leaves its history, and a probe has no node.
    node = models.ForeignKey(
        WorkflowNode, on_delete=models.SET_NULL, null=True, related_name="executions", verbose_name=_("node")
    )
    task_type = models.CharField(_("task type"), max_length=50)
    origin = models.CharField(_("origin"), max_length=10, choices=Origin.choices, default=Origin.SCHEDULE)
    status = models.CharField(_("status"), max_length=12, choices=ExecutionStates.choices)
    slot_at = models.DateTimeField(_("slot"), null=True, blank=True)
    attempt = models.PositiveSmallIntegerField(_("attempt"), default=1)

    # The poller's number, not a foreign key: history outlives a smaller number of pollers.
    poller_id = models.PositiveIntegerField(_("poller"), null=True, blank=True)
    # Whose workers carry it out. The default is the database's: processes of an older version know no group.
    poller_group = models.CharField(_("poller group"), max_length=40, blank=True, default="", db_default="")
    master_execution = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="chain_executions",
        verbose_name=_("master"),
    )
    chain_position = models.PositiveSmallIntegerField(_("position in the chain"), default=0)

    # Where packets may go: an OLT that is moved while it runs is asked at its old address to the end.
    address = models.GenericIPAddressField(_("address"))
    port = models.PositiveIntegerField(_("UDP port"))
    token = models.BigIntegerField(_("fencing token"))
    owner = models.CharField(_("owner"), max_length=100, blank=True)
    lease_counter = models.PositiveBigIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(_("cancel requested"), null=True, blank=True)
    resume_at = models.DateTimeField(_("resumes"), null=True, blank=True)
    cursor = models.JSONField(null=True, blank=True)

    created_at = models.DateTimeField(_("claimed"))
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    # The time under the claim, summed over slices and tries; the waiting in between is not in it.
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), default=0)
    failure_kind = models.CharField(_("failure"), max_length=12, blank=True)
    error = models.CharField(_("error"), max_length=ERROR_LENGTH, blank=True)
    result = models.JSONField(_("result"), null=True, blank=True)
    # How far the run has come, as of its last renewal; means something while it is RUNNING.
    progress = models.JSONField(_("progress"), null=True, blank=True)

    class Meta:
        db_table = "snmp_executions"
        verbose_name = _("execution")
        verbose_name_plural = _("executions")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["olt", "-created_at"], name="execution_olt_created"),
            models.Index(fields=["node", "-created_at"], name="execution_node_created"),
            models.Index(fields=["created_at"], name="execution_created"),
            # Quotas count the runs of an hour's slots.
            models.Index(fields=["olt", "slot_at"], name="execution_olt_slot"),
            # Finds what ended lately, and what is active among the unfinished: SQLite cannot match bound
            # parameters with the condition of a partial index.
            models.Index(fields=["finished_at"], name="execution_finished"),
            models.Index(fields=["resume_at"], condition=Q(status="WAITING"), name="execution_waiting"),
        ]
        constraints = [
            # The promise of the product: the database refuses a second operation on a device.
            models.UniqueConstraint(fields=["olt"], condition=_IS_ACTIVE, name="one_active_execution_per_olt"),
            # The same by device, because an address may pass from one OLT to another during a run.
            models.UniqueConstraint(
                fields=["address", "port"], condition=_IS_ACTIVE, name="one_active_execution_per_device"
            ),
            models.UniqueConstraint(fields=["poller_id"], condition=_IS_ACTIVE, name="one_active_execution_per_poller"),
            models.UniqueConstraint(
                fields=["node", "slot_at"], condition=Q(slot_at__isnull=False), name="one_execution_per_slot"
            ),
            models.CheckConstraint(condition=Q(status__in=ExecutionStates.values), name="execution_status_is_known"),
            models.CheckConstraint(
                condition=(_IS_TERMINAL & Q(finished_at__isnull=False)) | (~_IS_TERMINAL & Q(finished_at__isnull=True)),
                name="execution_is_finished_when_terminal",
            ),
            models.CheckConstraint(
                condition=Q(master_execution__isnull=True, chain_position=0)
                | Q(master_execution__isnull=False, chain_position__gte=1),
                name="execution_chain_has_a_position",
            ),
            models.CheckConstraint(condition=Q(attempt__gte=1), name="execution_attempts_count_from_1"),
            models.CheckConstraint(condition=Q(failure_kind__in=_FAILURE_KINDS), name="execution_failure_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.olt} · {self.task_type} · {self.status}"

    @property
    def shown_progress(self) -> dict[str, int] | None:
        return self.progress if self.status == ExecutionState.RUNNING else None


class ExecutionAttempt(models.Model):
    """One try of an execution, counted from 1."""

    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, related_name="attempts", verbose_name=_("execution")
    )
    number = models.PositiveSmallIntegerField(_("number"))
    status = models.CharField(_("status"), max_length=12, choices=ExecutionStates.choices)
    started_at = models.DateTimeField(_("started"))
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    failure_kind = models.CharField(_("failure"), max_length=12, blank=True)
    error = models.CharField(_("error"), max_length=ERROR_LENGTH, blank=True)

    class Meta:
        db_table = "execution_attempts"
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ["execution", "number"]
        constraints = [
            models.UniqueConstraint(fields=["execution", "number"], name="one_row_per_attempt"),
            models.CheckConstraint(condition=Q(number__gte=1), name="attempts_count_from_1"),
        ]

    def __str__(self) -> str:
        return f"{self.execution} · {self.number}"


class OnuRead(models.Model):
    """A person's request to read an ONU now, and the execution that serves it; the next request replaces it."""

    onu = models.OneToOneField(Onu, on_delete=models.CASCADE, primary_key=True, related_name="+", verbose_name=_("ONU"))
    requested_at = models.DateTimeField(_("requested"))
    # Deleted with its execution: without one it would count as a new request.
    execution = models.OneToOneField(
        Execution,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="onu_read",
        verbose_name=_("execution"),
    )

    class Meta:
        db_table = "onu_reads"
        verbose_name = _("read of an ONU")
        verbose_name_plural = _("reads of ONUs")
        indexes = [
            models.Index(fields=["requested_at"], condition=Q(execution__isnull=True), name="onu_read_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.onu_id} · {self.requested_at:%Y-%m-%d %H:%M:%S}"


class HintRead(models.Model):
    """A read that notifications of an OLT ask for: one row for each OLT and PON port, 0/0/0 for all of the OLT.

    `wanted_at` is set while it waits; `asked_at` is when the last one began, and `execution` which it was.
    """

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="+", verbose_name=_("OLT"))
    frame = models.PositiveSmallIntegerField(_("frame"))
    slot = models.PositiveSmallIntegerField(_("slot"))
    port = models.PositiveSmallIntegerField(_("port"))
    is_whole = models.BooleanField(_("all states"), default=False)
    onu_number = models.PositiveIntegerField(_("ONU id"), null=True, blank=True, help_text=_("Empty: the whole port."))
    wanted_at = models.DateTimeField(_("wanted"), null=True, blank=True)
    not_before = models.DateTimeField(_("not before"))
    asked_at = models.DateTimeField(_("last read"), null=True, blank=True)
    execution = models.OneToOneField(
        Execution,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="hint_read",
        verbose_name=_("execution"),
    )

    class Meta:
        db_table = "hint_reads"
        verbose_name = _("read after a trap")
        verbose_name_plural = _("reads after traps")
        indexes = [models.Index(fields=["wanted_at"], condition=Q(wanted_at__isnull=False), name="hint_read_waiting")]
        constraints = [
            models.UniqueConstraint(
                fields=["olt", "frame", "slot", "port", "is_whole"], name="one_hint_read_per_olt_and_port"
            )
        ]

    def __str__(self) -> str:
        return f"{self.olt_id} · {self.frame}/{self.slot}/{self.port}"


class OltToken(models.Model):
    """The last fencing token given out for an OLT; it only grows."""

    olt = models.OneToOneField(Olt, on_delete=models.CASCADE, primary_key=True, related_name="+")
    token = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("run counter of an OLT")
        verbose_name_plural = _("run counters of OLTs")

    def __str__(self) -> str:
        return f"{self.olt_id}: {self.token}"


class ProductProcess(models.Model):
    """A process of the distributed mode, as it last reported itself; what a worker completes shows whether it works."""

    owner = models.CharField(_("owner"), max_length=100, primary_key=True)
    version = models.CharField(_("version"), max_length=40)
    # The groups whose executions it carries out; the default group has the empty name.
    groups = models.JSONField(_("groups"), default=list)
    slots = models.PositiveIntegerField(_("slots"), default=0)
    started_at = models.DateTimeField(_("started"))
    # The same moment twice: by the clock of the database, and by its own.
    seen_at = models.DateTimeField(_("seen"))
    clock_at = models.DateTimeField(_("its clock"))
    completed = models.PositiveBigIntegerField(_("completed"), default=0)
    completed_at = models.DateTimeField(_("last completed"), null=True, blank=True)

    class Meta:
        verbose_name = _("process")
        verbose_name_plural = _("processes")
        ordering = ["owner"]

    def __str__(self) -> str:
        return self.owner

    @property
    def clock_ahead(self) -> timedelta:
        """How far its clock is ahead of the database's; a little less, since its report takes time to arrive."""
        return self.clock_at - self.seen_at

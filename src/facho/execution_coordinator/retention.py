"""How long rows are kept: one table for every model that has a time column, and their deletion in small batches."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Q, QuerySet

from facho.polling.domain.execution_state import TERMINAL, ExecutionState

_NOT_TERMINAL = [state.value for state in ExecutionState if state not in TERMINAL]
_ALL = Q()
# An execution that still runs or waits is a claim, however old a clock that jumped makes it; so is its chain's.
_ENDED = Q(status__in=sorted(TERMINAL)) & ~Q(chain_executions__status__in=_NOT_TERMINAL)


@dataclass(frozen=True, slots=True)
class Retention:
    """Rows of `model` expire `days` after `time_field`, where `only` holds."""

    model: str
    time_field: str
    days: int
    only: Q = _ALL


RETENTIONS = (
    Retention("executions.Execution", "created_at", 30, only=_ENDED),
    # A process that stops takes its row along; one that was killed leaves it.
    Retention("executions.ProductProcess", "seen_at", 2),
    Retention("zabbix_pollers.PollerStats", "timestamp", 30),
    Retention("execution_coordinator.CoordinatorLog", "timestamp", settings.FACHO_COORDINATOR_LOG_DAYS),
    Retention("execution_coordinator.ExecutionPlan", "period_end", 2),
    Retention("execution_coordinator.QuotaTracker", "period_start", 400),
    Retention("execution_coordinator.QuotaViolation", "created_at", 730),
    # Quotas look back two hours; their result is in the violations.
    Retention("snmp_jobs.SkippedSlot", "slot_at", 2),
    Retention("hosts.Pause", "ends_at", 400),
    # Overwritten by every read: what is not read any more goes.
    Retention("hosts.OltData", "updated_at", 30),
    Retention("hosts.WaitingOnu", "last_seen_at", 30),
    Retention("traps.Trap", "heard_at", 90),
    Retention("traps.TrapSender", "last_heard_at", 30),
    Retention("traps.TrapReceiver", "seen_at", 400),
    Retention("onus.OnuEvent", "at", 730),
    Retention("plant.LightFinding", "since", 730),
    # A year and the month to compare it with.
    Retention("plant.OnuMonth", "month", 400),
    Retention("plant.MonthRun", "month", 400),
    # An open outage has no end to count from.
    Retention("onus.Outage", "ended_at", 730),
    # Younger history is summed up by `onus.compaction`; whatever form it has, it ends here.
    Retention("onus.HistoryPoll", "taken_at", settings.FACHO_HISTORY_DAILY_DAYS),
    Retention("onus.HistorySamples", "ends_at", settings.FACHO_HISTORY_DAILY_DAYS),
    Retention("onus.HistoryHours", "ends_at", settings.FACHO_HISTORY_DAILY_DAYS),
    Retention("onus.HistoryDays", "ends_at", settings.FACHO_HISTORY_DAILY_DAYS),
    Retention("hosts.OltHistoryPoll", "taken_at", settings.FACHO_HISTORY_DAILY_DAYS),
    Retention("hosts.OltHistorySamples", "ends_at", settings.FACHO_HISTORY_DAILY_DAYS),
    Retention("hosts.OltHistoryHours", "ends_at", settings.FACHO_HISTORY_DAILY_DAYS),
    Retention("hosts.OltHistoryDays", "ends_at", settings.FACHO_HISTORY_DAILY_DAYS),
    # A message that still waits is not forgotten, however long its channel is away.
    Retention("alerts.Notice", "created_at", 400, only=~Q(state="waiting")),
    # An open alert has no end to count from.
    Retention("alerts.Alert", "resolved_at", 730),
    # A batch that still waits is not forgotten, however long its receiver is away.
    Retention("neighbours.WebhookDelivery", "created_at", 14, only=~Q(state="waiting")),
    # A request is repeated within minutes, if at all.
    Retention("api.KeptAnswer", "created_at", 1),
    # A token that has ended opens nothing, and need not be seen for long.
    Retention("api.ApiToken", "expires_at", 30),
    Retention("accounts.FailedTries", "failed_at", 1),
    Retention("admin.LogEntry", "action_time", 730),
    Retention("sessions.Session", "expire_date", 0),
)

# Models with a time column that do not grow with time, and why.
KEPT = {
    "alerts.AlertChannel": "as many as people make",
    "accounts.LinkedIdentity": "one row per account of a sign-on, overwritten",
    "accounts.LoginSession": "deleted with its session",
    "accounts.Passkey": "as many as people make, ten each",
    "accounts.SecondFactor": "one row per account",
    "auth.User": "as many as people work here",
    "executions.ExecutionAttempt": "deleted with its execution",
    "executions.OnuRead": "one row per ONU, overwritten, and deleted with its execution",
    "executions.HintRead": "one row per OLT and PON port, overwritten",
    "hosts.Olt": "as many as the network has",
    "neighbours.OutageEvent": "deleted with its outage",
    "neighbours.Webhook": "as many as people make",
    "onus.OltMemory": "one row per OLT, overwritten",
    "onus.Onu": "as many as the network has; an absent one stays until a person deletes it",
    "onus.OnuCustomer": "one row per ONU, entered by users",
    "onus.OnuData": "one row per OLT and OID, overwritten; ONUs that were deleted leave it",
    "onus.OnuReading": "one row per ONU, overwritten",
    "plant.PortDays": "one row per PON port, overwritten",
    "plant.PortMonth": "one row per PON port, overwritten",
    "plant.TreeCorrection": "as many as people make; it wins until removed",
    "onus.PonPort": "as many as the network has",
    "snmp_jobs.SnmpJob": "as many as people define",
    "snmp_jobs.Workflow": "one per OLT",
    "snmp_jobs.WorkflowNode": "one per job and OLT",
    "traps.OltTraps": "one row per OLT, overwritten",
    "zabbix_pollers.LeaderLease": "one row for each engine, overwritten",
    "execution_coordinator.OltState": "one row per OLT, overwritten",
    "hosts.LearnedSize": "one row per OLT and set of columns",
    "zabbix_pollers.Poller": "as many as the setting says",
}

# Tables of RETENTIONS without an index by time, and why each clean-up may read them whole.
READ_WHOLE = {
    "executions.ProductProcess": "a row per process that ran in the last days",
    # The index would be written with every value of every read, and cost more than a look each ten minutes.
    "hosts.OltData": "one row per OLT and value, overwritten",
    "hosts.WaitingOnu": "as many as wait to be authorised",
    "api.ApiToken": "as many as people make",
    "plant.MonthRun": "a row per month",
    "traps.TrapReceiver": "as many as listen",
    "admin.LogEntry": "what people changed; its table is not ours to index",
}


def delete_expired(retention: Retention, now: datetime, batch_size: int) -> int:
    """Delete the oldest expired rows with their dependent rows; fewer than `batch_size` means that none is left."""
    limit = now - timedelta(days=retention.days)
    rows: QuerySet[Any] = apps.get_model(retention.model)._default_manager.all()
    expired = rows.filter(retention.only, **{f"{retention.time_field}__lt": limit})
    ids = list(expired.order_by(retention.time_field).values_list("pk", flat=True)[:batch_size])
    # The condition again: a row may have been renewed meanwhile.
    expired.filter(pk__in=ids).delete()
    return len(ids)

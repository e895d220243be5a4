"""What a person asks for now: a run, with a short wait whether it starts at once, and the progress of an ONU read."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from time import sleep

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import OuterRef, Subquery
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.executions.models import Execution, OnuRead
from facho.executions.onu_reads import NotThere, TooManyReads, count_before
from facho.executions.run import FAILURES
from facho.hosts.models import Olt, Pause
from facho.hosts.store import load_pause
from facho.onus.shown_state import last_known_state
from facho.onus.words import RunStateChoice
from facho.polling.domain.execution_state import ExecutionState, FailureKind
from facho.polling.domain.lease import shard_of
from facho.polling.domain.planning import EXPIRES_AFTER
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import ask_run
from facho.zabbix_pollers.activity import Holder, load_holder, load_is_polling, our_shards
from facho.zabbix_pollers.explain import Explanation, Situation, describe_holder, load_explanation
from facho.zabbix_pollers.poller_manager import PollerManager

# The scheduler looks every second; a person who pressed a button waits about as long.
LOOKS = 6
LOOK_SECONDS = 0.2

_MAY_START = frozenset({Situation.QUEUED, Situation.GAVE_WAY})


@dataclass(frozen=True, slots=True)
class Asked:
    """The state of the request: the execution that grants it, or why there is none yet."""

    node: WorkflowNode
    chain_nodes_count: int
    explanation: Explanation
    execution_id: int | None = None


def ask_for_run(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> Asked:
    """Request a run and wait about a second for it to start; a request that has not started stays queued."""
    asked = leave_wish(user, node_id, now=now)
    if not _can_start_now(asked):
        return asked
    for _look in range(LOOKS):
        sleep(LOOK_SECONDS)
        # Return the node's latest execution once its request is gone: the claim clears it.
        latest = Execution.objects.filter(node=OuterRef("id")).order_by("-created_at", "-id").values("id")[:1]
        granted = WorkflowNode.objects.filter(id=node_id, run_requested_at__isnull=True)
        if (
            execution_id := granted.annotate(latest_id=Subquery(latest)).values_list("latest_id", flat=True).first()
        ) is not None:
            return replace(asked, execution_id=execution_id)
    return asked


def leave_wish(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> Asked:
    """Request a run like `ask_for_run`, without waiting: pages see the start when they refresh."""
    node = ask_run(user, node_id, now=now)
    return Asked(node, node.chain_nodes.filter(enabled=True).count(), load_explanation(node_id, now))


def describe_asked(asked: Asked) -> str:
    """Describe when the run will start; a request for a node that cannot run now is kept, and the text says so."""
    if asked.execution_id is not None:
        return _("Started.")
    explained = {
        Situation.OLT_DISABLED: _("Queued: it runs when its OLT is enabled again."),
        Situation.DISABLED: _("Queued: it runs when the node is enabled again."),
        Situation.SUSPENDED: _("Queued: it runs when the node is no longer suspended."),
        Situation.PAUSED: _("Queued: it runs when the pause is over."),
        Situation.AWAITS_DISCOVERY: _("Queued: it runs right after the first complete discovery of its OLT."),
    }.get(asked.explanation.situation)
    if explained is None and not asked.explanation.is_polling:
        return _("Queued: polling is stopped; it runs when the engine is started.")
    return explained or _("Queued: it starts as soon as its OLT and a poller are free.")


def _can_start_now(asked: Asked) -> bool:
    """Return whether the scheduler can start the run at its next pass; if not, waiting is pointless."""
    if not asked.explanation.is_polling or asked.explanation.situation not in _MAY_START:
        return False
    olt = asked.node.workflow.olt
    return not PollerManager.is_olt_busy(olt.id) and PollerManager.has_free_poller(
        olt.poller_group, shard_of(olt.id, our_shards())
    )


class ReadStage(StrEnum):
    """The state of a request; the first two are open, the others are over."""

    WAITING = "waiting"
    READING = "reading"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Obstacles:
    """Known reasons why a request waits."""

    is_polling: bool
    is_olt_enabled: bool
    pause: Pause | None
    holder: Holder | None
    # Earlier requests on the same OLT.
    before: int


@dataclass(frozen=True, slots=True)
class ReadProgress:
    stage: ReadStage
    requested_at: datetime
    execution_id: int | None = None
    finished_at: datetime | None = None
    failure_kind: str = ""
    # Last state reported by the OLT: an offline ONU has no light to read.
    is_offline: bool = False
    obstacles: Obstacles | None = None

    @property
    def is_open(self) -> bool:
        return self.stage in (ReadStage.WAITING, ReadStage.READING)


def load_progress(onu_id: int, *, olt_id: int, now: datetime) -> ReadProgress | None:
    """Load the progress of the latest request; None when there never was one. One query, six while it waits."""
    read = OnuRead.objects.filter(onu_id=onu_id).select_related("execution", "onu__reading").first()
    if read is None:
        return None
    if read.execution is None:
        if read.requested_at <= now - EXPIRES_AFTER:
            return ReadProgress(ReadStage.EXPIRED, read.requested_at)
        obstacles = Obstacles(
            is_polling=load_is_polling(now, olt_id=olt_id),
            is_olt_enabled=Olt.objects.filter(id=olt_id, enabled=True).exists(),
            pause=load_pause(olt_id, now),
            holder=load_holder(olt_id),
            before=count_before(read, olt_id=olt_id, now=now),
        )
        return ReadProgress(ReadStage.WAITING, read.requested_at, obstacles=obstacles)
    run = read.execution
    stage = ReadStage.READING
    if run.finished_at is not None:
        stage = ReadStage.DONE if run.status == ExecutionState.SUCCESS else ReadStage.FAILED
    is_offline = last_known_state(read.onu) == RunStateChoice.OFFLINE
    return ReadProgress(stage, read.requested_at, run.id, run.finished_at, run.failure_kind, is_offline)


def describe_read(progress: ReadProgress) -> str:
    """Put the progress into words; times are local."""
    if progress.obstacles is not None:
        return _waits_for(progress.obstacles)
    if progress.stage is ReadStage.READING:
        return _("Reading now.")
    if progress.stage is ReadStage.EXPIRED:
        return _("Its turn did not come in time. Try again.")
    at = f"{localtime(progress.finished_at):%H:%M:%S}" if progress.finished_at else ""
    if progress.stage is ReadStage.DONE and progress.is_offline:
        return _("Read at %(at)s: the OLT says that it is offline, so there is no new light.") % {"at": at}
    if progress.stage is ReadStage.DONE:
        return _("Read at %(at)s: the values on this page are new.") % {"at": at}
    reason = str(FAILURES.get(progress.failure_kind, progress.failure_kind))
    if progress.failure_kind == FailureKind.MISSING:
        # A table that is missing means something else where one ONU was asked for.
        reason = _("The OLT does not list this ONU: it may have been removed or moved.")
    return _("Failed at %(at)s. %(reason)s") % {"at": at, "reason": reason}


def describe_refusal(refused: NotThere | TooManyReads) -> str:
    if isinstance(refused, NotThere):
        return _("The ONU is no longer at its place, so it cannot be read.")
    return _("Others are already waiting for this OLT. Try again in a moment.")


def _waits_for(obstacles: Obstacles) -> str:
    if not obstacles.is_olt_enabled:
        return _("Waiting: its OLT is disabled.")
    if obstacles.pause is not None:
        until = f"{localtime(obstacles.pause.ends_at):%Y-%m-%d %H:%M}"
        return _("Waiting: its OLT is paused until %(until)s.") % {"until": until}
    if not obstacles.is_polling:
        return _("Waiting: polling is stopped; nothing is read until the engine runs.")
    if obstacles.holder is not None:
        return _("Waiting for the OLT: %(holder)s.") % {"holder": describe_holder(obstacles.holder)}
    if obstacles.before:
        asked = ngettext("%(number)s request ahead of it", "%(number)s requests ahead of it", obstacles.before)
        return _("Waiting for the OLT: %(holder)s.") % {"holder": asked % {"number": obstacles.before}}
    return _("Waiting: it starts at once when a poller is free.")

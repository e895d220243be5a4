"""How far the wish to read one ONU now has come: what it waits for, whether it is being read, how it ended."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from facho.executions.models import OnuRead
from facho.executions.onu_reads import count_before
from facho.hosts.models import Olt, Pause
from facho.hosts.pauses import load_pause
from facho.onus.shown_state import last_known_state
from facho.onus.words import RunState
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.onu_reads import EXPIRES_AFTER
from facho.zabbix_pollers.activity import Holder, load_holder, load_is_polling


class ReadStage(StrEnum):
    """Where a wish stands; the first two go on, the others are over."""

    WAITING = "waiting"
    READING = "reading"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Obstacles:
    """What a wish waits for, as far as anything is known to stand in its way."""

    is_polling: bool
    is_olt_enabled: bool
    pause: Pause | None
    holder: Holder | None
    # Wishes of others on the same OLT that come first.
    before: int


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """The latest wish of an ONU."""

    stage: ReadStage
    requested_at: datetime
    execution_id: int | None = None
    finished_at: datetime | None = None
    failure_kind: str = ""
    # What the OLT said of it last: who is offline has no light to be read.
    is_offline: bool = False
    obstacles: Obstacles | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether anything is still to come of it."""
        return self.stage in (ReadStage.WAITING, ReadStage.READING)


_ENDED_WELL = ExecutionState.SUCCESS


def load_progress(onu_id: int, *, olt_id: int, now: datetime) -> ReadProgress | None:
    """Load where the latest wish stands; None when there never was one. One query, six while it waits."""
    read = OnuRead.objects.filter(onu_id=onu_id).select_related("execution", "onu__reading").first()
    if read is None:
        return None
    if read.execution is None:
        return _waiting(read, olt_id, now)
    run = read.execution
    stage = ReadStage.READING
    if run.finished_at is not None:
        stage = ReadStage.DONE if run.status == _ENDED_WELL else ReadStage.FAILED
    is_offline = last_known_state(read.onu) == RunState.OFFLINE
    return ReadProgress(stage, read.requested_at, run.id, run.finished_at, run.failure_kind, is_offline)


def _waiting(read: OnuRead, olt_id: int, now: datetime) -> ReadProgress:
    if read.requested_at <= now - EXPIRES_AFTER:
        return ReadProgress(ReadStage.EXPIRED, read.requested_at)
    obstacles = Obstacles(
        is_polling=load_is_polling(now),
        is_olt_enabled=Olt.objects.filter(id=olt_id, enabled=True).exists(),
        pause=load_pause(olt_id, now),
        holder=load_holder(olt_id),
        before=count_before(read, olt_id=olt_id, now=now),
    )
    return ReadProgress(ReadStage.WAITING, read.requested_at, obstacles=obstacles)

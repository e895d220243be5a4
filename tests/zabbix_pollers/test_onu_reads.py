"""The wish to read one ONU now: who may leave it, when it is granted, and what is said of it meanwhile."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

import pytest

from api.rows import make_leader, make_onu
from facho.executions.models import Execution, OnuRead, Origin
from facho.executions.onu_reads import NotThere, TooManyReads, is_read_wanted, request_read
from facho.executions.store import load_unfinished, take
from facho.hosts.models import Olt
from facho.hosts.store import pause
from facho.infrastructure.gateway import ThreadGateway
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import EXPIRES_AFTER, MAX_WAITING_PER_OLT
from facho.zabbix_pollers.models import Poller, PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.run_now import ReadStage, describe_read, load_progress
from factories import NOW, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

_numbers = count()


@dataclass
class Noting:
    """An executor that notes what it was given and never runs it."""

    started: list[int] = field(default_factory=list)

    def start(self, execution_id: int, token: int) -> None:
        self.started.append(execution_id)

    def cancel(self, execution_id: int, reason: str) -> None:
        """Never asked."""


def onu_on(olt: Olt, **fields: object) -> Onu:
    return make_onu(olt, (0, 1, 3, next(_numbers)), **fields)


def tick(now: datetime = NOW, *, pollers: int = 2) -> list[int]:
    """Let a scheduler start what it can, and return the executions that it handed out."""

    async def run() -> list[int]:
        database, executor = ThreadGateway(), Noting()
        manager = PollerManager(start_pollers=pollers, database=database, executor=executor, owner="engine/test")
        try:
            await manager.prepare()
            await manager.start_due_nodes(await database.run(load_unfinished, now), now)
        finally:
            await database.close()
        return executor.started

    return asyncio.run(run())


def stage(onu: Onu, now: datetime = NOW) -> ReadStage | None:
    progress = load_progress(onu.id, olt_id=onu.olt_id, now=now)
    return progress.stage if progress else None


def words(onu: Onu, now: datetime = NOW) -> str:
    progress = load_progress(onu.id, olt_id=onu.olt_id, now=now)
    assert progress is not None
    return describe_read(progress)


def test_a_wish_goes_before_a_due_node_and_takes_olt_and_poller() -> None:
    olt = make_olt()
    node, onu = make_node(olt), onu_on(olt)
    request_read(onu.id, now=NOW)

    [execution_id] = tick()

    execution = Execution.objects.get()
    assert (execution.id, execution.node_id, execution.origin) == (execution_id, None, Origin.MANUAL)
    assert OnuRead.objects.get().execution_id == execution_id
    assert Poller.objects.get(status=PollerStatus.BUSY).current_execution_id == execution_id
    node.refresh_from_db()
    assert node.next_run_at == NOW
    run = take(execution_id, execution.token, owner="engine/test", now=NOW)
    assert run is not None
    assert run.request.onu == (0, 1, 3, onu.onu_id)


def test_one_olt_has_one_read_at_a_time() -> None:
    olt = make_olt()
    first, second = onu_on(olt), onu_on(olt)
    request_read(first.id, now=NOW)
    request_read(second.id, now=NOW + timedelta(seconds=1))

    assert len(tick(NOW + timedelta(seconds=2))) == 1
    assert tick(NOW + timedelta(seconds=3)) == []
    assert OnuRead.objects.get(execution__isnull=True).onu_id == second.id


def test_a_paused_or_disabled_olt_and_an_onu_that_left_are_not_read() -> None:
    paused, disabled, left = (onu_on(make_olt()) for _ in range(3))
    for onu in (paused, disabled, left):
        request_read(onu.id, now=NOW)
    pause(paused.olt, minutes=30, note="", now=NOW)
    Olt.objects.filter(id=disabled.olt_id).update(enabled=False)
    Onu.objects.filter(id=left.id).update(is_present=False, absent_since=NOW)

    assert tick() == []
    assert "paused until" in words(paused)
    assert "disabled" in words(disabled)


def test_a_wish_that_stands_is_not_doubled_and_one_that_is_over_is_replaced() -> None:
    onu = onu_on(make_olt())
    request_read(onu.id, now=NOW)
    request_read(onu.id, now=NOW + timedelta(seconds=9))
    assert OnuRead.objects.get().requested_at == NOW

    [execution_id] = tick()
    request_read(onu.id, now=NOW + timedelta(seconds=9))
    assert OnuRead.objects.get().execution_id == execution_id

    Execution.objects.update(status=ExecutionState.SUCCESS, finished_at=NOW)
    request_read(onu.id, now=NOW + timedelta(seconds=9))
    assert OnuRead.objects.get().execution_id is None


def test_a_wish_that_nobody_granted_in_time_is_over() -> None:
    onu = onu_on(make_olt())
    request_read(onu.id, now=NOW)
    late = NOW + EXPIRES_AFTER

    assert tick(late) == []
    assert stage(onu, late) is ReadStage.EXPIRED
    request_read(onu.id, now=late)
    assert stage(onu, late) is ReadStage.WAITING


def test_only_a_few_may_wait_for_one_olt() -> None:
    olt = make_olt()
    for _ in range(MAX_WAITING_PER_OLT):
        request_read(onu_on(olt).id, now=NOW)

    with pytest.raises(TooManyReads):
        request_read(onu_on(olt).id, now=NOW)
    request_read(onu_on(make_olt()).id, now=NOW)


def test_an_onu_that_is_not_where_it_was_cannot_be_asked() -> None:
    for onu in (onu_on(make_olt(), is_present=False, absent_since=NOW), onu_on(make_olt(), misses=1)):
        with pytest.raises(NotThere):
            request_read(onu.id, now=NOW)


def test_a_long_read_gives_way_to_a_person() -> None:
    onu = onu_on(make_olt())

    assert not is_read_wanted(onu.olt_id, except_node_id=None, now=NOW)
    request_read(onu.id, now=NOW)
    assert is_read_wanted(onu.olt_id, except_node_id=None, now=NOW)


def test_it_is_said_what_the_wish_waits_for_and_how_it_ended() -> None:
    olt = make_olt()
    node, onu, other = make_node(olt), onu_on(olt), onu_on(olt)
    assert stage(onu) is None
    tick()
    request_read(other.id, now=NOW - timedelta(seconds=1))
    request_read(onu.id, now=NOW)
    assert words(onu) == "Waiting: polling is stopped; nothing is read until the engine runs."
    make_leader(NOW)
    assert f"{node.job.name} has held it since" in words(onu)
    Execution.objects.update(status=ExecutionState.SUCCESS, finished_at=NOW)
    assert words(onu) == "Waiting for the OLT: 1 request ahead of it."
    OnuRead.objects.filter(onu=other).delete()
    Poller.objects.update(status=PollerStatus.FREE, current_execution_id=None, current_node_id=None)
    tick()
    assert (stage(onu), words(onu)) == (ReadStage.READING, "Reading now.")
    latest = Execution.objects.filter(task_type="onu_read")
    latest.update(status=ExecutionState.SUCCESS, finished_at=NOW)
    assert "the values on this page are new" in words(onu)
    latest.update(status=ExecutionState.FAILED, failure_kind="timeout")
    assert "It does not answer." in words(onu)
    latest.update(failure_kind="missing")
    assert "it may have been removed or moved" in words(onu)


def test_a_deleted_execution_or_onu_leaves_no_wish() -> None:
    kept, gone = onu_on(make_olt()), onu_on(make_olt())
    for onu in (kept, gone):
        request_read(onu.id, now=NOW)
    tick()

    gone.delete()
    Execution.objects.all().delete()

    assert not OnuRead.objects.exists()

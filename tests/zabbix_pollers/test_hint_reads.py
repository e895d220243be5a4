"""Reads that notifications hint at: one wait per place, a gap between two, after what people ask for."""

from datetime import datetime, timedelta

import pytest

from api.rows import make_onu
from facho.executions.models import Execution, HintRead, Origin
from facho.executions.onu_reads import is_read_wanted, request_hinted, request_read
from facho.executions.store import take
from facho.hosts.models import Olt
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.hints import HintedRead, ReadScope
from factories import NOW, make_node, make_olt
from zabbix_pollers.test_onu_reads import tick

pytestmark = pytest.mark.django_db(transaction=True)

SECOND, GAP = timedelta(seconds=1), timedelta(seconds=10)
ONU, PORT = HintedRead(ReadScope.PORT, 0, 1, 3, 7), HintedRead(ReadScope.PORT, 0, 1, 3)
STATES = HintedRead(ReadScope.STATES)


def hint(olt: Olt, *reads: HintedRead, at: datetime = NOW, heard_at: datetime | None = None) -> int:
    return request_hinted(olt.id, reads, heard_at=heard_at or at, gap=GAP, now=at)


def end(execution_id: int, at: datetime) -> None:
    Execution.objects.filter(id=execution_id).update(status=ExecutionState.SUCCESS, finished_at=at)


def test_a_hint_is_granted_as_an_execution_that_knows_what_to_read() -> None:
    olt = make_olt()
    hint(olt, ONU)

    [execution_id] = tick()

    execution = Execution.objects.get(id=execution_id)
    assert (execution.origin, execution.node_id, execution.task_type) == (Origin.TRAP, None, "trap_read")
    run = take(execution.id, execution.token, owner="engine/test", now=NOW)
    assert run is not None
    assert run.request.hint == ONU
    assert not tick(NOW + SECOND)


def test_two_receivers_that_hear_the_same_leave_one_wish() -> None:
    olt = make_olt()

    hint(olt, ONU)
    hint(olt, ONU)

    assert HintRead.objects.filter(wanted_at__isnull=False).count() == 1


def test_another_onu_of_the_port_widens_a_wish_that_waits() -> None:
    olt = make_olt()
    hint(olt, ONU)

    hint(olt, HintedRead(ReadScope.PORT, 0, 1, 3, 8), at=NOW + SECOND)

    [row] = HintRead.objects.all()
    assert row.onu_number is None


def test_a_read_that_began_after_the_hint_covers_it() -> None:
    olt = make_olt()
    hint(olt, PORT)
    [execution_id] = tick(NOW + SECOND)
    end(execution_id, NOW + 2 * SECOND)

    assert hint(olt, PORT, heard_at=NOW, at=NOW + 3 * SECOND) == 0
    assert not tick(NOW + 60 * SECOND)


def test_a_port_that_flaps_is_read_once_in_ten_seconds() -> None:
    olt, began = make_olt(), []
    for second in range(60):
        now = NOW + second * SECOND
        hint(olt, PORT, at=now)
        for execution_id in tick(now):
            end(execution_id, now)
            began.append(second)

    assert began == [0, 10, 20, 30, 40, 50]


def test_a_place_whose_reads_take_long_leaves_the_olt_to_polls() -> None:
    olt, began = make_olt(), []
    for second in range(0, 300, 5):
        now = NOW + second * SECOND
        hint(olt, STATES, at=now)
        for execution_id in tick(now):
            Execution.objects.filter(id=execution_id).update(started_at=now)
            end(execution_id, now + 20 * SECOND)
            began.append(second)

    assert began == [0, 80, 160, 240]


def test_a_hint_during_a_read_is_read_after_it() -> None:
    olt = make_olt()
    hint(olt, PORT)
    [execution_id] = tick()

    hint(olt, PORT, at=NOW + SECOND)

    assert not tick(NOW + 15 * SECOND)
    end(execution_id, NOW + 15 * SECOND)
    assert len(tick(NOW + 16 * SECOND)) == 1


def test_a_walk_of_all_states_that_waits_covers_its_ports() -> None:
    olt = make_olt()

    hint(olt, STATES)
    hint(olt, PORT)

    assert [row.is_whole for row in HintRead.objects.filter(wanted_at__isnull=False)] == [True]


def test_people_go_first_then_hints_then_nodes() -> None:
    olt = make_olt()
    onu = make_onu(olt, (0, 1, 3, 7))
    make_node(olt, next_run_at=NOW)
    hint(olt, PORT)
    request_read(onu.id, now=NOW + SECOND)

    order = []
    for second in range(1, 4):
        [execution_id] = tick(NOW + second * SECOND)
        order.append(Execution.objects.get(id=execution_id).origin)
        end(execution_id, NOW + second * SECOND)

    assert order == [Origin.MANUAL, Origin.TRAP, Origin.SCHEDULE]


def test_an_olt_that_is_paused_or_disabled_is_not_asked() -> None:
    paused, disabled = make_olt(), make_olt()
    pause(paused, minutes=60, note="", now=NOW)
    hint(paused, PORT)
    hint(disabled, PORT)
    Olt.objects.filter(id=disabled.id).update(enabled=False)

    assert not tick()


def test_a_long_read_gives_way_to_a_hint() -> None:
    olt = make_olt()
    assert not is_read_wanted(olt.id, except_node_id=None, now=NOW)

    hint(olt, PORT)

    assert is_read_wanted(olt.id, except_node_id=None, now=NOW)

"""What is kept of traps, which nodes run because of them, and what the reads make of what was said."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from api.rows import make_onu
from facho.executions.models import Execution, HintRead
from facho.hosts.models import Olt
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.infrastructure.secrets import Secret, decrypt
from facho.onus.models import OltMemory, Onu, OnuReading
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.hints import HintPlace, Meaning, Said
from facho.polling.snmp.target import Community
from facho.snmp_jobs.models import WorkflowNode
from facho.traps import store
from facho.traps.models import OltTraps, Trap, TrapSender
from facho.traps.store import (
    MAX_ROWS_AT_ONCE,
    MAX_SENDERS,
    SAME_FOR,
    SETTLES_WITHIN,
    EngineClock,
    HeardTrap,
    SenderBook,
    begin_receiver,
    load_engines,
    load_silent_olts,
    save_heard,
    save_refused,
    settle,
)
from factories import NOW, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)
PLACE = HintPlace(0, 1, 6, 54)


def heard(olt: Olt, meaning: Meaning, place: HintPlace = PLACE, *, at: datetime = NOW, mark: str = "") -> HeardTrap:
    message = Said("x", meaning, place)
    return HeardTrap(olt.id, at, "1.3.6.1", message, f"{meaning}{place.onu}{at.timestamp()}{mark}"[-32:])


def hear(*traps: HeardTrap, now: datetime = NOW) -> int:
    return save_heard(traps, {}, now=now)


def scene() -> tuple[Olt, Onu]:
    olt = make_olt()
    return olt, make_onu(olt, (0, 1, 6, 54))


def read(olt: Olt, onu: Onu, state: str, at: datetime) -> None:
    """Let a hinted read of the port begin and end, and find the ONU in a state."""
    execution = Execution.objects.create(
        olt=olt,
        task_type="trap_read",
        status=ExecutionState.SUCCESS,
        address=olt.address,
        port=olt.port,
        token=1,
        created_at=at,
        started_at=at,
        finished_at=at,
    )
    HintRead.objects.filter(olt=olt).update(execution=execution, asked_at=at, wanted_at=None)
    OnuReading.objects.filter(onu=onu).update(run_state=state)


def test_what_was_said_and_read_agree() -> None:
    olt, onu = scene()
    hear(heard(olt, Meaning.ONU_LOS))
    read(olt, onu, "offline", NOW + SECOND)

    settle(NOW + 2 * SECOND)

    [trap] = Trap.objects.all()
    assert (trap.outcome, trap.settled_at) == ("confirmed", NOW + SECOND)


def test_a_trap_that_lies_is_not_confirmed_and_changes_nothing() -> None:
    olt, onu = scene()
    hear(heard(olt, Meaning.ONU_LOS))
    read(olt, onu, "online", NOW + SECOND)

    settle(NOW + 2 * SECOND)

    assert Trap.objects.get().outcome == "not_confirmed"
    assert OnuReading.objects.get(onu=onu).run_state == "online"


def test_a_read_that_began_before_the_trap_settles_nothing() -> None:
    olt, onu = scene()
    hear(heard(olt, Meaning.ONU_LOS, at=NOW + 5 * SECOND), now=NOW + 5 * SECOND)
    read(olt, onu, "online", NOW)

    settle(NOW + 6 * SECOND)

    assert Trap.objects.get().outcome == ""


def test_a_poll_that_may_have_passed_the_place_before_the_trap_settles_nothing_while_a_read_waits() -> None:
    olt, onu = scene()
    hear(heard(olt, Meaning.ONU_LOS))
    OltMemory.objects.create(olt=olt, states_at=NOW + SECOND)

    settle(NOW + 2 * SECOND)

    assert Trap.objects.get().outcome == ""
    read(olt, onu, "offline", NOW + 3 * SECOND)
    settle(NOW + 4 * SECOND)
    assert Trap.objects.get().outcome == "confirmed"


def test_without_a_read_that_waits_a_poll_settles() -> None:
    olt, onu = scene()
    hear(heard(olt, Meaning.ONU_LOS))
    HintRead.objects.all().delete()
    OltMemory.objects.create(olt=olt, states_at=NOW + SECOND)
    OnuReading.objects.filter(onu=onu).update(run_state="offline")

    settle(NOW + 2 * SECOND)

    assert Trap.objects.get().outcome == "confirmed"


@pytest.mark.parametrize(
    ("meaning", "state", "outcome"),
    [
        (Meaning.PON_LOS, "offline", "confirmed"),
        (Meaning.PON_LOS, "online", "not_confirmed"),
        (Meaning.PON_UP, "online", "confirmed"),
        (Meaning.PON_DOWN, "unknown", "not_read"),
    ],
)
def test_what_was_said_of_a_port_is_held_against_its_onus(meaning: Meaning, state: str, outcome: str) -> None:
    olt, onu = scene()
    make_onu(olt, (0, 1, 6, 55), run_state="unknown")
    hear(heard(olt, meaning, HintPlace(0, 1, 6)))
    read(olt, onu, state, NOW + SECOND)

    settle(NOW + 2 * SECOND)

    assert Trap.objects.get().outcome == outcome


def test_an_olt_that_cannot_be_read_does_not_keep_others_from_being_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_SETTLED_AT_ONCE", 2)
    silent, _onu = scene()
    for number in range(5):
        hear(heard(silent, Meaning.ONU_LOS, mark=str(number)))
    olt, onu = scene()
    hear(heard(olt, Meaning.ONU_LOS, at=NOW + SECOND), now=NOW + SECOND)
    read(olt, onu, "offline", NOW + 2 * SECOND)

    settle(NOW + 3 * SECOND)

    assert Trap.objects.get(olt=olt).outcome == "confirmed"
    assert set(Trap.objects.filter(olt=silent).values_list("outcome", flat=True)) == {""}


def test_what_nobody_read_in_time_is_reported_so() -> None:
    olt, _onu = scene()
    hear(heard(olt, Meaning.ONU_LOS))

    settle(NOW + SETTLES_WITHIN)

    assert Trap.objects.get().outcome == "not_read"


def test_the_same_trap_later_is_another_one() -> None:
    olt, _onu = scene()
    one = heard(olt, Meaning.ONU_LOS)
    hear(one)
    hear(one, now=NOW + SECOND)

    hear(one, now=NOW + SAME_FOR + 2 * SECOND)

    assert [trap.repeats for trap in Trap.objects.order_by("id")] == [1, 0]


def test_rows_of_one_moment_are_bounded_and_the_reads_are_not_lost() -> None:
    olt, _onu = scene()
    hear(*(heard(olt, Meaning.ONU_LOS, HintPlace(0, 1, 6, number)) for number in range(MAX_ROWS_AT_ONCE + 50)))

    assert Trap.objects.count() == MAX_ROWS_AT_ONCE
    assert HintRead.objects.get().onu_number is None


def test_ports_that_no_discovery_found_are_one_walk_however_many_are_named() -> None:
    olt, _onu = scene()

    for port in (7, 8, 9, 70_000):
        hear(heard(olt, Meaning.PON_LOS, HintPlace(0, 1, port), mark=str(port)))

    assert Trap.objects.get(port=70_000).pon_port_id is None
    assert [read.is_whole for read in HintRead.objects.all()] == [True]


def test_a_card_asks_for_a_discovery_at_most_once_a_minute() -> None:
    olt, _onu = scene()
    node = make_node(olt, make_job(query_type=QueryType.DISCOVERY), next_run_at=NOW + timedelta(hours=1))

    hear(heard(olt, Meaning.BOARD_DOWN, HintPlace(0, 1)))

    assert WorkflowNode.objects.get(id=node.id).run_requested_at == NOW
    WorkflowNode.objects.filter(id=node.id).update(run_requested_at=None, last_run_at=NOW + SECOND)
    hear(heard(olt, Meaning.BOARD_UP, HintPlace(0, 1), at=NOW + 5 * SECOND), now=NOW + 5 * SECOND)
    assert WorkflowNode.objects.get(id=node.id).run_requested_at is None


def test_an_onu_that_was_found_asks_for_the_waiting_list() -> None:
    olt, _onu = scene()
    job = make_job(query_type=QueryType.WALK, columns=("autofind.serial",))
    node = make_node(olt, job, next_run_at=NOW + timedelta(hours=1))

    hear(heard(olt, Meaning.ONU_DISCOVERED, HintPlace(0, 1, 6)))

    assert WorkflowNode.objects.get(id=node.id).run_requested_at == NOW


def test_a_poll_of_the_states_that_begins_now_is_not_doubled() -> None:
    olt, _onu = scene()
    job = make_job(query_type=QueryType.WALK, columns=("onu.run_state",))
    make_node(olt, job, next_run_at=NOW + timedelta(milliseconds=500))

    hear(heard(olt, Meaning.ONU_LOS))

    assert not HintRead.objects.exists()


def test_a_disabled_olt_is_not_heard() -> None:
    olt, _onu = scene()
    one = heard(olt, Meaning.ONU_LOS)
    Olt.objects.update(enabled=False)

    assert (SenderBook().load(), hear(one)) == ({}, 0)


def test_credentials_are_decrypted_only_when_their_row_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make_olt(), make_olt()
    book, decrypted = SenderBook(), list[str]()

    def noting(text: str) -> Secret:
        decrypted.append(text)
        return decrypt(text)

    monkeypatch.setattr(store, "decrypt", noting)
    before = book.load()
    assert [sender.olt_id for sender in before[first.address]] == [first.id, second.id]
    decrypted.clear()

    assert book.load() == before
    assert not decrypted
    second.community = Secret("other")
    second.save()
    assert [sender.credential for sender in book.load()[first.address]][1] == Community(b"other")
    assert len(decrypted) == len(SECRET_COLUMNS)
    Olt.objects.filter(id=first.id).update(enabled=False)
    assert [sender.olt_id for sender in book.load()[first.address]] == [second.id]


def test_a_credential_that_cannot_be_decrypted_silences_its_own_olt_only() -> None:
    olt, broken = make_olt(), make_olt()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE hosts_olt SET community = 'nonsense' WHERE id = %s", [broken.id])

    assert [sender.olt_id for sender in SenderBook().load()[olt.address]] == [olt.id]


def test_the_clock_of_an_engine_only_goes_forward() -> None:
    olt, _onu = scene()
    engine = bytes(range(12))
    for boots, seconds in ((2, 50), (1, 900), (2, 60)):
        one = heard(olt, Meaning.ONU_LOS, mark=f"{boots}{seconds}")
        save_heard([one], {olt.id: EngineClock(engine, boots, seconds)}, now=NOW)

    assert load_engines() == [EngineClock(engine, 2, 60)]


def test_a_receiver_keeps_its_engine_and_counts_its_starts() -> None:
    first, second = begin_receiver("host/1162", NOW), begin_receiver("host/1162", NOW)

    assert first.engine_id == second.engine_id
    assert (first.boots, second.boots) == (1, 2)


def test_strangers_are_remembered_by_name_up_to_a_number() -> None:
    counts = {(f"10.{n >> 8}.{n & 255}.1", "unknown_sender"): (1, None) for n in range(MAX_SENDERS + 10)}

    save_refused(counts, now=NOW)
    save_refused(counts, now=NOW)

    assert TrapSender.objects.count() == MAX_SENDERS
    assert set(TrapSender.objects.values_list("count", flat=True)) == {2}


def test_an_olt_that_never_sent_a_trap_is_named() -> None:
    spoke, silent = make_olt(), make_olt()
    hear(heard(spoke, Meaning.FAN))

    assert load_silent_olts(9) == [silent]
    assert OltTraps.objects.get().heard == 1

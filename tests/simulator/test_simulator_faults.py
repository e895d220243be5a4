"""What becomes of a reply under each fault, repeatably from a seed."""

import pytest

from facho.polling.snmp.ber import Pdu, PduKind, SnmpMessage, Tag, decode_message, encode_message
from facho.polling.snmp.errors import MalformedMessage
from facho.simulator.agent import NO_FAULTS, CostModel, FaultInjector, Faults
from facho.simulator.responder import ReplyWork

REPLY = encode_message(
    SnmpMessage(1, b"public", Pdu(PduKind.RESPONSE, 2_147_483_647, 0, 0, [((1, 3, 6, 1), Tag.OCTET_STRING, b"x" * 40)]))
)


def injector(faults: Faults, *, seed: int = 1) -> FaultInjector:
    return FaultInjector(faults, seed=seed, name="olt-001")


def is_readable(data: bytes) -> bool:
    try:
        decode_message(data)
    except MalformedMessage:
        return False
    return True


def test_without_faults_the_reply_leaves_at_once_and_whole() -> None:
    assert injector(NO_FAULTS).departures(REPLY) == [(0.0, REPLY)]


def test_the_asked_share_is_lost() -> None:
    lossy = injector(Faults(loss=0.2))

    lost = sum(not lossy.departures(REPLY) for _ in range(2_000))

    assert 320 < lost < 480


def test_the_same_seed_loses_the_same_replies() -> None:
    one, two = injector(Faults(loss=0.5)), injector(Faults(loss=0.5))

    assert [one.departures(REPLY) for _ in range(100)] == [two.departures(REPLY) for _ in range(100)]


def test_only_long_replies_are_lost_on_a_path_that_drops_fragments() -> None:
    path = injector(Faults(lost_above=len(REPLY)))

    assert path.departures(REPLY) == [(0.0, REPLY)]
    assert path.departures(REPLY + b"more") == []


def test_duplicates_leave_twice() -> None:
    assert injector(Faults(duplicates=1.0)).departures(REPLY) == [(0.0, REPLY)] * 2


def test_late_replies_leave_later() -> None:
    assert injector(Faults(late=1.0, late_seconds=0.3)).departures(REPLY) == [(0.3, REPLY)]


def test_truncated_replies_are_a_beginning_that_cannot_be_read() -> None:
    cut = injector(Faults(truncation=1.0))

    for _ in range(100):
        ((_, data),) = cut.departures(REPLY)
        assert REPLY.startswith(data)
        assert not is_readable(data)


def test_garbage_is_never_a_message() -> None:
    spoilt = injector(Faults(garbage=1.0))

    replies = [spoilt.departures(REPLY)[0][1] for _ in range(200)]

    assert not any(map(is_readable, replies))
    assert len(set(replies)) > 50


def test_a_wrong_request_id_is_all_that_is_wrong() -> None:
    ((_, data),) = injector(Faults(wrong_request_id=1.0)).departures(REPLY)

    before, after = decode_message(REPLY).pdu, decode_message(data).pdu
    assert after.request_id == 0
    assert after.varbinds == before.varbinds


def wait(agent: FaultInjector, work: ReplyWork, *, now: float = 0.0) -> float:
    return agent.wait_seconds(work, busy_seconds=agent.busy_seconds(work, in_flight=1), now=now)


def test_latency_and_live_rows_add_up() -> None:
    slow = injector(Faults(latency_seconds=0.5, live_row_seconds=0.1))

    assert wait(slow, ReplyWork(live_rows=5)) == pytest.approx(1.0)


def test_without_a_cost_model_replies_do_not_queue() -> None:
    slow = injector(Faults(latency_seconds=0.5))

    assert wait(slow, ReplyWork()) == wait(slow, ReplyWork()) == pytest.approx(0.5)


def test_costly_work_queues_until_a_restart() -> None:
    busy = injector(Faults(cost=CostModel()))
    work = ReplyWork(cells=175, columns=7, live_rows=25)

    first = wait(busy, work)
    assert wait(busy, work) == pytest.approx(2 * first)
    busy.restart()
    assert wait(busy, work) == pytest.approx(first)

"""Answers follow RFC 3416 for v2c and RFC 1157 for v1."""

import pytest

from facho.polling.snmp.ber import Oid, Pdu, PduKind, SnmpMessage, Tag, decode_message
from facho.simulator.responder import (
    NO_ERROR,
    NO_SUCH_NAME,
    TOO_BIG,
    V1,
    V2C,
    ColumnKind,
    MibColumn,
    MibRows,
    MibView,
    Reply,
    Responder,
)

NAMES: Oid = (1, 3, 6, 1, 1)
POWERS: Oid = (1, 3, 6, 1, 2)
COUNTED: Oid = (1, 3, 6, 1, 3)
ROWS = 10


def make_responder(*, max_message_bytes: int = 65_507) -> Responder:
    rows: MibRows[int] = MibRows(lambda number: (number,), range(1, ROWS + 1))
    return Responder(
        MibView(
            [
                MibColumn(NAMES, rows, lambda number: (Tag.OCTET_STRING, b"onu-%02d" % number)),
                MibColumn(POWERS, rows, lambda number: (Tag.INTEGER, -number), ColumnKind.LIVE),
                MibColumn(COUNTED, rows, lambda number: (Tag.COUNTER64, number), ColumnKind.COUNTER64),
            ]
        ),
        max_message_bytes=max_message_bytes,
    )


def ask(
    responder: Responder, kind: PduKind, *oids: Oid, version: int = V2C, fields: tuple[int, int] = (0, 0)
) -> tuple[Pdu, Reply]:
    pdu = Pdu(kind, 77, *fields, [(oid, Tag.NULL, None) for oid in oids])
    reply = responder.respond(SnmpMessage(version, b"public", pdu))
    assert reply is not None
    return decode_message(reply.data).pdu, reply


def bulk(responder: Responder, *oids: Oid, non_repeaters: int = 0, repetitions: int = 3) -> Pdu:
    return ask(responder, PduKind.GET_BULK, *oids, fields=(non_repeaters, repetitions))[0]


def test_get_returns_values_in_the_order_of_the_question() -> None:
    pdu, _ = ask(make_responder(), PduKind.GET, (*POWERS, 3), (*NAMES, 2))

    assert (pdu.kind, pdu.request_id, pdu.error_status) == (PduKind.RESPONSE, 77, NO_ERROR)
    assert pdu.varbinds == [((*POWERS, 3), Tag.INTEGER, -3), ((*NAMES, 2), Tag.OCTET_STRING, b"onu-02")]


def test_v2c_says_of_each_variable_what_is_missing() -> None:
    pdu, _ = ask(make_responder(), PduKind.GET, (*NAMES, 99), (1, 3, 9, 0), NAMES)

    assert pdu.error_status == NO_ERROR
    assert [tag for _, tag, _ in pdu.varbinds] == [
        Tag.NO_SUCH_INSTANCE,
        Tag.NO_SUCH_OBJECT,
        Tag.NO_SUCH_INSTANCE,
    ]


def test_v1_refuses_the_whole_question_and_names_the_first_missing_variable() -> None:
    pdu, _ = ask(make_responder(), PduKind.GET, (*NAMES, 1), (*NAMES, 99), version=V1)

    assert (pdu.error_status, pdu.error_index) == (NO_SUCH_NAME, 2)
    assert [oid for oid, _, _ in pdu.varbinds] == [(*NAMES, 1), (*NAMES, 99)]


def test_get_next_goes_on_in_the_next_column() -> None:
    pdu, _ = ask(make_responder(), PduKind.GET_NEXT, (*NAMES, ROWS))

    assert pdu.varbinds == [((*POWERS, 1), Tag.INTEGER, -1)]


def test_the_end_is_reported_in_v2c_and_is_an_error_in_v1() -> None:
    v2c, _ = ask(make_responder(), PduKind.GET_NEXT, (*COUNTED, ROWS))
    v1, _ = ask(make_responder(), PduKind.GET_NEXT, (*POWERS, ROWS), version=V1)

    assert v2c.varbinds == [((*COUNTED, ROWS), Tag.END_OF_MIB_VIEW, None)]
    assert (v1.error_status, v1.error_index) == (NO_SUCH_NAME, 1)


def test_v1_cannot_get_a_large_counter() -> None:
    pdu, _ = ask(make_responder(), PduKind.GET, (*COUNTED, 1), version=V1)

    assert pdu.error_status == NO_SUCH_NAME


def test_bulk_repeats_its_columns_side_by_side() -> None:
    pdu = bulk(make_responder(), NAMES, POWERS, repetitions=2)

    assert [oid for oid, _, _ in pdu.varbinds] == [(*NAMES, 1), (*POWERS, 1), (*NAMES, 2), (*POWERS, 2)]


def test_bulk_asks_non_repeaters_once() -> None:
    pdu = bulk(make_responder(), NAMES, POWERS, non_repeaters=1, repetitions=2)

    assert [oid for oid, _, _ in pdu.varbinds] == [(*NAMES, 1), (*POWERS, 1), (*POWERS, 2)]


@pytest.mark.parametrize(("non_repeaters", "repetitions", "expected"), [(5, 3, 2), (0, 0, 0), (-1, 1, 2), (1, -4, 1)])
def test_odd_bulk_numbers_are_read_as_the_rfc_says(non_repeaters: int, repetitions: int, expected: int) -> None:
    pdu = bulk(make_responder(), NAMES, POWERS, non_repeaters=non_repeaters, repetitions=repetitions)

    assert len(pdu.varbinds) == expected


def test_bulk_says_the_end_under_the_last_name_and_stops_when_all_are_there() -> None:
    pdu = bulk(make_responder(), (*COUNTED, ROWS - 1), (*COUNTED, ROWS), repetitions=50)

    last = (*COUNTED, ROWS)
    assert [(oid, tag) for oid, tag, _ in pdu.varbinds] == [
        (last, Tag.COUNTER64),
        (last, Tag.END_OF_MIB_VIEW),
        (last, Tag.END_OF_MIB_VIEW),
        (last, Tag.END_OF_MIB_VIEW),
    ]


@pytest.mark.parametrize("repetitions", [25, 2_000_000_000])
def test_a_long_bulk_answer_is_cut_to_the_largest_message(repetitions: int) -> None:
    responder = make_responder(max_message_bytes=200)

    pdu, reply = ask(responder, PduKind.GET_BULK, NAMES, POWERS, fields=(0, repetitions))

    assert pdu.error_status == NO_ERROR
    assert 150 < len(reply.data) <= 200
    assert pdu.varbinds == bulk(make_responder(), NAMES, POWERS, repetitions=25).varbinds[: len(pdu.varbinds)]


def test_an_answer_to_get_that_does_not_fit_is_too_big() -> None:
    oids = [(*NAMES, number) for number in range(1, ROWS + 1)]
    responder = make_responder(max_message_bytes=150)

    v2c, _ = ask(responder, PduKind.GET, *oids)
    v1, _ = ask(responder, PduKind.GET, *oids, version=V1)

    assert (v2c.error_status, v2c.varbinds) == (TOO_BIG, [])
    assert (v1.error_status, len(v1.varbinds)) == (TOO_BIG, ROWS)


def test_a_bulk_answer_of_which_nothing_fits_is_too_big() -> None:
    pdu, _ = ask(make_responder(max_message_bytes=60), PduKind.GET_BULK, NAMES, fields=(0, 5))

    assert (pdu.error_status, pdu.varbinds) == (TOO_BIG, [])


def test_an_agent_that_refuses_long_answers_does_not_cut_them() -> None:
    responder = make_responder()
    responder.too_big_above = 100

    refused, answered = bulk(responder, NAMES, repetitions=10), bulk(responder, NAMES, repetitions=2)

    assert refused.error_status == TOO_BIG
    assert len(answered.varbinds) == 2


def test_work_counts_live_rows_once_whatever_the_columns() -> None:
    _, one = ask(make_responder(), PduKind.GET_BULK, POWERS, fields=(0, 5))
    _, two = ask(make_responder(), PduKind.GET_BULK, NAMES, POWERS, POWERS, fields=(0, 5))
    _, cheap = ask(make_responder(), PduKind.GET_BULK, NAMES, fields=(0, 5))

    assert (one.work.live_rows, two.work.live_rows, cheap.work.live_rows) == (5, 5, 0)
    assert (two.work.columns, two.work.cells) == (3, 15)


def test_work_of_a_cut_answer_is_only_what_was_sent() -> None:
    _, reply = ask(make_responder(max_message_bytes=100), PduKind.GET_BULK, POWERS, fields=(0, 10))

    assert reply.work.live_rows == reply.varbinds < 10


def test_a_response_is_no_question() -> None:
    message = SnmpMessage(V2C, b"public", Pdu(PduKind.RESPONSE, 1, 0, 0, []))

    assert make_responder().respond(message) is None


def test_a_question_for_nothing_is_answered_with_nothing() -> None:
    pdu, _ = ask(make_responder(), PduKind.GET)

    assert (pdu.error_status, pdu.varbinds) == (NO_ERROR, [])
